"""A real server, named by BERTH_URL and BERTH_API_KEY (tests/sdk/run.py starts one), and sandboxes that are gone afterwards."""
import glob
import itertools
import os
import pathlib
import random
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import berth  # noqa: E402

CASES = int(os.environ.get("BERTH_SDK_CASES", "40"))
SEED = int(os.environ.get("BERTH_SEED", str(int(time.time()))))
client = berth.Berth(image=os.environ.get("BERTH_IMAGE", "tools"))
_count = itertools.count(1)


def name():
    return f"py-{os.getpid()}-{next(_count)}"


def kill_all(ident):
    """Every process of a sandbox, by the host: what a crash of it is to its users."""
    tasks = glob.glob(f"/sys/fs/cgroup/**/*{ident}*/**/cgroup.procs", recursive=True)
    for pid in {int(line) for task in tasks for line in pathlib.Path(task).read_text().split()}:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it went with its init
            pass


class WithBox(unittest.TestCase):
    """One sandbox for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.box = berth.get_sandbox(client, name())

    @classmethod
    def tearDownClass(cls):
        cls.box.destroy()


def random_bytes(rng, most):
    """Of every awkward kind: NUL, no UTF-8, cut characters, long lines, no newline at the end."""
    word = rng.choice([b"line of text\n", b"\0", b"\xff\xfe", "é€𝄞".encode(), b"\n\n\r\n"])
    n = rng.randrange(most + 1)
    out = bytearray((word * (n // len(word) + 1))[:n])
    for i in rng.sample(range(n), n // 3):
        out[i] = rng.randrange(256)
    return bytes(out)


def rng():
    print(f"# BERTH_SEED={SEED}")
    return random.Random(SEED)
