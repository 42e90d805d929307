"""A wall clock that jumps decides nothing."""
import atexit
import pathlib
import shutil
import sys
import tempfile
import time

from marks import limit, only
from server import TOP
from test_journal import begin, wait_end

sys.path.insert(0, str(TOP / "tests/crash"))
from clock import Clock  # noqa: E402

work = pathlib.Path(tempfile.mkdtemp(prefix="berth-clock-"))
work.chmod(0o711)
atexit.register(shutil.rmtree, work, ignore_errors=True)
clock = Clock(work / "clock")
DEV_ENV = clock.env
HOUR = 3600


def berthd_again(s):
    s.kill("berthd")
    s.wait_healthy()


@only("crun")
@limit(120)
def test_an_exec_that_is_found_after_a_jump_has_the_time_it_had(s):
    with s.box() as b:
        ident = begin(s, b.id, "echo begun; sleep 22; echo end", timeout_ms=90000)["id"]
        clock.set(HOUR)
        time.sleep(2)
        berthd_again(s)
        end = wait_end(s, b.id, ident)
        assert (end["kind"], end["exit_code"]) == ("exited", 0), end
        clock.set(0)
