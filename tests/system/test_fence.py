"""One host with a lease: it freezes its sandboxes before the lease is over, whatever hangs."""
import contextlib
import os
import pathlib
import pwd
import signal
import subprocess
import time

from client import ApiError
from marks import limit
from nodeproto import PRESENCE, Node, NodeError
from server import signal_all, wait_until
from test_node import SIZES, connect, image, refused

DIVISOR = 3  # a lease of 10 s, frozen 1.7 s before its end
LEASE, FREEZE_BEFORE = 30 / DIVISOR, 5 / DIVISOR
DEV_ENV = {"BERTH_TIMER_DIVISOR": str(DIVISOR), "BERTH_LEASE": "1"}
TICKING = "while :; do echo >> /root/ticks; sleep 0.05; done"
FENCE = ["none", "held", "frozen", "killing", "clear"]


def group(s):
    for top in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        found = pathlib.Path(top, "berth." + s.instance())
        if (found / "cgroup.freeze").exists():
            return found
    raise AssertionError("no cgroup v2 to look at")


def frozen(s):
    return "frozen 1" in (group(s) / "cgroup.events").read_text()


def tick_file(s, ident):
    return f"/proc/{s.pid('berth-node')}/root{s.dir}/node/pool/sandboxes/{s.allocation(ident)}/root/ticks"


def ticks(s, ident):
    """How often the process in the box came by, read from its disk by the host."""
    path = tick_file(s, ident)
    return os.path.getsize(path) if os.path.exists(path) else 0


def lease_until(s):
    uid = os.stat(s.dir + "/pg").st_uid
    out = subprocess.run(["setpriv", f"--reuid={uid}", "--clear-groups", "psql", "-h", s.dir + "/run/pg", "-d", "postgres",
                          "-U", pwd.getpwuid(uid).pw_name, "-Atc", "SELECT extract(epoch FROM lease_until) FROM host"],
                         capture_output=True, text=True, timeout=30, cwd="/")
    assert out.returncode == 0, out
    return float(out.stdout)


def lease(s, op, **values):
    me = os.geteuid()
    os.seteuid(os.stat(s.dir + "/pg").st_uid)
    try:
        return Node(s.dir + "/run/node.sock").call("lease", op=["ask", "hold", "freeze", "kill"].index(op), **values)
    finally:
        os.seteuid(me)


def ticking(s):
    ident = s.api.create()
    s.api.exec(ident, TICKING + " > /dev/null 2>&1 &")
    wait_until(lambda: ticks(s, ident) > 2, 30, "ticks")
    assert not frozen(s)
    return ident


def stands_still(s, ident):
    """When it came by for the last time: its file tells, however late this process looks."""
    wait_until(lambda: frozen(s), LEASE + 30, "frozen")
    before = ticks(s, ident)
    time.sleep(1)
    assert ticks(s, ident) == before, "it went on while it was frozen"
    return os.stat(tick_file(s, ident)).st_mtime


def goes_on(s, ident):
    before = ticks(s, ident)
    wait_until(lambda: not frozen(s), 30, "thawed")
    wait_until(lambda: ticks(s, ident) > before + 3, 30, "ticks again")
    assert s.api.exec(ident, ["echo", "hi"]).out == b"hi\n"


class Stopped:
    def __init__(self, *pids):
        self.pids = pids

    def __enter__(self):
        signal_all(self.pids, signal.SIGSTOP)

    def __exit__(self, *_):
        signal_all(self.pids, signal.SIGCONT)  # whom a test has killed meanwhile, nobody has to let go on


def guard_pid(s):
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (p / "comm").read_text() == "berth-guard\n" and s.dir + "/" in (p / "cmdline").read_text():
                return int(p.name)
        except OSError:
            pass  # ended meanwhile
    raise AssertionError("no berth-guard")


def postgres(s):
    """All of it, as a machine that hangs."""
    first = s.pid("postgres")
    return [first, *map(int, subprocess.run(["pgrep", "-P", str(first)], capture_output=True, text=True).stdout.split())]


@limit(120)
def test_berthd_hangs_and_the_sandboxes_are_frozen_before_the_lease_is_over(s):
    ident = ticking(s)
    with Stopped(s.pid("berthd")):
        end = lease_until(s)
        at = stands_still(s, ident)
        print(f"      frozen {end - at:.2f} s before the end of the lease")
        assert at < end
    goes_on(s, ident)
    s.api.delete(ident)


@limit(120)
def test_the_database_hangs_and_the_sandboxes_are_frozen_before_the_lease_is_over(s):
    ident = ticking(s)
    ends, stop = [], postgres(s)
    with Stopped(s.pid("berthd")):
        ends.append(lease_until(s))
        with Stopped(*stop):
            s.signal("berthd", signal.SIGCONT)
            at = stands_still(s, ident)
            print(f"      frozen {ends[0] - at:.2f} s before the end of the lease")
            assert at < ends[0]
            try:
                s.api.exec(ident, ["true"])
                raise AssertionError("a frozen sandbox ran a command")
            except ApiError as e:  # by its key's memory, or because the database cannot be asked
                assert e.status == 503, e
            except OSError:
                pass
    goes_on(s, ident)
    s.api.delete(ident)


