#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/dev.h"
#include "cli/programs.h"
#include "cli/say.h"
#include "lib/file.h"
#include "lib/hash.h"
#include "lib/str.h"

#define CONF_MAX (16UL * 1024)

const char *dev_path(struct dev *dev, const char *fmt, ...)
{
	char *to = dev->args[dev->arg_count < array_len(dev->args) ? dev->arg_count++ : 0];
	va_list args;
	int n = snprintf(to, DEV_PATH_SIZE, "%s", dev->dir);

	va_start(args, fmt);
	vsnprintf(to + n, DEV_PATH_SIZE - (size_t)n, fmt, args); /* DEV_DIR_MAX leaves room */
	va_end(args);
	return to;
}

/* Can that account pass through every directory above this path? */
static int check_reachable(const char *path, const struct account *a, struct err *e)
{
	char above[PATH_MAX];
	struct stat st;

	if (!str_copy(above, sizeof(above), path))
		return err_set(e, ERR_INVALID, "path too long");
	for (char *slash; (slash = strrchr(above, '/')) && slash != above;) {
		*slash = '\0';
		if (stat(above, &st) < 0)
			return err_sys(e, errno, "%s", above);
		if (st.st_mode & S_IXOTH || (st.st_uid == a->uid && st.st_mode & S_IXUSR))
			continue;
		err_set(e, ERR_DENIED, "user %s cannot pass %s, which is above %s", a->name, above,
			path);
		return err_fix(e, "Use one that is not private, for example below /var/lib.");
	}
	return 0;
}

