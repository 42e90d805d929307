/* berth dev: a whole server in one directory, for as long as this runs. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/dev.h"
#include "cli/pool-size.h"
#include "cli/say.h"
#include "lib/file.h"
#include "lib/str.h"

#define IDLE_MS          60000
#define POSTGRES_WAIT_MS 60000
#define NODE_WAIT_MS     60000
#define EGRESS_WAIT_MS   30000
#define BERTHD_WAIT_MS   30000

/* clang-format off */
static const struct option_row options[] = {
	OPTION(OPTION_TEXT, dev_options, dir, "dir", 'd', "DIR", "where everything is kept"),
	OPTION(OPTION_TEXT, dev_options, listen, "listen", 'l', "ADDRESS",
	       "where the API listens (" DEV_DEFAULT_LISTEN ")"),
	OPTION(OPTION_TEXT, dev_options, runtime, "runtime", 'r', "RUNTIME",
	       "crun or runsc, for sandboxes that name none"),
	OPTION(OPTION_TEXT, dev_options, pool_size, "pool-size", 0, "SIZE",
	       "size of the disk pool when it is made (" DEV_DEFAULT_POOL_SIZE ")"),
	OPTION(OPTION_LIST, dev_options, insecure, "insecure-registry", 0, "HOST",
	       "pull from this registry without TLS; may be repeated"),
	OPTION(OPTION_LIST, dev_options, cors, "cors-origin", 0, "ORIGIN",
	       "let web pages of this origin call the API; may be repeated"),
	OPTION(OPTION_FLAG, dev_options, quiet, "quiet", 'q', NULL, "say only what is wrong"),
	OPTION_ROWS_END
};
/* clang-format on */

#define PORT_MAX         65535
#define POOL_MIN_MB      128UL

/* "host:port" that can be listened on now: better said here than in a daemon's log. */
static int check_listen(const char *listen, struct err *e)
{
	const char *colon = strrchr(listen, ':');
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_PASSIVE | AI_NUMERICSERV | AI_NUMERICHOST };
	struct addrinfo *found;
	cleanup(close_fd) int fd = -1;
	char host[64];
	int rc, one = 1;
	uint64_t port;

	if (!colon || !str_copy_bytes(host, sizeof(host), listen, (size_t)(colon - listen)) ||
	    str_u64(colon + 1, &port, e) < 0 || port < 1 || port > PORT_MAX ||
	    getaddrinfo(host, colon + 1, &hints, &found) != 0) {
		err_set(e, ERR_INVALID, "--listen: not an address and port: %.60s", listen);
		return err_fix(e, "Write it like 127.0.0.1:7071, with a port up to %d.", PORT_MAX);
	}
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	rc = bind(fd, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	if (rc == 0)
		return 0;
	err_sys(e, errno, "cannot listen on %s", listen);
	return err_fix(e, "Give another one with --listen, for example 127.0.0.1:7071.");
}

static int check(struct dev *dev, const struct dev_options *o, struct err *e)
{
	uint64_t bytes;

	if (!o->dir)
		return err_set(e, ERR_INVALID, "berth dev needs --dir DIR");
	if (geteuid() != 0) {
		err_set(e, ERR_DENIED, "berth dev needs root, for mounts and cgroups");
		return err_fix(e, "Run it with sudo. Only berth-node stays root.");
	}
	if (str_size(o->pool_size, &bytes, e) < 0)
		return err_wrap(e, "--pool-size");
	if (bytes < POOL_MIN_MB << 20) {
		err_set(e, ERR_INVALID, "--pool-size: %.40s is too small for a file system",
			o->pool_size);
		return err_fix(e, "Give at least %lum; images and sandboxes live in it.",
			       POOL_MIN_MB);
	}
	if (o->runtime && strcmp(o->runtime, "crun") != 0 && strcmp(o->runtime, "runsc") != 0)
		return err_set(e, ERR_INVALID, "--runtime is crun or runsc, not %.40s", o->runtime);
	if (pool_size_check(o->dir, o->pool_size, e) < 0)
		say("%s", e->msg); /* it is for trying things: it may never be filled */
	dev->runtime = o->runtime ? o->runtime : engine_default(dev->engine);
	snprintf(dev->url, sizeof(dev->url), "http://%s", o->listen);
	if (account_find(&dev->account, e) < 0)
		return -1;
	return account_find_egress(&dev->egress, e);
}

