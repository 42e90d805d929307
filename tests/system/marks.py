"""What a test may say about itself."""
import os
import signal

SLOW = int(os.environ.get("BERTH_TEST_SLOW", "1"))  # times slower than a machine: an emulated one


class TestTimeout(BaseException):  # not to be caught by a test's own `except Exception`
    pass


class Skip(Exception):
    pass


def on_stop(signum, frame):
    """Once: timeout(1) tells a program and then its whole group, and the second must not cut the sweep."""
    signal.signal(signum, signal.SIG_IGN)
    raise KeyboardInterrupt


def on_alarm(signum, frame):
    raise TestTimeout("the test took too long")


def watchdog(seconds):
    """TestTimeout after that time, and every 10 s from then on, until it is set to 0: what a test has in its
    `finally` can hang as well as the test."""
    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds, 10 if seconds else 0)


def only(*runtimes):
    def mark(test):
        test.runtimes = runtimes
        return test
    return mark


def limit(seconds):
    def mark(test):
        test.limit = seconds
        return test
    return mark


def limit_of(test):
    return getattr(test, "limit", 120) * SLOW


def runtimes_of(test, module):
    return getattr(test, "runtimes", getattr(module, "RUNTIMES", ("crun", "runsc")))