static int resolve(struct dev *dev, struct err *e)
{
	char real[PATH_MAX];

	if (mkdir(dev->options->dir, 0711) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create %s", dev->options->dir);
	if (!realpath(dev->options->dir, real))
		return err_sys(e, errno, "%s", dev->options->dir);
	if (strlen(real) > DEV_DIR_MAX || !str_copy(dev->dir, sizeof(dev->dir), real)) {
		(void)rmdir(real); /* goes only if it is empty, so only if it is ours */
		err_set(e, ERR_INVALID, "%s is too long: sockets below it would not fit", real);
		return err_fix(e, "Use a directory of at most %zu bytes.", DEV_DIR_MAX);
	}
	if (strpbrk(real, " \t\n'\"\\#=")) {
		err_set(e, ERR_INVALID, "%s has a blank or quote in it", real);
		return err_fix(e, "Use a plain name: it goes into settings files.");
	}
	return 0;
}

/* clang-format off */
static const struct {
	const char *name;
	unsigned mode;
	enum { ROOT, SERVICE, EGRESS } owner;
	bool service;	/* its group is the service account's */
} dirs[] = {
	{ "run",	0711, ROOT,	false },
	{ "run/pg",	0700, SERVICE,	true },
	{ "run/egress",	0710, EGRESS,	true },
	{ "log",	0700, ROOT,	false },
	{ "node",	0700, ROOT,	false },
	{ "state",	0700, SERVICE,	true },
};
/* clang-format on */

static int make_dir(struct dev *dev, size_t i, struct err *e)
{
	cleanup(close_fd) int fd = -1;
	const uid_t owners[] = {
		[ROOT] = 0,
		[SERVICE] = dev->account.uid,
		[EGRESS] = dev->egress.uid,
	};
	gid_t gid = dirs[i].service ? dev->account.gid : 0;

	if (dir_open(dev->dirfd, dirs[i].name, dirs[i].mode, &fd, e) < 0)
		return -1;
	if (fchmod(fd, dirs[i].mode) < 0 || fchown(fd, owners[dirs[i].owner], gid) < 0)
		return err_sys(e, errno, "set up %s/%s", dev->dir, dirs[i].name);
	return 0;
}

int dev_layout(struct dev *dev, struct err *e)
{
	if (resolve(dev, e) < 0 || check_reachable(dev->dir, &dev->account, e) < 0 ||
	    check_reachable(dev->dir, &dev->egress, e) < 0)
		return -1;
	dev->dirfd = open(dev->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dev->dirfd < 0 || fchmod(dev->dirfd, 0711) < 0)
		return err_sys(e, errno, "open %s", dev->dir);
	if (dev_lock(dev, e) < 0)
		return -1;
	for (size_t i = 0; i < array_len(dirs); i++)
		if (make_dir(dev, i, e) < 0)
			return -1;
	dev->runfd = openat(dev->dirfd, "run", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dev->logfd = openat(dev->dirfd, "log", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dev->runfd < 0 || dev->logfd < 0)
		return err_sys(e, errno, "open %s/run and log", dev->dir);
	dev->home = (struct daemon_home){ dev->dir, dev->runfd, dev->logfd };
	return 0;
}

int dev_lock(struct dev *dev, struct err *e)
{
	dev->lockfd = openat(dev->dirfd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (dev->lockfd < 0)
		return err_sys(e, errno, "open %s/lock", dev->dir);
	if (flock(dev->lockfd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return err_sys(e, errno, "lock %s", dev->dir);
	err_set(e, ERR_CONFLICT, "another `berth dev` already runs in %s", dev->dir);
	return err_fix(e, "Use that one (`. %s/env`), stop it, or give another --dir.", dev->dir);
}

/* A file that this account may read and only root may write. */
static int write_conf(struct dev *dev, const char *name, const struct account *reader,
		      const struct buf *text, struct err *e)
{
	if (file_replace(dev->dirfd, name, buf_str(text), text->len, e) < 0)
		return err_wrap(e, "%s", dev->dir);
	if (fchownat(dev->dirfd, name, 0, reader->gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchmodat(dev->dirfd, name, 0640, 0) < 0)
		return err_sys(e, errno, "set up %s/%s", dev->dir, name);
	return 0;
}

static int configure_berthd(struct dev *dev, struct err *e)
{
	cleanup(buf_done) struct buf conf = buf_make(CONF_MAX);
	const char *divisor = getenv("BERTH_TIMER_DIVISOR"); /* for tests only */
	uint64_t n;

	buf_adds(&conf, "# Written by `berth dev` at every start.\n");
	buf_addf(&conf, "listen = %s\n", dev->options->listen);
	buf_addf(&conf, "database = host=%s/run/pg user=%s dbname=postgres\n", dev->dir,
		 dev->account.name);
	buf_addf(&conf, "node_socket = %s/run/node.sock\n", dev->dir);
	buf_addf(&conf, "egress_socket = %s/run/egress/policy.sock\n", dev->dir);
	buf_addf(&conf, "state_dir = %s/state\n", dev->dir);
	buf_addf(&conf, "default_runtime = %s\n", dev->runtime);
	for (size_t i = 0; i < dev->options->cors.len; i++)
		buf_addf(&conf, "%s%s%s", i ? " " : "cors_origins = ", dev->options->cors.items[i],
			 i + 1 == dev->options->cors.len ? "\n" : "");
	if (divisor && str_u64(divisor, &n, e) < 0)
		return err_wrap(e, "BERTH_TIMER_DIVISOR");
	if (divisor)
		buf_addf(&conf, "timer_divisor = %" PRIu64 "\n", n);
	if (getenv("BERTH_LEASE")) /* for tests only: one host needs none */
		buf_adds(&conf, "lease = on\n");
	return write_conf(dev, "berthd.conf", &dev->account, &conf, e);
}

static int configure_node(struct dev *dev, struct err *e)
{
	cleanup(buf_done) struct buf conf = buf_make(CONF_MAX);
	char hash[HASH_HEX_SIZE], init[PATH_MAX], image[PATH_MAX];

	if (program_find("berth-init", init, e) < 0 || program_find("berth-image", image, e) < 0)
		return -1;
	hash_hex(dev->dir, strlen(dev->dir), hash); /* two directories, two instances */
	buf_adds(&conf, "# Written by `berth dev` at every start.\n");
	buf_addf(&conf, "instance = dev%.8s\n", hash);
	buf_addf(&conf, "socket = %s/run/node.sock\n", dev->dir);
	buf_addf(&conf, "socket_user = %s\n", dev->account.name);
	buf_addf(&conf, "egress_socket = %s/run/egress.sock\n", dev->dir);
	buf_addf(&conf, "egress_user = %s\n", dev->egress.name);
	buf_addf(&conf, "run_dir = %s/node\n", dev->dir);
	buf_addf(&conf, "pool = %s/pool.img\n", dev->dir);
	buf_addf(&conf, "pool_size = %s\n", dev->options->pool_size);
	buf_addf(&conf, "init = %s\nimage_helper = %s\n", init, image);
	for (size_t i = 0; i < dev->options->insecure.len; i++)
		buf_addf(&conf, "%s%s%s", i ? "," : "insecure_registries = ",
			 dev->options->insecure.items[i],
			 i + 1 == dev->options->insecure.len ? "\n" : "");
	return write_conf(dev, "node.conf", &dev->account, &conf, e);
}

static int configure_egress(struct dev *dev, struct err *e)
{
	cleanup(buf_done) struct buf conf = buf_make(CONF_MAX);
	const char *resolver = getenv("BERTH_EGRESS_RESOLVER"); /* for tests only */
	const char *trust = getenv("BERTH_EGRESS_TRUST");       /* for tests only */

	buf_adds(&conf, "# Written by `berth dev` at every start.\n");
	buf_addf(&conf, "socket = %s/run/egress/policy.sock\n", dev->dir);
	buf_addf(&conf, "socket_user = %s\n", dev->account.name);
	buf_addf(&conf, "node_socket = %s/run/egress.sock\n", dev->dir);
	if (resolver)
		buf_addf(&conf, "resolver = %s\n", resolver);
	if (trust)
		buf_addf(&conf, "trust_file = %s\n", trust);
	return write_conf(dev, "egress.conf", &dev->egress, &conf, e);
}

static struct daemon daemon_make(const char *name, int stop_signal, unsigned stop_ms)
{
	return (struct daemon){
		.name = name,
		.stop_signal = stop_signal,
		.stop_ms = stop_ms,
		.proc = { .pid = -1, .pidfd = -1 },
	};
}

static void set_argv(struct daemon *d, const char *const *argv)
{
	for (size_t i = 0; argv[i] && i + 1 < DAEMON_ARGS_MAX; i++)
		d->argv[i] = argv[i];
}

static int make_daemons(struct dev *dev, struct err *e)
{
	struct daemon *pg = &dev->daemons[DEV_POSTGRES], *node = &dev->daemons[DEV_NODE];
	struct daemon *berthd = &dev->daemons[DEV_BERTHD], *egress = &dev->daemons[DEV_EGRESS];

	*pg = daemon_make("postgres", SIGINT, 20000); /* SIGINT: its fast shutdown */
	*node = daemon_make("berth-node", SIGTERM, 10000);
	*berthd = daemon_make("berthd", SIGTERM, 10000);
	*egress = daemon_make("berth-egress", SIGTERM, 10000);
	pg->account = berthd->account = &dev->account;
	egress->account = &dev->egress;
	if (program_find_postgres("postgres", pg->program, e) < 0 ||
	    program_find("berth-node", node->program, e) < 0 ||
	    program_find("berth-egress", egress->program, e) < 0 ||
	    program_find("berthd", berthd->program, e) < 0 ||
	    check_reachable(berthd->program, &dev->account, e) < 0 ||
	    check_reachable(egress->program, &dev->egress, e) < 0)
		return -1;
	set_argv(pg, (const char *const[]){ pg->program, "-D", dev_path(dev, "/pg"),
					    "-k", dev_path(dev, "/run/pg"),
					    "-c", "listen_addresses=",
					    "-c", "logging_collector=off",
					    "-c", "unix_socket_permissions=0700", NULL });
	set_argv(node, (const char *const[]){ node->program, "--config",
					      dev_path(dev, "/node.conf"), NULL });
	set_argv(egress, (const char *const[]){ egress->program, "--config",
						dev_path(dev, "/egress.conf"), NULL });
	set_argv(berthd, (const char *const[]){ berthd->program, "--config",
						dev_path(dev, "/berthd.conf"), NULL });
	return 0;
}

int dev_configure(struct dev *dev, struct err *e)
{
	if (make_daemons(dev, e) < 0 || configure_berthd(dev, e) < 0 ||
	    configure_node(dev, e) < 0 || configure_egress(dev, e) < 0)
		return -1;
	return 0;
}

int dev_write_env(struct dev *dev, const char *key, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(CONF_MAX);

	buf_addf(&text, "export BERTH_URL='%s'\nexport BERTH_API_KEY='%s'\n", dev->url, key);
	return file_replace(dev->dirfd, "env", buf_str(&text), text.len, e);
}
