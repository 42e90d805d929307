#include "init/rootfs-setup.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/file.h"

#define RESOLV      "/etc/resolv.conf"
#define NAME_SERVER "nameserver 100.64.0.1\n" /* ROUTER_GATEWAY; see proto/router.h */
#define RESOLV_MAX  4096
#define HOSTS       "/etc/hosts"
#define HOSTS_MAX   (1024 * 1024)
#define LIST_MAX    (4UL * 1024 * 1024)
#define HASH_LEN    8
#define HASHED      "/etc/ssl/certs/%.8s.0"
#define ALONE       "/etc/berth/ca.pem"

/* Where roots keep all they trust in one file. */
static const char *const lists[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/ssl/cert.pem",
	"/etc/ssl/ca-bundle.pem",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
};

/* Whatever the guest put there: a pipe would be waited for, a device would never end. */
static bool read_file(const char *path, struct buf *text)
{
	struct stat st;
	struct err ignored;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       file_read(AT_FDCWD, path, text, &ignored) == 0;
}

static bool has_name_server(void)
{
	cleanup(buf_done) struct buf text = buf_make(RESOLV_MAX);
	const char *at;

	if (!read_file(RESOLV, &text))
		return false;
	at = strstr(buf_str(&text), "nameserver ");
	return at && !strstr(at, "nameserver 127.") && !strstr(at, "nameserver ::1");
}

static void write_new(const char *path, const char *text)
{
	cleanup(close_fd) int fd = -1;

	(void)unlink(path); /* a link that leads nowhere, or an older one */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd >= 0)
		(void)!write_all(fd, text, strlen(text));
}

static void append(const char *path, const char *cert)
{
	cleanup(buf_done) struct buf text = buf_make(LIST_MAX);
	cleanup(close_fd) int fd = -1;

	if (!read_file(path, &text) || strstr(buf_str(&text), cert))
		return;
	fd = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		(void)!write_all(fd, cert, strlen(cert));
}

/* A word of a line that is no comment. */
static bool has_host(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; *line; line += strspn(line, "\n")) {
		const char *end = line + strcspn(line, "#\n");

		for (const char *at = line; at < end;) {
			size_t word = strcspn(at, " \t\r#\n");

			if (word == len && strncmp(at, name, len) == 0)
				return true;
			at += word + (at + word < end);
		}
		line += strcspn(line, "\n");
	}
	return false;
}

/* The box's own name is no question for the name server outside. */
static void add_own_name(void)
{
	cleanup(buf_done) struct buf text = buf_make(HOSTS_MAX);
	cleanup(close_fd) int fd = -1;
	char name[HOST_NAME_MAX + 1] = "", line[2 * HOST_NAME_MAX];
	bool there = access(HOSTS, F_OK) == 0;

	if (gethostname(name, sizeof(name) - 1) < 0 || !name[0])
		return;
	snprintf(line, sizeof(line), "127.0.0.1\tlocalhost\n127.0.1.1\t%s\n", name);
	if (!there)
		return write_new(HOSTS, line);
	if (!read_file(HOSTS, &text) || has_host(buf_str(&text), name))
		return;
	snprintf(line, sizeof(line), "%s127.0.1.1\t%s\n",
		 text.len && text.data[text.len - 1] != '\n' ? "\n" : "", name);
	fd = open(HOSTS, O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		(void)!write_all(fd, line, strlen(line));
}

static void add_trust(const char *trust)
{
	const char *cert = trust + HASH_LEN + 1;
	char hashed[sizeof(HASHED) + HASH_LEN];

	if (strlen(trust) < HASH_LEN + 1)
		return;
	(void)mkdir("/etc/berth", 0755);
	write_new(ALONE, cert);
	snprintf(hashed, sizeof(hashed), HASHED, trust);
	if (access("/etc/ssl/certs", F_OK) == 0)
		write_new(hashed, cert);
	for (size_t i = 0; i < array_len(lists); i++)
		append(lists[i], cert);
}

void rootfs_setup(const char *trust)
{
	(void)mkdir("/etc", 0755); /* it is nearly always there */
	if (!has_name_server())
		write_new(RESOLV, NAME_SERVER);
	add_own_name();
	if (trust)
		add_trust(trust);
}
