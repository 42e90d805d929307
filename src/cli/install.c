#include "cli/install.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/programs.h"
#include "cli/say.h"
#include "lib/file.h"
#include "lib/str.h"

#define CONF_MAX    (16UL * 1024)
#define IMAGE_DIR   (INSTALL_STATE "/base.tmp")
#define IMAGE_TAR   (INSTALL_STATE "/base.tar")
#define KEY_MARK    INSTALL_STATE "/first-key-made"
#define BERTHD_CONF (INSTALL_CONF "/berthd.conf")
#define POSTGRES_AT "/run/berth-postgres"
#define SYSCTL_DIR  "/etc/sysctl.d"
#define SYSCTL_FILE "60-berth.conf"

static int become(void *arg)
{
	return account_become(arg);
}

static int run_to(const char *const *argv, const struct account *as, int out, struct err *e)
{
	struct proc_spec spec = { .argv = argv, .in = -1, .out = out };
	struct proc p;
	char how[64];
	int status;

	spec.cwd = "/";
	spec.err = out < 0 ? -1 : STDERR_FILENO; /* both are read, or neither */
	spec.prepare = as ? become : NULL;
	spec.arg = (void *)as; /* only read */
	if (proc_start(&spec, &p, e) < 0)
		return -1;
	status = proc_wait(&p);
	if (status == 0)
		return 0;
	proc_status_text(status, how, sizeof(how));
	return err_set(e, ERR_INTERNAL, "%s %s", argv[0], how);
}

int install_run(const char *const *argv, const struct account *as, struct err *e)
{
	return run_to(argv, as, STDERR_FILENO, e);
}

/* What reads strangers' bytes has a user of its own, which owns nothing of berthd's. */
static const struct {
	const char *name, *home;
} users[] = {
	{ "berth", INSTALL_STATE },
	{ "berth-egress", "/nonexistent" },
};

static bool users_done(struct install *i)
{
	for (size_t n = 0; n < array_len(users); n++)
		if (!getpwnam(users[n].name))
			return false;
	return account_find(&i->account, &(struct err){ 0 }) == 0 &&
	       strcmp(i->account.name, "berth") == 0;
}

static int users_act(struct install *i, struct err *e)
{
	for (size_t n = 0; n < array_len(users); n++) {
		const char *const argv[] = { "useradd", "--system", "--user-group",
					     "--home-dir", users[n].home, "--no-create-home",
					     "--shell", "/usr/sbin/nologin",
					     users[n].name, NULL };

		if (!getpwnam(users[n].name) && install_run(argv, NULL, e) < 0)
			return -1;
	}
	return users_done(i) ? 0 : err_set(e, ERR_INTERNAL, "the users are still not there");
}

/* clang-format off */
static const struct {
	const char *path;
	unsigned mode;
	bool service;
} dirs[] = {
	{ INSTALL_CONF,			0755, false },
	{ INSTALL_STATE,		0711, false },
	{ INSTALL_STATE "/state",	0700, true },
};
/* clang-format on */

static bool dirs_done(struct install *i)
{
	struct stat st;

	for (size_t n = 0; n < array_len(dirs); n++)
		if (stat(dirs[n].path, &st) < 0 || (st.st_mode & 07777) != dirs[n].mode ||
		    st.st_uid != (dirs[n].service ? i->account.uid : 0))
			return false;
	return true;
}

static int dirs_act(struct install *i, struct err *e)
{
	for (size_t n = 0; n < array_len(dirs); n++) {
		cleanup(close_fd) int fd = -1;
		bool service = dirs[n].service;

		if (dir_open(AT_FDCWD, dirs[n].path, dirs[n].mode, &fd, e) < 0)
			return -1;
		if (fchmod(fd, dirs[n].mode) < 0 ||
		    fchown(fd, service ? i->account.uid : 0, service ? i->account.gid : 0) < 0)
			return err_sys(e, errno, "set up %s", dirs[n].path);
	}
	return 0;
}

static bool conf_done(struct install *i)
{
	(void)i;
	return access(BERTHD_CONF, F_OK) == 0 &&
	       access(INSTALL_CONF "/node.conf", F_OK) == 0;
}

