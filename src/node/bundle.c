#include "node/bundle.h"

#include <string.h>

#include "lib/json.h"
#include "node/seccomp.h"
#include "node/userns.h"

#define CPU_PERIOD 100000
#define CORE_NEVER 1         /* bytes: with 0 a dump still goes to a core_pattern that is a pipe */
#define TERMINALS  "max=256" /* of the 3,072 that all sandboxes of a host share */

/*
 * What root inside may do to its own box. Nothing here matters outside: the
 * user namespace maps it to an id of no other process.
 */
static const char *const capabilities[] = {
	"CAP_CHOWN",
	"CAP_DAC_OVERRIDE",
	"CAP_FOWNER",
	"CAP_FSETID",
	"CAP_KILL",
	"CAP_NET_BIND_SERVICE",
	"CAP_SETFCAP",
	"CAP_SETGID",
	"CAP_SETPCAP",
	"CAP_SETUID",
	"CAP_SYS_CHROOT",
	"CAP_SYS_ADMIN", /* the last: berth-init's alone, and on gVisor; see init/cgroup.h */
};

static const char *const masked[] = {
	"/proc/acpi",
	"/proc/asound",
	"/proc/fs",
	"/proc/interrupts",
	"/proc/kcore",
	"/proc/keys",
	"/proc/latency_stats",
	"/proc/sched_debug",
	"/proc/scsi",
	"/proc/timer_list",
	"/proc/timer_stats",
	"/sys/block",
	"/sys/class/bdi",
	"/sys/class/block",
	"/sys/dev/block",
	"/sys/devices/virtual/bdi",
	"/sys/devices/virtual/block",
	"/sys/devices/virtual/powercap",
	"/sys/firmware",
	"/sys/fs/bpf",
	"/sys/fs/btrfs",
	"/sys/fs/ext4",
	"/sys/fs/selinux",
	"/sys/fs/xfs",
	"/sys/kernel",
};

static const char *const readonly[] = {
	"/proc/bus",
	"/proc/irq",
	"/proc/sys",
	"/proc/sysrq-trigger",
};

/* clang-format off */
static const struct mount {
	const char *destination, *type, *source;
	const char *options[6]; /* besides nosuid and noexec */
} mounts[] = {
	{ "/proc",	 "proc",   "proc",   { "nodev" } },
	{ "/dev",	 "tmpfs",  "tmpfs",  { "mode=755", "size=64k" } },
	{ "/dev/pts",	 "devpts", "devpts", { "newinstance", "ptmxmode=666", "mode=620",
					     TERMINALS } },
	{ "/dev/shm",	 "tmpfs",  "shm",    { "nodev", "mode=1777", "size=65536k" } },
	{ "/dev/mqueue", "mqueue", "mqueue", { "nodev" } },
	{ "/sys",	 "sysfs",  "sysfs",  { "nodev", "ro" } },
};
/* clang-format on */

static void string_list(struct buf *out, const char *key, const char *const *items, size_t count)
{
	json_key(out, key);
	json_open(out, '[');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_adds(out, ",");
		json_add_string(out, items[i]);
	}
	buf_adds(out, "]");
}

static void write_capabilities(struct buf *out, const struct bundle *b)
{
	/* None is inheritable: a file's own would pass it on to a user that has none. */
	static const char *const sets[] = { "bounding", "effective", "permitted" };
	size_t count = array_len(capabilities) - !b->init_mounts;

	json_key(out, "capabilities");
	json_open(out, '{');
	for (size_t i = 0; i < array_len(sets); i++)
		string_list(out, sets[i], capabilities, count);
	buf_adds(out, "}");
}

static void write_rlimits(struct buf *out, const struct bundle *b)
{
	const struct {
		const char *type;
		uint32_t most;
	} limits[] = {
		{ "RLIMIT_NOFILE", b->open_files },
		{ "RLIMIT_CORE", CORE_NEVER },
		{ "RLIMIT_SIGPENDING", USERNS_SIGNALS },
		{ "RLIMIT_MSGQUEUE", USERNS_QUEUE_BYTES },
	};

	json_key(out, "rlimits");
	json_open(out, '[');
	for (size_t i = 0; i < array_len(limits); i++) {
		json_open(out, '{');
		json_str(out, "type", limits[i].type);
		json_int(out, "hard", limits[i].most);
		json_int(out, "soft", limits[i].most);
		buf_adds(out, "}");
	}
	buf_adds(out, "]");
}

