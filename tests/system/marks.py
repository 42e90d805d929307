"""What a test may say about itself."""
import os

SLOW = int(os.environ.get("BERTH_TEST_SLOW", "1"))  # times slower than a machine: an emulated one


class TestTimeout(BaseException):  # not to be caught by a test's own `except Exception`
    pass


class Skip(Exception):
    pass


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
    return getattr(test, "limit", 60) * SLOW


def runtimes_of(test, module):
    return getattr(test, "runtimes", getattr(module, "RUNTIMES", ("crun", "runsc")))
