#include "node/listen-socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/str.h"

#define BACKLOG 64

int listen_socket_open(const char *path, uid_t user, int *ret, struct err *e)
{
	int type = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
	cleanup(close_fd) int fd = socket(AF_UNIX, type, 0); /* CLOEXEC */
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	if (fd < 0)
		return err_sys(e, errno, "socket");
	if (!str_copy(at.sun_path, sizeof(at.sun_path), path))
		return err_set(e, ERR_INVALID, "socket path too long: %s", path);
	(void)unlink(at.sun_path);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, BACKLOG) < 0)
		return err_sys(e, errno, "listen on %s", at.sun_path);
	/* SO_PEERCRED decides as well; this keeps others out, and out of our log. */
	if (chmod(at.sun_path, 0600) < 0 || chown(at.sun_path, user, (gid_t)-1) < 0)
		return err_sys(e, errno, "open %s to its user", at.sun_path);
	*ret = take_fd(fd);
	return 0;
}

int listen_socket_accept(int listener, uid_t user)
{
	cleanup(close_fd) int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (fd < 0)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	    (peer.uid == 0 || peer.uid == user))
		return take_fd(fd);
	log_event(LOG_WARN, "berth-node refused a connection of another user", NULL);
	return -1;
}
