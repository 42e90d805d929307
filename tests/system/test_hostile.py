"""A guest that took its init's place, and clients that mean harm: what they can reach is their own."""
import json
import os
import signal
import struct

import nodeproto
from client import ApiError
from marks import limit, only
from server import wait_until

STARTED = nodeproto.frame("started", struct.pack(">I", 7))


def exited(kind, signum=0):
    return nodeproto.frame("exited", struct.pack(">BIIQQQQ", nodeproto.KINDS.index(kind), 0, signum, 0, 0, 0, 0))


def liar(box, words):
    r = box.exec(["probe", "liar", words.hex()])
    assert r.exit_code == 0, r
    return box


def resident_kb(s, daemon):
    with open(f"/proc/{s.pid(daemon)}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def refused(call):
    """An error, or an end that was not seen: never what the guest says."""
    try:
        told = call()
    except ApiError as e:
        assert "unexpected frame" in e.body["message"], e
    else:
        end = told[-1][1] if isinstance(told, list) else told
        assert (end["kind"], end["exit_code"], end["stdout_bytes"]) == ("lost", None, 0), f"believed: {told}"


@only("runsc")
def test_output_before_the_start_does_not_become_the_head_of_an_answer(s):
    with s.box() as b:
        liar(b, nodeproto.frame("stdout", b"HTTP/1.1 200 OK\r\n\r\n") + STARTED + exited("exited"))
        path = f"/v1/sandboxes/{b.id}/exec"
        refused(lambda: list(s.api.events("POST", path, {"command": "x"})))
        refused(lambda: b.exec("x"))


@only("runsc")
def test_a_guest_that_starts_twice_is_not_given_more_time(s):
    with s.box() as b:
        liar(b, STARTED * 2)
        refused(lambda: b.exec("x", timeout_ms=500))


@only("runsc")
def test_oom_and_lost_are_not_the_guests_to_say(s):
    for kind in ("oom", "lost"):
        with s.box() as b:
            liar(b, STARTED + exited(kind))
            r = b.exec("x")
            assert (r.kind, r.exit_code) == ("lost", None), r


@only("runsc")
def test_nothing_counts_after_the_record_of_the_end(s):
    with s.box() as b:
        liar(b, STARTED + exited("signalled", 9) + nodeproto.frame("stdout", b"late") + STARTED + exited("exited"))
        r = b.exec("x")
        assert (r.kind, r.signal) in (("signalled", 9), ("lost", 0)) and r.out == b"", r


def test_nothing_a_guest_writes_lands_beside_its_disk(s):
    def beside(ident):
        top = os.path.join(s.dir, "node/alloc", s.allocation(ident))
        return sum(os.lstat(os.path.join(d, f)).st_size for d, _, files in os.walk(top) for f in files)

    with s.box(disk_mb=64) as b:
        before = beside(b.id)
        b.exec("for fd in 0 1 2; do head -c 1000000 /dev/zero > /proc/1/fd/$fd; done; "
               "head -c 1000000 /dev/zero > /.berth/sock/big")
        assert beside(b.id) == before, (before, beside(b.id))
        r = b.exec("head -c 200000000 /dev/zero > /.berth/sock/big")
        assert r.exit_code != 0, r


def test_a_guest_that_digs_deep_beside_its_socket_is_deleted_all_the_same(s):
    with s.box() as b:
        b.exec("mkdir -p /.berth/sock; cd /.berth/sock; i=0; "
               "while [ $i -lt 300 ]; do mkdir d && cd d || break; i=$((i+1)); done")
        ident = b.id
    assert s.api.get("/v1/sandboxes/" + ident)["state"] == "gone"


@only("crun")
@limit(90)
def test_commands_for_a_deleted_sandbox_leave_no_memory_behind(s):
    with s.box() as b:
        gone = b.id
    body = json.dumps({"argv": ["x" * 60000] * 2})

    def ask(times):
        conn = s.api.connect()
        for _ in range(times):
            conn.request("POST", f"/v1/sandboxes/{gone}/exec", body, s.api.headers())
            r = conn.getresponse()
            r.read()
            assert r.status == 404, r.status
        conn.close()

    ask(100)
    before = resident_kb(s, "berthd")
    ask(500)  # 60 MB of arguments
    assert resident_kb(s, "berthd") - before < 20000, (before, resident_kb(s, "berthd"))


def end_from_outside(s, ident):
    os.kill(s.init_pid(ident), signal.SIGKILL)
    wait_until(lambda: s.api.get(f"/v1/sandboxes/{ident}")["state"] == "failed", 20, "it is told")


@only("crun")
@limit(120)
def test_a_follower_that_does_not_read_is_dropped_without_harm(s):
    before = s.pid("berth-node")
    deaf = nodeproto.Node(s.dir + "/run/node.sock")
    for _ in range(3500):
        deaf.send("inventory", request="r", follow=1)
    for _ in range(30):  # each is told 3,500 times; at 4 MiB the link is closed, in the middle of it
        with s.box() as b:
            end_from_outside(s, b.id)
        with open(s.dir + "/log/berth-node.log") as f:
            if "does not read answers" in f.read():
                break
    else:
        raise AssertionError("the link was never closed")
    with s.box() as b:
        assert b.sh("echo here") == "here\n"
    assert s.pid("berth-node") == before


@only("crun")
def test_another_user_of_the_host_cannot_knock_at_berth_node(s):
    with open(s.dir + "/log/berth-node.log") as log:
        log.seek(0, os.SEEK_END)
        child = os.fork()
        if child == 0:
            os.setresgid(12345, 12345, 12345)
            os.setresuid(12345, 12345, 12345)
            try:
                nodeproto.Node(s.dir + "/run/node.sock")
            except PermissionError:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert "refused a connection" not in log.read()


@only("crun")
def test_one_guest_cannot_have_all_the_hosts_terminals(s):
    with s.box() as greedy, s.box() as other:
        greedy.exec("probe terminals 30 > /tmp/count 2>&1 &")
        wait_until(lambda: greedy.sh("cat /tmp/count 2>/dev/null; true"), 10, "it has taken them")
        assert int(greedy.sh("cat /tmp/count")) <= 256
        assert int(other.exec(["probe", "terminals", "0"]).out) > 0
