#include "init/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

void pty_resize(int master, const struct exec_size *size)
{
	struct winsize w = { .ws_col = size->cols, .ws_row = size->rows };

	/* The foreground process group gets SIGWINCH. It cannot fail on a terminal. */
	(void)ioctl(master, TIOCSWINSZ, &w);
}

int pty_open(const struct exec_size *size, int *master, int *slave, struct err *e)
{
	cleanup(close_fd) int m = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	char name[64];
	int s;

	if (m < 0 || grantpt(m) < 0 || unlockpt(m) < 0 || ptsname_r(m, name, sizeof(name)) != 0)
		return err_set(e, ERR_LIMIT, "the sandbox has no terminal left");
	s = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (s < 0)
		return err_sys(e, errno, "open %s", name);
	pty_resize(m, size);
	*master = take_fd(m);
	*slave = s;
	return 0;
}

int pty_control(int slave)
{
	return ioctl(slave, TIOCSCTTY, 0);
}
