"""Whoever dies, hangs or is full in the middle: the caller is told the truth, and within its time."""
import contextlib
import http.client
import os
import signal
import subprocess
import threading

from client import ApiError
from marks import limit, only
from server import signal_all, wait_until
from test_files import Upload, put, read, reason, url
from test_journal import begin, follow, get, in_parallel, path, wait_end

DEV_PREFIX = ["unshare", "-m", "--propagation", "private"]


@contextlib.contextmanager
def frozen(s, box):
    """As a host does that lost its lease, or a machine that swaps: nothing inside answers."""
    pids = s.cgroup_pids(box.id)
    signal_all(pids, signal.SIGSTOP)
    try:
        yield
    finally:
        signal_all(pids, signal.SIGCONT)


def never_a_success(call):
    """What was told: an error, or an end that was not seen."""
    try:
        r = call()
    except ApiError as e:
        assert e.status in (503, 504), e
        return e.status
    assert r["kind"] in ("lost", "timed_out") and r["exit_code"] is None, r
    return r["kind"]


@limit(180)
def test_a_frozen_guest_keeps_nobody_waiting(s):
    """A command begun before and one after, each with a limit; on crun also a kill, a read and a write."""
    with s.box() as b:
        put(b, "/root/f", b"old")
        before = begin(s, b.id, "sleep 7777", timeout_ms=10000)["id"]  # frozen before that is over
        told = {}

        def tell(name, call):
            told[name] = never_a_success(call)
        with frozen(s, b):
            calls = [lambda: tell("before", lambda: wait_end(s, b.id, before, 60)),
                     lambda: tell("after", lambda: b.exec("echo x > /root/f", timeout_ms=1000))]
            if s.runtime == "crun":
                calls += [lambda: tell("kill", lambda: s.api.call("POST", path(b.id, before, "/kill"), {})),
                          lambda: tell("read", lambda: read(b, "/root/f")),
                          lambda: tell("write", lambda: put(b, "/root/g", b"new"))]
            in_parallel(calls)
        assert told.get("kill", "lost") in ("lost", 504) and told["before"] == "lost", told
        wait_until(lambda: b.sh("ps -o args | grep -c '[s]leep 7777' || true") == "0\n", 40, "what had a limit is gone")
        assert b.sh("echo lives") == "lives\n"


@limit(120)
def test_init_killed_in_the_middle_of_a_write_leaves_the_old_file(s):
    with s.box() as b:
        put(b, "/root/f", b"old")
        up = Upload(s, b, "/root/f", 10_000_000, 5_000_000)
        down = s.api.connect()
        b.sh("dd if=/dev/zero of=/root/big bs=1M count=40 2>/dev/null")
        down.request("GET", url(b, "/root/big"), headers=s.api.headers())
        answer = down.getresponse()
        answer.read(1000)
        os.kill(s.init_pid(b.id), signal.SIGKILL)
        try:
            said = up.finish()
        except OSError:
            said = b""
        assert b" 503 " in said.split(b"\r\n")[0] or not said, said
        try:
            assert len(answer.read()) < 40 << 20, "a whole file, of a sandbox that died"
        except (http.client.IncompleteRead, ConnectionError):
            pass
        down.close()
        wait_until(lambda: s.api.get("/v1/sandboxes/" + b.id)["state"] == "failed", 30, "seen dead")
        s.api.call("POST", f"/v1/sandboxes/{b.id}/wake")
        assert read(b, "/root/f") == b"old"
        left = set(b.sh("ls -A /root").split()) - {"big", "f"}
        assert not left or s.runtime == "runsc", left  # gVisor has no files without a name


@only("crun")
def test_berth_node_killed_in_the_middle_hurts_no_stream_and_no_write(s):
    with s.box() as b:
        up = Upload(s, b, "/root/f", 10_000_000, 5_000_000)
        ident = begin(s, b.id, "seq 50000; sleep 1; seq 50000")["id"]
        s.kill("berth-node")
        assert b" 201 " in up.finish().split(b"\r\n")[0]
        out, _, end, _, _ = follow(s, b.id, ident)
        assert out == b"".join(b"%d\n" % n for n in range(1, 50001)) * 2 and end["exit_code"] == 0, end
        s.wait_healthy()
        assert read(b, "/root/f") == b"n" * 10_000_000


@contextlib.contextmanager
def small_journals(s, kb):
    """The place of the journals as a disk of this size, for a berthd that begins anew; seen by this server alone."""
    where = f"{s.dir}/state/journal"
    owner = os.stat(where)
    there = ["nsenter", "-m", "-t", str(s.process.pid)]
    subprocess.run([*there, "mount", "-t", "tmpfs", "-o", f"size={kb}k,mode=700,uid={owner.st_uid},gid={owner.st_gid}", "none", where],
                   check=True)
    try:
        s.kill("berthd")
        s.wait_healthy()
        yield f"/proc/{s.process.pid}/root{where}"
    finally:
        subprocess.run([*there, "umount", "-l", where], check=True)
        s.kill("berthd")
        s.wait_healthy()


@only("crun")
@limit(120)
def test_a_disk_that_is_full_of_journals_is_told_and_no_end_is_lost(s):
    with s.box() as b, small_journals(s, 400) as where:
        ident = begin(s, b.id, "seq 100000; echo end >&2; exit 3")["id"]
        end = wait_end(s, b.id, ident)
        assert (end["kind"], end["exit_code"], end["stdout_bytes"]) == ("exited", 3, 588895), end
        out, _, _, gap, _ = follow(s, b.id, ident)
        assert 0 < gap <= 588899 - len(out) and b"".join(b"%d\n" % n for n in range(1, 100001)).startswith(out), (gap, len(out))
        with open(where + "/fill", "wb", buffering=0) as f, contextlib.suppress(OSError):
            while f.write(b"x" * 4096):
                pass
        status, why = reason(b.exec, "touch /root/ran")
        assert (status, why) == (507, "no_space"), (status, why)
        assert reason(read, b, "/root/ran") == (404, "no_such_file")  # what was refused did not run
        assert get(s, b.id, ident)["exit_code"] == 3


@limit(300)
def test_a_stopped_berth_node_keeps_nobody_waiting(s):
    """Every call has a deadline; what was asked meanwhile is unknown, and ends when berth-node goes on."""
    made, told = s.api.create(), []
    deleting = threading.Thread(target=lambda: told.append(s.api.request("DELETE", "/v1/sandboxes/" + made)))
    s.signal("berth-node", signal.SIGSTOP)
    try:
        deleting.start()
        status, why, _ = s.api.request("GET", "/v1/host")
        assert status == 503 and why["reason"] == "node_unanswered" and "unknown" in why["message"], (status, why)
    finally:
        s.signal("berth-node", signal.SIGCONT)
    deleting.join()
    wait_until(lambda: s.api.delete(made)["state"] == "gone", 120, "it is deleted after all")
    assert s.api.get("/v1/host")["cpus"] > 0
    with s.box() as after:
        os.kill(s.init_pid(after.id), signal.SIGKILL)  # what ends by itself is still heard of
        wait_until(lambda: s.api.get(f"/v1/sandboxes/{after.id}")["state"] == "failed", 60, "the end was told")