/* A file that is there may have been edited: it is never written again. */
static int write_new(const char *dir, const char *name, const struct buf *text, struct err *e)
{
	cleanup(close_fd) int fd = -1;

	if (dir_open(AT_FDCWD, dir, 0755, &fd, e) < 0)
		return -1;
	if (faccessat(fd, name, F_OK, 0) == 0)
		return 0;
	if (file_replace(fd, name, buf_str(text), text->len, e) < 0)
		return -1;
	return fchmodat(fd, name, 0644, 0) < 0 ? err_sys(e, errno, "set up %s", name) : 0;
}

static int conf_act(struct install *i, struct err *e)
{
	cleanup(buf_done) struct buf berthd = buf_make(CONF_MAX), node = buf_make(CONF_MAX);
	cleanup(buf_done) struct buf egress = buf_make(CONF_MAX);
	char init[PATH_MAX], image[PATH_MAX];

	if (program_find("berth-init", init, e) < 0 || program_find("berth-image", image, e) < 0)
		return -1;
	buf_addf(&berthd, "# See berthd(8).\nlisten = %s\n", i->options->listen);
	buf_addf(&berthd, "default_runtime = %s\n", engine_default(i->engine));
	buf_adds(&berthd, "database = host=" POSTGRES_AT " user=berth dbname=postgres\n"
			  "node_socket = /run/berth/node.sock\n"
			  "state_dir = " INSTALL_STATE "/state\n");
	buf_adds(&node, "# See berth-node(8).\ninstance = main\nsocket = /run/berth/node.sock\n"
			"socket_user = berth\nrun_dir = /run/berth/node\n"
			"pool = " INSTALL_STATE "/pool.img\n");
	buf_addf(&node, "pool_size = %s\ninit = %s\nimage_helper = %s\n", i->options->pool_size,
		 init, image);
	buf_adds(&egress, "# See berth-egress(8).\n");
	if (write_new(INSTALL_CONF, "berthd.conf", &berthd, e) < 0 ||
	    write_new(INSTALL_CONF, "node.conf", &node, e) < 0 ||
	    write_new(INSTALL_CONF, "egress.conf", &egress, e) < 0)
		return -1;
	return 0;
}

static bool sysctl_done(struct install *i)
{
	(void)i;
	return access(SYSCTL_DIR "/" SYSCTL_FILE, F_OK) == 0;
}

/* berth-node sets it in every sandbox; kernels before that was possible have one for all. */
static int sysctl_act(struct install *i, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(CONF_MAX);

	(void)i;
	buf_adds(&text, "# Berth: no copies of what a guest has sent, which no limit counts; see\n"
			"# SECURITY.md. Programs that read their transmit timestamps with the\n"
			"# packet (SOF_TIMESTAMPING_TX_*) without being privileged need 1.\n"
			"net.core.tstamp_allow_data = 0\n");
	/* First: a kernel that does not take it would refuse the file at every boot. */
	if (file_poke(AT_FDCWD, "/proc/sys/net/core/tstamp_allow_data", "0", e) < 0)
		return -1;
	return write_new(SYSCTL_DIR, SYSCTL_FILE, &text, e);
}

static bool database_done(struct install *i)
{
	(void)i;
	return access(INSTALL_STATE "/pg/PG_VERSION", F_OK) == 0 ||
	       access(INSTALL_STATE "/pg", F_OK) == 0;
}

static int database_act(struct install *i, struct err *e)
{
	static const char fresh[] = INSTALL_STATE "/pg.new";
	char initdb[PATH_MAX];
	const char *const argv[] = { initdb, "-D", fresh, "-U", "berth", "--auth-local=peer",
				     "--auth-host=reject", "-E", "UTF8", "--locale=C.UTF-8",
				     "--no-instructions", NULL };

	if (program_find_postgres("initdb", initdb, e) < 0 ||
	    file_remove_tree(AT_FDCWD, fresh, e) < 0)
		return -1;
	if (mkdir(fresh, 0700) < 0 || chown(fresh, i->account.uid, i->account.gid) < 0)
		return err_sys(e, errno, "make %s", fresh);
	if (install_run(argv, &i->account, e) < 0)
		return -1;
	return rename(fresh, INSTALL_STATE "/pg") < 0 ? err_sys(e, errno, "rename %s", fresh) : 0;
}

static bool services_done(struct install *i)
{
	static const char *const argv[] = { "systemctl", "is-active", "--quiet", "berth-postgres",
					    "berth-node", "berth-egress", "berthd", NULL };

	(void)i;
	return run_to(argv, NULL, -1, &(struct err){ 0 }) == 0;
}