static int stop_stale(struct dev *dev, struct err *e)
{
	static const enum dev_daemon order[] = { DEV_BERTHD, DEV_EGRESS, DEV_NODE,
						 DEV_POSTGRES };

	for (size_t i = 0; i < array_len(order); i++)
		if (daemon_stop_stale(&dev->daemons[order[i]], &dev->home, e) < 0)
			return -1;
	return 0;
}

static int bring_up(struct dev *dev, struct err *e)
{
	if (stop_stale(dev, e) < 0 || check_listen(dev->options->listen, e) < 0 ||
	    dev_init_database(dev, e) < 0 ||
	    dev_start(dev, DEV_POSTGRES, dev_postgres_ready, POSTGRES_WAIT_MS, e) < 0 ||
	    dev_start(dev, DEV_NODE, dev_node_ready, NODE_WAIT_MS, e) < 0 ||
	    dev_start(dev, DEV_EGRESS, dev_egress_ready, EGRESS_WAIT_MS, e) < 0 ||
	    dev_make_keys(dev, e) < 0 ||
	    dev_start(dev, DEV_BERTHD, dev_berthd_ready, BERTHD_WAIT_MS, e) < 0)
		return -1;
	return 0;
}

static int greet(const struct dev *dev, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(4096);
	cleanup(buf_done) struct buf key = buf_make(DEV_KEY_SIZE);

	if (file_read(dev->dirfd, "key", &key, e) < 0)
		return -1;
	buf_addf(&text, "Berth is up.\n  API     %s\n  key     %s/key\n  logs    %s/log\n",
		 dev->url, dev->dir, dev->dir);
	if (dev->engine[0])
		buf_addf(&text, "%s\n", dev->engine);
	if (dev->first_start)
		buf_addf(&text, "  first key, also in that file:  %.*s\n",
			 (int)strcspn(buf_str(&key), "\r\n"), buf_str(&key));
	buf_addf(&text,
		 "In another terminal:\n"
		 "  . %s/env\n"
		 "  berth image import base rootfs.tar    (or: berth image pull REFERENCE)\n"
		 "  berth run base -- echo hello\n"
		 "Ctrl-C stops everything and deletes all sandboxes.\n",
		 dev->dir);
	return say_out(buf_str(&text), text.len, e);
}

static void dev_done(struct dev *dev)
{
	close_fd(&dev->runfd);
	close_fd(&dev->logfd);
	close_fd(&dev->dirfd);
	close_fd(&dev->sigfd);
	close_fd(&dev->lockfd);
}

static int run(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	struct dev_options o = *(const struct dev_options *)given;
	cleanup(dev_done) struct dev dev = { .options = &o,
					     .dirfd = -1,
					     .runfd = -1,
					     .logfd = -1,
					     .lockfd = -1,
					     .sigfd = -1 };
	struct err ignored;

	(void)c, (void)args;
	o.listen = o.listen ? o.listen : DEV_DEFAULT_LISTEN;
	o.pool_size = o.pool_size ? o.pool_size : DEV_DEFAULT_POOL_SIZE;
	umask(022);
	if (check(&dev, &o, e) < 0 || dev_signals(&dev, e) < 0 || dev_layout(&dev, e) < 0 ||
	    dev_configure(&dev, e) < 0)
		return -1;
	if (bring_up(&dev, e) < 0) {
		(void)dev_stop(&dev, false); /* the first error is the one to tell */
		return -1;
	}
	if (!o.quiet)
		(void)!greet(&dev, &ignored); /* stdout may have no reader */
	while (!dev.stops)
		dev_turn(&dev, IDLE_MS);
	if (!o.quiet)
		say("stopping");
	return dev_stop(&dev, true) ? 0 : 1;
}

const struct command cmd_dev = {
	.name = "dev",
	.usage = "--dir DIR",
	.help = "Run a whole server in one directory, until Ctrl-C",
	.options = options,
	.record_size = sizeof(struct dev_options),
	.run = run,
};
