#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/dev.h"
#include "cli/programs.h"
#include "cli/say.h"
#include "lib/file.h"
#include "lib/str.h"

#define OUTPUT_MAX     (64UL * 1024)
#define HEALTH_WAIT_MS 2000

/* A postmaster.pid whose process is not our PostgreSQL would keep ours from starting. */
static int drop_stale_postmaster(struct dev *dev, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(4096);
	struct err ignored;
	char first[24];
	uint64_t pid;

	if (file_read(dev->dirfd, "pg/postmaster.pid", &text, &ignored) < 0)
		return 0;
	if (str_copy_bytes(first, sizeof(first), buf_str(&text), strcspn(buf_str(&text), "\n")) &&
	    str_u64(first, &pid, &ignored) == 0 && pid > 0 && pid <= INT_MAX &&
	    daemon_is((pid_t)pid, &dev->daemons[DEV_POSTGRES], &dev->home))
		return err_set(e, ERR_CONFLICT, "a PostgreSQL (pid %d) still uses %s/pg", (int)pid,
			       dev->dir);
	if (unlinkat(dev->dirfd, "pg/postmaster.pid", 0) < 0)
		return err_sys(e, errno, "remove %s/pg/postmaster.pid", dev->dir);
	return 0;
}

/* Made beside its place and moved there when it is whole. */
int dev_init_database(struct dev *dev, struct err *e)
{
	cleanup(buf_done) struct buf said = buf_make(OUTPUT_MAX);
	char initdb[PATH_MAX], fresh[DEV_PATH_SIZE + 16];
	uid_t uid = dev->account.uid;
	gid_t gid = dev->account.gid;
	struct stat st;
	const char *const argv[] = { initdb, "-D", fresh, "-U", dev->account.name,
				     "--auth-local=peer", "--auth-host=reject", "-E", "UTF8",
				     "--locale=C.UTF-8", "--no-instructions", NULL };

	if (fstatat(dev->dirfd, "pg", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return drop_stale_postmaster(dev, e);
	if (program_find_postgres("initdb", initdb, e) < 0)
		return -1;
	if (!dev->options->quiet)
		say("making a database in %s/pg", dev->dir);
	snprintf(fresh, sizeof(fresh), "%s/pg.new", dev->dir);
	if (file_remove_tree(dev->dirfd, "pg.new", e) < 0)
		return -1;
	if (mkdirat(dev->dirfd, "pg.new", 0700) < 0 ||
	    fchownat(dev->dirfd, "pg.new", uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, errno, "make %s", fresh);
	if (dev_run_helper(dev, argv, "initdb.log", &said, e) < 0)
		return -1;
	if (renameat(dev->dirfd, "pg.new", dev->dirfd, "pg") < 0)
		return err_sys(e, errno, "rename %s", fresh);
	return 0;
}

bool dev_postgres_ready(struct dev *dev)
{
	cleanup(buf_done) struct buf said = buf_make(OUTPUT_MAX);
	char program[PATH_MAX], host[DEV_PATH_SIZE + 16];
	const char *const argv[] = { program, "-q", "-h", host, "-t", "1", NULL };
	struct err ignored;

	snprintf(host, sizeof(host), "%s/run/pg", dev->dir);
	return program_find_postgres("pg_isready", program, &ignored) == 0 &&
	       dev_run_helper(dev, argv, "postgres.log", &said, &ignored) == 0;
}

static bool answers(const struct dev *dev, const char *socket_name)
{
	cleanup(close_fd) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int n = snprintf(at.sun_path, sizeof(at.sun_path), "%s/run/%s", dev->dir, socket_name);

	return fd >= 0 && n > 0 && (size_t)n < sizeof(at.sun_path) &&
	       connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
}

bool dev_node_ready(struct dev *dev)
{
	return answers(dev, "node.sock");
}

bool dev_egress_ready(struct dev *dev)
{
	return answers(dev, "egress/policy.sock");
}

bool dev_berthd_ready(struct dev *dev)
{
	cleanup(fetch_reply_done) struct fetch_reply reply = { 0 };
	char url[DEV_PATH_SIZE + 16];
	struct fetch_request q = { .url = url, .body_fd = -1, .timeout_ms = HEALTH_WAIT_MS };
	struct err ignored;

	snprintf(url, sizeof(url), "%s/v1/health", dev->url);
	return fetch(&q, &reply, &ignored) == 0 && reply.status == 200;
}

/* A key from its file, or a fresh one that berthd makes and we keep. */
static int get_key(struct dev *dev, const char *file, const char *name, char out[DEV_KEY_SIZE],
		   bool *made, struct err *e)
{
	const struct daemon *berthd = &dev->daemons[DEV_BERTHD];
	const char *const argv[] = { berthd->program, "--config", berthd->argv[2], "--create-key",
				     name, "--role", "admin", NULL };
	cleanup(buf_done) struct buf text = buf_make(DEV_KEY_SIZE);
	struct err ignored;

	*made = file_read(dev->dirfd, file, &text, &ignored) < 0 || text.len == 0;
	if (*made) {
		buf_clear(&text);
		if (dev_run_helper(dev, argv, "berthd.log", &text, e) < 0)
			return err_wrap(e, "make the key %s", name);
		if (buf_overflowed(&text) || text.len == 0)
			return err_set(e, ERR_INTERNAL, "berthd made no key");
		if (file_replace(dev->dirfd, file, buf_str(&text), text.len, e) < 0)
			return -1;
	}
	if (!str_copy_bytes(out, DEV_KEY_SIZE, text.data, strcspn(buf_str(&text), "\r\n")))
		return err_set(e, ERR_INTERNAL, "%s/%s is too long", dev->dir, file);
	return 0;
}

int dev_make_keys(struct dev *dev, struct err *e)
{
	char key[DEV_KEY_SIZE];
	bool made;

	if (get_key(dev, "supervisor.key", "supervisor", dev->key, &made, e) < 0 ||
	    get_key(dev, "key", "first", key, &dev->first_start, e) < 0)
		return -1;
	return dev_write_env(dev, key, e);
}