static int services_act(struct install *i, struct err *e)
{
	static const char *const reload[] = { "systemctl", "daemon-reload", NULL };
	static const char *const start[] = { "systemctl", "enable", "--now", "berth-postgres",
					     "berth-node", "berth-egress", "berthd", NULL };

	(void)i;
	if (install_run(reload, NULL, e) < 0 || install_run(start, NULL, e) < 0)
		return err_fix(e, "`systemctl status berthd berth-egress berth-node` says more.");
	return 0;
}

static bool key_done(struct install *i)
{
	(void)i;
	return access(KEY_MARK, F_OK) == 0;
}

static int key_act(struct install *i, struct err *e)
{
	cleanup(close_fd) int in = -1, to = -1, mark = -1;
	char berthd[PATH_MAX], line[INSTALL_KEY];
	const char *const argv[] = { berthd, "--config", BERTHD_CONF,
				     "--create-key", "first", "--role", "admin", NULL };
	int ends[2];
	ssize_t n;

	if (program_find("berthd", berthd, e) < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	in = ends[0];
	to = ends[1];
	if (run_to(argv, &i->account, to, e) < 0)
		return -1;
	n = read(in, line, sizeof(line) - 1); /* one line, long since in the pipe */
	line[n > 0 ? n : 0] = '\0';
	if (!str_copy_bytes(i->key, sizeof(i->key), line, strcspn(line, "\r\n")) || !i->key[0])
		return err_set(e, ERR_INTERNAL, "berthd made no key");
	mark = open(KEY_MARK, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return mark < 0 ? err_sys(e, errno, "create " KEY_MARK) : 0;
}

static bool image_done(struct install *i)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	struct context c = *i->context;
	struct err ignored;

	if (i->options->no_image)
		return true;
	if (!services_done(i)) /* then another server answers there, with images of its own */
		return false;
	c.key = i->key[0] ? i->key : c.key;
	return client_call(&c, "GET", "/v1/images", NULL, &reply, &ignored) == 0 &&
	       json_len(json_get(reply.tree, "images")) > 0;
}

/* With our own commands: progress and errors as everywhere. */
static int image_act(struct install *i, struct err *e)
{
	static const char *const make[] = { "debootstrap", "--variant=minbase", "stable", IMAGE_DIR,
					    NULL };
	static const char *const pack[] = { "tar", "-C", IMAGE_DIR, "-cf", IMAGE_TAR, ".", NULL };
	struct context c = *i->context;
	const char *image = i->options->image;
	const struct command *cmd = image ? &cmd_image_pull : &cmd_image_import;
	cleanup(strv_done) struct strv args = { 0 };
	const char *name = "base"; /* the one option of `image pull` */
	int rc;

	c.key = i->key[0] ? i->key : c.key;
	if (image) {
		strv_add(&args, image);
		return cmd->run(&c, &name, &args, e);
	}
	if (file_remove_tree(AT_FDCWD, IMAGE_DIR, e) < 0 || install_run(make, NULL, e) < 0 ||
	    install_run(pack, NULL, e) < 0)
		return err_fix(e, "Install debootstrap, or give --image REFERENCE or --no-image.");
	strv_add(&args, name);
	strv_add(&args, IMAGE_TAR);
	rc = cmd->run(&c, NULL, &args, e);
	(void)unlink(IMAGE_TAR); /* only in the way */
	return file_remove_tree(AT_FDCWD, IMAGE_DIR, e) < 0 ? -1 : rc;
}

/* clang-format off */
const struct install_step install_steps[] = {
	{ "add the users berth and berth-egress",		users_done,	users_act },
	{ "make " INSTALL_CONF " and " INSTALL_STATE,		dirs_done,	dirs_act },
	{ "write the settings in " INSTALL_CONF,		conf_done,	conf_act },
	{ "write " SYSCTL_DIR "/" SYSCTL_FILE,			sysctl_done,	sysctl_act },
	{ "make a database in " INSTALL_STATE "/pg",		database_done,	database_act },
	{ "start the four services",				services_done,	services_act },
	{ "make the first API key",				key_done,	key_act },
	{ "make the image base",				image_done,	image_act },
};
/* clang-format on */
const size_t install_step_count = array_len(install_steps);
