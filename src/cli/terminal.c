#include "cli/terminal.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define DEFAULT_COLS 80
#define DEFAULT_ROWS 24

static uint16_t sane(unsigned n, uint16_t otherwise)
{
	return n > 0 && n <= EXEC_SIZE_MAX ? (uint16_t)n : otherwise;
}

void terminal_size(struct exec_size *ret)
{
	struct winsize w = { 0 };

	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &w) < 0)
		w = (struct winsize){ 0 };
	*ret = (struct exec_size){ sane(w.ws_col, DEFAULT_COLS), sane(w.ws_row, DEFAULT_ROWS) };
}

int terminal_open(struct terminal *t, struct err *e)
{
	struct termios raw;
	sigset_t set;

	if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &t->before) < 0) {
		err_set(e, ERR_INVALID, "standard input is no terminal");
		return err_fix(e, "For a script use `berth exec`.");
	}
	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	t->winch = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (t->winch < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(e, errno, "watch the terminal's size");
	raw = t->before;
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
		return err_sys(e, errno, "set up the terminal");
	t->raw = true;
	return 0;
}

void terminal_close(struct terminal *t)
{
	if (t->raw)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &t->before); /* it may have gone */
	t->raw = false;
	close_fd(&t->winch);
	t->winch = -1;
}

bool terminal_take_winch(struct terminal *t)
{
	struct signalfd_siginfo info;
	bool fresh = false;

	while (t->winch >= 0 && read(t->winch, &info, sizeof(info)) == sizeof(info))
		fresh = true;
	return fresh;
}