static void write_process(struct buf *out, const struct bundle *b)
{
	size_t args = 0;

	while (b->args[args])
		args++;
	json_key(out, "process");
	json_open(out, '{');
	json_bool(out, "terminal", false);
	json_key(out, "user");
	buf_adds(out, "{\"uid\":0,\"gid\":0}");
	string_list(out, "args", b->args, args);
	string_list(out, "env", (const char *const *)b->env->items, b->env->len);
	json_str(out, "cwd", b->cwd);
	write_capabilities(out, b);
	json_bool(out, "noNewPrivileges", true);
	write_rlimits(out, b);
	buf_adds(out, "}");
}

static void bind(struct buf *out, const char *source, const char *destination, const char *how)
{
	json_open(out, '{');
	json_str(out, "destination", destination);
	json_str(out, "type", "bind");
	json_str(out, "source", source);
	json_key(out, "options");
	buf_addf(out, "[\"bind\",\"nosuid\",\"nodev\",\"%s\"]}", how);
}

static void write_mounts(struct buf *out, const struct bundle *b)
{
	json_key(out, "mounts");
	json_open(out, '[');
	for (size_t i = 0; i < array_len(mounts); i++) {
		if (b->sys && strcmp(mounts[i].destination, "/sys") == 0) {
			bind(out, b->sys, "/sys", "noexec\",\"ro");
			continue;
		}
		json_open(out, '{');
		json_str(out, "destination", mounts[i].destination);
		json_str(out, "type", mounts[i].type);
		json_str(out, "source", mounts[i].source);
		json_key(out, "options");
		buf_adds(out, "[\"nosuid\",\"noexec\"");
		for (size_t k = 0; mounts[i].options[k]; k++)
			buf_addf(out, ",\"%s\"", mounts[i].options[k]);
		buf_adds(out, "]}");
	}
	bind(out, b->init, "/.berth/init", "ro");
	if (b->socket_dir)
		bind(out, b->socket_dir, "/.berth/sock", "rw");
	buf_adds(out, "]");
}

static void write_ids(struct buf *out, const char *key, uint32_t first)
{
	json_key(out, key);
	buf_addf(out, "[{\"containerID\":0,\"hostID\":%u,\"size\":%d}]", first, USERNS_RANGE);
}

static void write_resources(struct buf *out, const struct bundle *b)
{
	json_key(out, "resources");
	json_open(out, '{');
	json_key(out, "memory");
	/* The same for memory and swap: a box may not move to the host's swap. */
	json_open(out, '{');
	json_int(out, "limit", (int64_t)b->memory_bytes);
	json_int(out, "swap", (int64_t)b->memory_bytes);
	if (b->socket_bytes)
		json_int(out, "kernelTCP", (int64_t)b->socket_bytes);
	buf_adds(out, "}");
	json_key(out, "pids");
	buf_addf(out, "{\"limit\":%u}", b->pids);
	json_key(out, "cpu");
	buf_addf(out, "{\"period\":%d,\"quota\":%llu}", CPU_PERIOD,
		 (unsigned long long)b->cpu_milli * CPU_PERIOD / 1000);
	buf_adds(out, "}");
}

static void write_linux(struct buf *out, const struct bundle *b)
{
	static const char *const namespaces[] = { "pid", "ipc", "uts", "mount", "cgroup" };

	json_key(out, "linux");
	json_open(out, '{');
	json_str(out, "cgroupsPath", b->cgroup);
	json_key(out, "namespaces");
	json_open(out, '[');
	for (size_t i = 0; i < array_len(namespaces); i++) {
		json_open(out, '{');
		json_str(out, "type", namespaces[i]);
		buf_adds(out, "}");
	}
	json_open(out, '{');
	json_str(out, "type", "user");
	if (b->userns)
		json_str(out, "path", b->userns);
	buf_adds(out, "}");
	/* The engine is started in that of the slot. */
	buf_adds(out, ",{\"type\":\"network\",\"path\":\"/proc/self/ns/net\"}]");
	write_ids(out, "uidMappings", b->first_id);
	write_ids(out, "gidMappings", b->first_id);
	write_resources(out, b);
	string_list(out, "maskedPaths", masked, array_len(masked));
	string_list(out, "readonlyPaths", readonly, array_len(readonly));
	json_key(out, "seccomp");
	seccomp_write(out);
	buf_adds(out, "}");
}

void bundle_write(struct buf *out, const struct bundle *b)
{
	json_open(out, '{');
	json_str(out, "ociVersion", "1.0.2");
	write_process(out, b);
	json_key(out, "root");
	json_open(out, '{');
	json_str(out, "path", b->rootfs);
	json_bool(out, "readonly", false);
	buf_adds(out, "}");
	json_str(out, "hostname", b->hostname);
	write_mounts(out, b);
	write_linux(out, b);
	if (b->filter) {
		json_key(out, "annotations");
		json_open(out, '{');
		json_str(out, "run.oci.seccomp_bpf_data", b->filter);
		buf_adds(out, "}");
	}
	buf_adds(out, "}");
}