@limit(120)
def test_both_daemons_hang_and_the_sandboxes_are_frozen_all_the_same(s):
    ident = ticking(s)
    with Stopped(s.pid("berthd"), s.pid("berth-node")):
        end = lease_until(s)
        at = stands_still(s, ident)
        print(f"      frozen {end - at:.2f} s before the end of the lease")
        assert at < end
    goes_on(s, ident)
    s.api.delete(ident)


@limit(120)
def test_a_node_killed_while_frozen_keeps_them_frozen(s):
    ident = ticking(s)
    with Stopped(s.pid("berthd")):
        stands_still(s, ident)
        old = s.pid("berth-node")
        s.kill("berth-node")
        wait_until(lambda: s.pid("berth-node") not in (old, 0), 30, "berth-node again")
        wait_until(lambda: os.path.exists(s.dir + "/run/node.sock"), 30, "its socket")
        said = wait_until(lambda: quiet(lambda: lease(s, "ask")), 30, "an answer")
        assert FENCE[said["state"]] == "frozen", said
        stands_still(s, ident)
        refused = None
        try:
            Node(s.dir + "/run/node.sock").call("connect", request="t", sandbox=ident, generation=1)
        except NodeError as e:
            refused = str(e)
        assert refused and "frozen" in refused, refused
    goes_on(s, ident)
    s.api.delete(ident)


@limit(120)
def test_a_thaw_that_fails_is_done_by_the_next_word(s):
    ident = ticking(s)
    node = s.pid("berth-node")
    inside = ["nsenter", "-t", str(node), "-m"]
    switch = str(group(s) / "cgroup.freeze")
    with contextlib.ExitStack() as guard:
        with Stopped(s.pid("berthd")):
            stands_still(s, ident)
            guard.enter_context(Stopped(guard_pid(s)))  # it sees no mount of berth-node's, and may thaw in its place
            subprocess.run([*inside, "mount", "--bind", "/dev/full", switch], check=True)
            guard.callback(subprocess.run, [*inside, "umount", switch], check=True)
        wait_until(lambda: FENCE[lease(s, "ask")["state"]] == "held", 30, "told to go on")
        time.sleep(LEASE)  # and told again
        assert frozen(s)
    goes_on(s, ident)
    s.api.delete(ident)


@limit(120)
def test_what_was_decided_under_another_epoch_is_not_begun(s):
    wait_until(lambda: FENCE[lease(s, "ask")["state"]] == "held", 30, "a lease")
    epoch, node = lease(s, "ask")["epoch"], connect(s)
    target = {"request": "t", "sandbox": "sb_epoch", "generation": 1}
    spec = {"image": image(s, node), "runtime": s.runtime, **SIZES}
    for stale in (epoch - 1, 0):
        assert "epoch" in refused(node.call, "create", **target, epoch=stale, **spec)
    node.call("create", **target, epoch=epoch, **spec)
    assert "epoch" in refused(node.call, "start", **target, epoch=epoch - 1)
    assert PRESENCE[node.call("observe", **target)["process"]] == "absent"
    assert node.call("start", **target, epoch=epoch)["ready"]
    assert PRESENCE[node.call("destroy", **target)["presence"]] == "absent"


def quiet(call):
    try:
        return call()
    except (OSError, NodeError):
        return None


@limit(120)
def test_told_that_the_epoch_is_anothers_it_kills_and_begins_anew(s):
    ident = ticking(s)
    epoch = lease(s, "ask")["epoch"]
    pids = s.cgroup_pids(ident)
    assert pids
    with Stopped(s.pid("berthd")):
        said = lease(s, "kill", epoch=epoch)
        assert FENCE[said["state"]] == "clear" and not s.cgroup_pids(ident), said
        for stale in (epoch, epoch - 1):  # not again under what was taken over
            try:
                lease(s, "hold", epoch=stale, until_ms=time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 10**6 + 9000)
                raise AssertionError("it took a lease of an epoch that is over")
            except NodeError:
                pass
    wait_until(lambda: lease(s, "ask")["epoch"] > epoch, 30, "a new epoch")
    wait_until(lambda: s.api.get("/v1/sandboxes/" + ident)["state"] == "failed", 30, "told that it ended")
    s.api.delete(ident)
    ident = s.api.create()
    assert s.api.exec(ident, ["echo", "hi"]).out == b"hi\n"
    s.api.delete(ident)


@limit(120)
def test_leases_are_turned_off_and_on_again_under_a_running_sandbox(s):
    ident = ticking(s)
    for word, fence in (("off", "none"), ("on", "held")):
        conf = pathlib.Path(s.dir, "berthd.conf")
        conf.write_text(conf.read_text().replace("lease = on\n", "").replace("lease = off\n", "") + f"lease = {word}\n")
        old = s.pid("berthd")
        s.kill("berthd")
        wait_until(lambda: s.pid("berthd") not in (old, 0) and s.healthy(), 30, "berthd again")
        wait_until(lambda: FENCE[lease(s, "ask")["state"]] == fence, 30, fence)
        goes_on(s, ident)
    s.api.delete(ident)
