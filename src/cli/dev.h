/*
 * `berth dev`: everything a server needs in one directory, under one supervisor.
 *
 *   DIR/lock            held while one runs
 *   DIR/pg              PostgreSQL's data, of the service account
 *   DIR/state           berthd's own files, of the service account
 *   DIR/pool.img        the disk pool; made by berth-node
 *   DIR/node            berth-node's run directory, root's alone
 *   DIR/run             sockets and pid files; run/pg is PostgreSQL's, run/egress berth-egress'
 *   DIR/log             one file per daemon
 *   DIR/berthd.conf, DIR/node.conf, DIR/egress.conf, DIR/key, DIR/supervisor.key, DIR/env
 */
#pragma once

#include <sys/un.h>

#include "cli/command.h"
#include "cli/daemon.h"
#include "cli/engine.h"

#define DEV_DEFAULT_LISTEN    "127.0.0.1:7070"
#define DEV_DEFAULT_POOL_SIZE "8g"
#define DEV_SOCKET_ROOM       44 /* what the longest socket's path has after DIR */
#define DEV_DIR_MAX           (sizeof(((struct sockaddr_un *)0)->sun_path) - DEV_SOCKET_ROOM)
#define DEV_PATH_SIZE         256
#define DEV_KEY_SIZE          256

enum dev_daemon {
	DEV_POSTGRES,
	DEV_NODE,
	DEV_EGRESS,
	DEV_BERTHD,
	DEV_DAEMONS
};

struct dev_options {
	const char *dir;
	const char *listen;
	const char *runtime;
	const char *pool_size;
	struct strv insecure; /* registries to be spoken to without TLS */
	struct strv cors;     /* origins whose pages may call the API */
	bool quiet;
};

struct dev {
	const struct dev_options *options;
	char dir[DEV_PATH_SIZE];
	char url[DEV_PATH_SIZE];
	char key[DEV_KEY_SIZE];       /* the supervisor's own */
	const char *runtime;          /* of a sandbox whose create names none */
	char engine[ENGINE_WHY_SIZE]; /* why that one; empty if --runtime said it */
	bool first_start;             /* DIR/key was made just now */
	struct account account;       /* of berthd and PostgreSQL */
	struct account egress;        /* of berth-egress, which reads what strangers send */
	int dirfd, runfd, logfd, lockfd, sigfd;
	struct daemon_home home;
	struct daemon daemons[DEV_DAEMONS];
	char args[16][DEV_PATH_SIZE]; /* strings of the daemons' command lines */
	size_t arg_count;
	unsigned stops; /* how often we were asked to stop */
};

/* Directories and settings files. dev-layout.c */
must_check int dev_layout(struct dev *dev, struct err *e);
must_check int dev_lock(struct dev *dev, struct err *e);
must_check int dev_configure(struct dev *dev, struct err *e);
must_check int dev_write_env(struct dev *dev, const char *key, struct err *e);
const char *dev_path(struct dev *dev, const char *fmt, ...) printf_like(2, 3);

/* The database and the keys. dev-setup.c */
must_check int dev_init_database(struct dev *dev, struct err *e);
must_check int dev_make_keys(struct dev *dev, struct err *e);
bool dev_postgres_ready(struct dev *dev);
bool dev_node_ready(struct dev *dev);
bool dev_egress_ready(struct dev *dev);
bool dev_berthd_ready(struct dev *dev);

/* One turn of the supervisor: signals, the dead, the ones to start again. dev-loop.c */
must_check int dev_signals(struct dev *dev, struct err *e);
void dev_turn(struct dev *dev, unsigned timeout_ms);
must_check int dev_start(struct dev *dev, enum dev_daemon which, bool (*ready)(struct dev *dev),
			 unsigned timeout_ms, struct err *e);
must_check int dev_run_helper(struct dev *dev, const char *const *argv, const char *log,
			      struct buf *out, struct err *e);

/* All sandboxes, all daemons, all children. True if nothing is left. dev-stop.c */
bool dev_stop(struct dev *dev, bool delete_sandboxes);
