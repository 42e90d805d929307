"""Background execs: signals that are delivered, trees that die, waits that tell the truth."""
import os
import pathlib
import signal
import threading
import time
import urllib.parse

import nodeproto
from marks import limit, only
from server import leftovers, signal_all, wait_until
from test_journal import begin, follow, get, path, wait_end


def kill(s, box, ident, **body):
    return s.api.call("POST", path(box, ident, "/kill"), body)


def wait(s, box, ident, **query):
    return s.api.get(path(box, ident, "/wait?" + urllib.parse.urlencode(query)))


def said(s, box, ident, text, seconds=30):
    def there():
        page = s.api.get(path(box, ident, "/output"))
        return text in page.get("stdout", "") + page.get("stderr", "")
    wait_until(there, seconds, f"{ident} saying {text!r}")


def test_w12_kill_delivers_the_signal_that_was_given(s):
    with s.box() as box:
        ident = begin(s, box.id, "trap 'echo got usr1' USR1; echo up; while :; do sleep 0.05; done")["id"]
        said(s, box.id, ident, "up")
        assert kill(s, box.id, ident, signal="USR1")["state"] == "running"
        said(s, box.id, ident, "got usr1")
        assert kill(s, box.id, ident, signal=10)["state"] == "running"
        said(s, box.id, ident, "got usr1\ngot usr1")
        end = kill(s, box.id, ident)
        assert (end["state"], end["kind"], end["exit_code"], end["signal"]) == ("ended", "killed", None, 9), end
        assert kill(s, box.id, ident, signal="TERM") == end  # it has ended: as it is
        assert follow(s, box.id, ident)[0] == b"up\ngot usr1\ngot usr1\n"
        for bad in ({"signal": "NONE"}, {"signal": 99}, {"grace_ms": -1}):
            assert s.api.request("POST", path(box.id, ident, "/kill"), bad)[0] == 400, bad


def test_w12_a_grace_is_given_and_then_ends(s):
    with s.box() as box:
        ident = begin(s, box.id, "trap '' TERM; echo up; sleep 1000")["id"]
        said(s, box.id, ident, "up")
        began = time.monotonic()
        end = kill(s, box.id, ident, signal="TERM", grace_ms=400)
        assert end["kind"] == "killed" and time.monotonic() - began > 0.3, end
        ident = begin(s, box.id, "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done")["id"]
        said(s, box.id, ident, "up")
        end = kill(s, box.id, ident, signal="TERM", grace_ms=30000)
        assert (end["kind"], end["exit_code"]) == ("exited", 5), end


# Wherever a guest's root may find one: mounted, or open in a process of berth-init's.
LEAVE = """for f in /sys/fs/cgroup/*/cgroup.procs /proc/[0-9]*/fd/*/cgroup.procs /proc/[0-9]*/fd/*/../cgroup.procs \\
/proc/[0-9]*/task/*/fd/*/cgroup.procs /proc/[0-9]*/cwd/cgroup.procs /proc/[0-9]*/task/*/cwd/cgroup.procs; do
if (echo 0 > $f) 2>/dev/null; then echo 0 > $f; echo "left by $f"; fi; done; """


@only("runsc")
def test_a_guest_cannot_leave_the_cgroup_it_is_found_by(s):
    """gVisor has no subreaper: a child that left its cgroup outlived a kill that said `leftovers: 0`."""
    alive = "ps | grep -v grep | grep -c 'sleep 700'; true"
    with s.box() as box:
        assert box.exec(LEAVE)["stdout"] == ""
        caps = box.exec("grep -E 'Cap(Prm|Eff|Bnd)' /proc/self/status")["stdout"].split()[1::2]
        assert caps and not any(int(c, 16) >> 21 & 1 for c in caps), caps  # CAP_SYS_ADMIN
        end = box.exec(f"({LEAVE} sleep 7001) & sleep 7000", timeout_ms=3000)
        assert end["kind"] == "timed_out", end
        assert box.exec(alive)["stdout"] == "0\n"
        ident = begin(s, box.id, f"({LEAVE} echo up; sleep 7003) & sleep 7002")["id"]
        said(s, box.id, ident, "up")
        assert kill(s, box.id, ident)["kind"] == "killed"
        assert box.exec(alive)["stdout"] == "0\n"
        box.exec(f"({LEAVE} sleep 7004) >/dev/null 2>&1 </dev/null & sleep 1")
        assert box.exec("true")["usage"]["alone"] is False
        assert s.api.call("POST", path(box.id, "kill"), {"scope": "all"})["leftovers"] >= 1
        assert box.exec(alive)["stdout"] == "0\n"


TREES = {
    "setsid": "setsid sleep 7777 & sleep 7777",
    "double fork": "(setsid sh -c 'sleep 7777 & sleep 7777 &' &); sleep 7777",
    "nohup": "nohup sleep 7777 >/dev/null 2>&1 & trap '' TERM HUP INT; sleep 7777; sleep 7777",
    "stopped": "sleep 7777 & sleep 0.3; kill -STOP $!; kill -STOP $$",
    "fork again and again": "f() { sleep 7777 & sleep 0.02; f; }; (f) & (f) & sleep 7777",
}


def sleepers(box):
    return int(box.exec("ps -o args | grep -c '^[s]leep 7777'")["stdout"])


def test_w12_killing_means_the_tree(s):
    with s.box(pids=1000) as box:
        for name, script in TREES.items():
            ident = begin(s, box.id, script)["id"]
            wait_until(lambda: sleepers(box) >= 1 or get(s, box.id, ident)["state"] == "ended", 30, name)
            time.sleep(0.2)
            end = kill(s, box.id, ident)
            assert end["kind"] == "killed", (name, end)
            assert sleepers(box) == 0, (name, box.exec("ps -o pid,ppid,stat,args")["stdout"])


def test_w12_killing_means_a_traced_tree_too(s):
    with s.box() as box:
        ident = begin(s, box.id, "exec /bin/probe trace")["id"]
        said(s, box.id, ident, "trac")
        assert kill(s, box.id, ident)["kind"] == "killed"
        assert box.exec("ps -o args | grep -c '[p]robe trace'")["stdout"].strip() == "0"


def test_who_stops_what_serves_it_is_ended_all_the_same(s):
    """A guest's root can stop the process between it and pid 1. Timeout, kill and leaving reach it all the same."""
    stop = "setsid sleep 7777 & kill -STOP $PPID; echo up; sleep 7777"
    with s.box() as box:
        end = s.api.call("POST", f"/v1/sandboxes/{box.id}/exec", {"command": stop, "timeout_ms": 2000})
        assert end["kind"] == "timed_out" and sleepers(box) == 0, end
        ident = begin(s, box.id, stop)["id"]
        said(s, box.id, ident, "up")
        end = kill(s, box.id, ident)
        assert end["kind"] == "killed" and sleepers(box) == 0, end


def test_what_a_killed_server_has_started_is_ended(s):
    with s.box() as box:
        assert box.exec("sleep 8888 >/dev/null 2>&1 &")["exit_code"] == 0
        wait_until(lambda: counted(box, "sleep 8888") == 1, 30, "it is there")  # it was a shell before
        ident = begin(s, box.id, "setsid sleep 7777 & (setsid sh -c 'sleep 7777 & sleep 7777' &); kill -KILL $PPID; sleep 7777",
                      timeout_ms=100000)["id"]
        wait_until(lambda: get(s, box.id, ident)["state"] == "ended", 60, "its end")
        assert get(s, box.id, ident)["kind"] == "lost"
        wait_until(lambda: sleepers(box) == 0, 60, "what it started has ended")
        assert counted(box, "sleep 8888") == 1  # of another


def counted(box, args):
    return int(box.exec(f"ps -o args | grep -c '^[{args[0]}]{args[1:]}'")["stdout"])


def test_what_an_ended_command_left_is_killed_with_it_and_nothing_else_is(s):
    left = "(setsid sh -c 'sleep 7777 & sleep 7777' >/dev/null 2>&1 &); sleep 7777 >/dev/null 2>&1 &"
    with s.box() as box:
        assert box.exec("sleep 8888 >/dev/null 2>&1 &")["exit_code"] == 0
        first, second = box.exec(left), box.exec(left)
        assert (first["kind"], second["kind"]) == ("exited", "exited")
        wait_until(lambda: sleepers(box) == 6, 30, "both have left three")
        assert not box.exec("true")["usage"]["alone"]  # what was left is in its numbers
        assert kill(s, box.id, first["id"], signal="TERM")["leftovers"] == 0 and sleepers(box) == 6
        end = kill(s, box.id, first["id"])
        assert end["kind"] == "exited" and end["leftovers"] >= 3 and sleepers(box) == 3, end
        assert kill(s, box.id, first["id"])["leftovers"] == 0
        assert s.api.call("POST", path(box.id, "kill"), {"scope": "background"}) == {"killed": 0, "leftovers": 0}
        assert (sleepers(box), counted(box, "sleep 8888")) == (3, 1)
        all_of_it = s.api.call("POST", path(box.id, "kill"), {})
        assert all_of_it["killed"] == 0 and all_of_it["leftovers"] >= 4, all_of_it
        assert (sleepers(box), counted(box, "sleep 8888")) == (0, 0)
        wait_until(lambda: box.exec("true")["usage"]["alone"], 30, "nothing is left")


def test_what_was_left_is_said_to_be_gone_only_if_that_was_seen(s):
    with s.box() as box:
        for where in ("{}/kill", "kill"):
            left = box.exec("sleep 7777 >/dev/null 2>&1 & echo $PPID")
            box.exec(f"kill -KILL {left['stdout'].strip()}")  # of init's: it stayed for what was left
            status, got, _ = s.api.request("POST", path(box.id, where.format(left["id"])), {})
            assert (status, sleepers(box)) == (200, 0), got
        other = box.exec("sleep 8888 >/dev/null 2>&1 &")
        assert kill(s, box.id, other["id"])["leftovers"] == 1
        assert counted(box, "sleep 8888") == 0


# The process of init's that runs the command, and a bomb that was started before.
KILL_SERVER = "(setsid sleep 7777 &); (setsid sh -c 'while :; do sleep 7777 & sleep 0.02; done' &); sleep 0.2; kill -9 $PPID; "


def test_a_command_that_kills_what_runs_it_outlives_no_kill_and_no_timeout(s):
    with s.box() as box:
        box.exec("sleep 8888 >/dev/null 2>&1 &")
        wait_until(lambda: counted(box, "sleep 8888") == 1, 30, "it is there")  # it was a shell before
        end = box.exec(KILL_SERVER + "exec sleep 7777", timeout_ms=20000)
        assert end["kind"] == "lost" and kill(s, box.id, end["id"])["leftovers"] == 0 and sleepers(box) == 0, end
        for name in ("background", "group", "all"):
            assert counted(box, "sleep 8888") == 1
            ident = begin(s, box.id, KILL_SERVER + "exec sleep 7777")["id"]
            assert wait_end(s, box.id, ident)["kind"] == "lost"
            got = s.api.call("POST", path(box.id, "kill"), {"scope": name, **({"group": "g"} if name == "group" else {})})
            assert got["killed"] == 0 and got["leftovers"] == (name == "all") and sleepers(box) == 0, (name, got)
        assert counted(box, "sleep 8888") == 0


def test_no_command_is_alone_beside_what_a_killed_server_left(s):
    with s.box() as box:
        for _ in range(3):
            end = box.exec("kill -9 $PPID; exec sh -c 'while :; do :; done'", timeout_ms=20000)
            assert end["kind"] == "lost", end
            use = box.exec("sleep 1")["usage"]
            assert not use["alone"] or use["cpu_ms"] < 400, use
            assert counted(box, "sh -c while") == 0


def test_a_kill_that_comes_again_tells_what_the_first_one_did(s):
    with s.box() as box:
        left = box.exec("sleep 7777 >/dev/null 2>&1 & sleep 7777 >/dev/null 2>&1 &")
        first, again = [s.api.request("POST", path(box.id, left["id"], "/kill"), {}, {"Idempotency-Key": "left"}) for _ in range(2)]
        assert first[0] == again[0] == 200 and first[1]["leftovers"] == again[1]["leftovers"] == 2, (first, again)
        assert again[2]["Idempotency-Replayed"] == "true"
        assert kill(s, box.id, left["id"])["leftovers"] == 0 and sleepers(box) == 0


def test_what_a_command_leaves_as_it_is_killed_is_killed_too(s):
    deaf = "setsid sh -c 'trap \"\" TERM; echo up; sleep 7777' & "
    with s.box() as box:
        for first, end, kind in (("", "exec sleep 1000", "killed"), ("trap 'exit 3' TERM; ", "while :; do sleep 0.05; done", "exited")):
            one, many = (begin(s, box.id, first + deaf + end)["id"] for _ in range(2))
            for ident in (one, many):
                said(s, box.id, ident, "up")
            wait_until(lambda: sleepers(box) == 2, 30, "both have left one")  # each was a shell before
            got = kill(s, box.id, one, signal="TERM", grace_ms=20000)
            assert got["kind"] == kind and got["leftovers"] >= 1 and sleepers(box) == 1, got
            got = s.api.call("POST", path(box.id, "kill"), {"scope": "background", "signal": "TERM", "grace_ms": 20000})
            assert got["killed"] == 1 and got["leftovers"] >= 1 and sleepers(box) == 0, got


BOMB = "f() { while :; do (f) & sleep 0.05; done 2>/dev/null; }; (f &) ; (setsid sh -c 'while :; do sleep 7777 & done' &) ; sleep 1"


@only("crun")
def test_a_fork_bomb_that_outlived_its_command_is_ended_at_the_process_limit(s):
    with s.box(pids=64) as box:
        for scope in (False, True):
            bomb = box.exec(BOMB)
            assert bomb["kind"] == "exited", bomb
            wait_until(lambda: s.api.request("POST", f"/v1/sandboxes/{box.id}/exec", {"command": "true"})[0] == 429, 30,
                       "the sandbox has no room")
            if scope:
                assert s.api.call("POST", path(box.id, "kill"), {})["leftovers"] > 20
            else:
                assert kill(s, box.id, bomb["id"])["leftovers"] > 20
            assert box.exec("echo ok")["stdout"] == "ok\n"
            assert sleepers(box) == 0


@only("crun")
def test_pc5_kill_all_counts_and_keeps_to_its_scope(s):
    with s.box() as box:
        back = [begin(s, box.id, "sleep 1000")["id"] for _ in range(3)]
        front = s.api.upgrade(box.id)
        front.sendall(nodeproto.exec_frame(["sleep", "1000"], ident="front"))
        wait_until(lambda: len(s.api.get(path(box.id) + "?state=running")["execs"]) == 4, 20, "four running")
        assert s.api.call("POST", path(box.id, "kill"), {"scope": "background"}) == {"killed": 3, "leftovers": 0}
        assert get(s, box.id, "front")["state"] == "running"
        assert {get(s, box.id, i)["kind"] for i in back} == {"killed"}
        assert s.api.call("POST", path(box.id, "kill"), {"scope": "all"}) == {"killed": 1, "leftovers": 0}
        assert s.api.call("POST", path(box.id, "kill"), {}) == {"killed": 0, "leftovers": 0}
        front.close()


@only("crun")
def test_a_mistaken_kill_kills_nobody(s):
    wrong = ({"signall": "TERM"}, {"scope": 5}, {"group": "g"}, {"scope": "all", "shell": "s"}, {"scope": ""},
             {"scope": "shell"}, {"signal": True}, {"signal": ""}, {"signal": 0}, {"grace_ms": "1"}, [], "all")
    with s.box() as box:
        ident = begin(s, box.id, "sleep 1000")["id"]
        for body in wrong:
            assert s.api.request("POST", path(box.id, "kill"), body)[0] == 400, body
        for body in ({"signall": "TERM"}, {"signal": None}, {"scope": "all"}, []):
            assert s.api.request("POST", path(box.id, ident, "/kill"), body)[0] == 400, body
        assert get(s, box.id, ident)["state"] == "running"
        nowhere = "sb_c1_" + "0" * 20
        assert s.api.request("POST", path(nowhere, "kill"), {})[0] == 404
        assert kill(s, box.id, ident, signal=9)["kind"] == "killed"


@only("crun")
def test_w13_pc6_cleanup_cleans(s):
    with s.box() as box:
        for _ in range(3):
            wait_end(s, box.id, begin(s, box.id, "true")["id"])
        ident = begin(s, box.id, "sleep 1000")["id"]
        assert s.api.request("DELETE", path(box.id, ident))[0] == 409
        assert s.api.call("DELETE", path(box.id)) == {"removed": 3}
        assert [e["id"] for e in s.api.get(path(box.id))["execs"]] == [ident]
        kill(s, box.id, ident)
        assert s.api.call("DELETE", path(box.id, ident)) == {"removed": 1}
        assert s.api.request("GET", path(box.id, ident))[0] == 404


def test_readiness_is_waited_for(s):
    with s.box() as box:
        ident = begin(s, box.id, "sleep 0.3; printf 'server lis'; sleep 0.1; echo 'tening on 80'; sleep 0.3; exit 3")["id"]
        assert wait(s, box.id, ident, **{"for": "log", "pattern": "listening on"})["ready"]
        assert wait(s, box.id, ident, **{"for": "log", "pattern": "/^server .* [0-9]+$/"})["ready"]
        assert wait(s, box.id, ident, **{"for": "log", "pattern": "/ON \\d\\d\\b/i"})["ready"]
        end = wait(s, box.id, ident)
        assert end["ready"] and (end["exec"]["kind"], end["exec"]["exit_code"]) == ("exited", 3), end
        never = wait(s, box.id, ident, **{"for": "log", "pattern": "no such thing"})
        assert (never["ready"], never["why"]) == (False, "ended"), never
        ident = begin(s, box.id, "sleep 1000")["id"]
        late = wait(s, box.id, ident, **{"for": "log", "pattern": "x", "timeout_ms": 300})
        assert (late["ready"], late["why"]) == (False, "timeout"), late
        for bad in ({"for": "log"}, {"for": "moon"}, {"for": "port"}, {"for": "log", "pattern": "/(/"},
                    {"for": "log", "pattern": "/a{9}/"}):
            assert s.api.request("GET", path(box.id, ident, "/wait?" + urllib.parse.urlencode(bad)))[0] == 400, bad


@only("crun")
def test_no_expression_holds_up_anybody(s):
    """glibc's matcher takes for ever to read this one."""
    with s.box() as box:
        ident = begin(s, box.id, "yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | head -c 4000000; sleep 1000")["id"]
        for hard in ("(\\b|^|$|\\b|^)*!", "((a|a)*(a|.)*(a*)*)*(a|a)*!"):
            late = wait(s, box.id, ident, **{"for": "log", "pattern": f"/{hard}/", "timeout_ms": 2000})
            assert (late["ready"], late["why"]) == (False, "timeout"), late
        assert s.healthy()


def test_a_port_is_waited_for(s):
    with s.box() as box:
        ident = begin(s, box.id, "sleep 0.5; while :; do echo hi | nc -l -p 8099; done")["id"]
        up = wait(s, box.id, ident, **{"for": "port", "port": 8099})
        assert (up["ready"], up["why"]) == (True, "port"), up
        no = wait(s, box.id, ident, **{"for": "port", "port": 8100, "timeout_ms": 300})
        assert (no["ready"], no["why"]) == (False, "timeout"), no


def test_standard_input_comes_in_parts(s):
    with s.box() as box:
        ident = begin(s, box.id, "cat; echo end", stdin="first,", stdin_open=True)["id"]
        for part in (b"\x00\xff", b"x" * 300000):
            s.api.call("POST", path(box.id, ident, "/stdin"), part)
        s.api.call("POST", path(box.id, ident, "/stdin?end=1"), b"last")
        out, _, end, _, _ = follow(s, box.id, ident)
        assert out == b"first,\x00\xff" + b"x" * 300000 + b"lastend\n" and end["exit_code"] == 0
        ident = begin(s, box.id, "cat")["id"]  # without being asked for there is none
        assert wait(s, box.id, ident)["exec"]["exit_code"] == 0
        assert s.api.request("POST", path(box.id, ident, "/stdin"), b"x")[0] == 409


def test_w15_a_frozen_guest_is_told_within_the_deadline(s):
    """Frozen with SIGSTOP from outside, as a host does that lost its lease: nothing inside answers."""
    with s.box() as box:
        ident = begin(s, box.id, "echo up; sleep 1000")["id"]
        said(s, box.id, ident, "up")
        pids = s.cgroup_pids(box.id)
        signal_all(pids, signal.SIGSTOP)
        try:
            began = time.monotonic()
            late = wait(s, box.id, ident, timeout_ms=500)
            assert (late["ready"], late["why"], late["exec"]["kind"]) == (False, "timeout", None), late
            assert get(s, box.id, ident)["state"] == "running"
            assert time.monotonic() - began < 20
        finally:
            signal_all(pids, signal.SIGCONT)
        assert kill(s, box.id, ident)["kind"] == "killed"


@only("crun")
def test_the_command_line_follows_lists_and_kills(s):
    with s.box() as box:
        code, out, err = s.berth("exec", "-b", "-e", "X=a b", box.id, "--", "sh", "-c", "printf \"$X\\0\\377\"; echo e >&2; sleep 1; echo end")
        ident = out.decode().strip()
        assert code == 0 and ident.startswith("ex_"), (code, out, err)
        assert s.berth("logs", "-f", box.id, ident) == (0, b"a b\x00\xffend\n", b"e\n")
        ident = s.berth("exec", "--background", box.id, "--", "sleep", "1000")[1].decode().strip()
        listed = s.berth("execs", box.id)[1].decode()
        assert ident in listed and "sleep 1000" in listed and "exited" in listed, listed
        assert s.berth("kill", box.id, ident) == (0, b"", b"")
        assert get(s, box.id, ident)["kind"] == "killed"
        ident = begin(s, box.id, "true")["id"]
        wait_end(s, box.id, ident)
        code, _, err = s.berth("kill", box.id, ident)
        assert code == 0 and b"now killed: 0" in err, (code, err)
        code, _, err = s.berth("logs", box.id, "nothing")
        assert code == 125 and b"no exec" in err, (code, err)


@limit(120)
@only("crun")  # there the host can stop one process of the guest
def test_a_hung_wrapper_is_read_and_its_processes_are_seen(s):
    """LG-5: nothing of it is asked: what it wrote is in its journal, and what it is doing another command tells."""
    box = s.api.create()
    url = f"/v1/sandboxes/{box}/wrappers/main"
    w = s.api.call("PUT", url, {"command": "echo said before; exec sleep 1000"})
    output = f"/v1/sandboxes/{box}/execs/{w['exec']}/output"
    wait_until(lambda: "said before" in str(s.api.request("GET", output)[1]), 30, "its output")
    (pid,) = wait_until(lambda: [p for p in s.cgroup_pids(box)
                                 if leftovers.read(f"/proc/{p}/cmdline") == "sleep\0001000\0"], 30, "it sleeps")
    os.kill(pid, signal.SIGSTOP)
    try:
        assert "said before" in str(s.api.request("GET", output)[1])
        told = s.api.get(f"/v1/sandboxes/{box}/execs/{w['exec']}")["pid"]
        rows = []

        def is_stopped():
            rows[:] = [x.split() for x in s.api.exec(box, "ps -o pid,stat,args").out.decode().splitlines()]
            return [x for x in rows if x[0] == str(told) and x[1].startswith("T") and x[-2:] == ["sleep", "1000"]]
        try:
            wait_until(is_stopped, 30, "told as stopped")
        except AssertionError as why:
            raise AssertionError(f"{why}: {told}, on the host {pathlib.Path(f'/proc/{pid}/stat').read_text()}: {rows}") from None
        assert s.api.get(url)["alive"] == "present"
    finally:
        os.kill(pid, signal.SIGCONT)
    s.api.delete(box)
    # DL-8: what is said of it too late brings nothing back.
    for verb, more in (("ready", {}), ("accepted", {}), ("settled", {"ok": True}), ("stop", {})):
        assert s.api.request("POST", f"{url}/{verb}", {"instance": w["instance"], **more})[0] == 404
    assert s.api.request("PUT", url, {"command": "true"})[0] == 404
    assert s.api.get("/v1/sandboxes/" + box)["state"] == "gone"


def wrapper_processes(s, url):
    """Told within seconds, whatever hangs."""
    began = time.monotonic()
    got = s.api.get(url + "/processes")
    assert time.monotonic() - began < 15 and not got["truncated"], got
    assert got["evidence"] == ("host" if s.runtime == "crun" else "engine"), got
    return got, {p["pid"]: p for p in got["processes"]}


@limit(120)
def test_lg5_a_wrapper_that_hangs_is_listed_with_its_tools(s):
    """It is stopped, and so is the process of berth-init that serves it: neither is asked."""
    with s.box() as box:
        url = f"/v1/sandboxes/{box.id}/wrappers/main"
        begin(s, box.id, "sleep 7103")  # beside it
        w = s.api.call("PUT", url, {"command": "sleep 7101 & (sleep 7102; true) & echo up; kill -STOP $PPID; kill -STOP $$"})
        said(s, box.id, w["exec"], "up")
        pid = s.api.get(f"/v1/sandboxes/{box.id}/execs/{w['exec']}")["pid"]

        def all_four():  # each of the two was a shell before
            got, by_pid = wrapper_processes(s, url)
            tools = [p for p in by_pid.values() if "sleep" in p["command"] and p["pid"] != pid and "kill" not in p["command"]]
            return len(by_pid) == 4 and len(tools) == 2 and (got, by_pid, tools)
        got, by_pid, tools = wait_until(all_four, 30, "the shell, its subshell and two tools")
        assert got["exec"] == w["exec"]
        first = by_pid[pid]
        assert first["pid"] in {p["parent"] for p in tools}, got
        if s.runtime == "crun":
            wait_until(lambda: wrapper_processes(s, url)[1][first["pid"]]["state"] == "stopped", 30, "stopped")
            assert first["command"].startswith("/bin/sh -c sleep 7101") and first["memory_bytes"] > 0, first
            assert sorted(p["command"] for p in tools) == ["sleep 7101", "sleep 7102"], tools
            signal_all(s.cgroup_pids(box.id), signal.SIGSTOP)  # init, too
            assert len(wrapper_processes(s, url)[1]) == 4
            signal_all(s.cgroup_pids(box.id), signal.SIGCONT)
        else:
            assert {p["command"] for p in tools} == {"[sleep]"} and first["state"] == "unknown", got


@limit(120)
def test_lg5_one_that_does_not_run_has_no_processes_and_is_not_woken(s):
    with s.box() as box:
        url = f"/v1/sandboxes/{box.id}/wrappers/main"
        assert s.api.request("GET", url + "/processes")[0] == 404
        s.api.call("PUT", url, {"command": "sleep 1000"})
        assert wrapper_processes(s, url)[1]
        s.api.call("POST", f"/v1/sandboxes/{box.id}/sleep")
        assert s.api.get(url + "/processes")["processes"] == []
        assert s.api.get(f"/v1/sandboxes/{box.id}")["state"] == "asleep"


@limit(120)
@only("crun")  # gVisor is gone at once
def test_lg5_while_it_falls_asleep_what_still_runs_is_listed(s):
    with s.box() as box:
        url = f"/v1/sandboxes/{box.id}/wrappers/main"
        seen = []
        for _ in range(5):  # it takes 1.6 s: we may stand still for so long
            w = s.api.call("PUT", url, {"command": "trap '' TERM; echo up; while :; do sleep 1; done"})
            said(s, box.id, w["exec"], "up")
            asleep = threading.Thread(target=s.api.call, args=("POST", f"/v1/sandboxes/{box.id}/sleep"))
            asleep.start()
            while asleep.is_alive():
                if s.api.get(f"/v1/sandboxes/{box.id}")["state"] == "falling_asleep":
                    seen.append(s.api.request("GET", url + "/processes")[1].get("processes"))
            asleep.join()
            if any(seen):
                break
        assert any(seen), seen
        assert s.api.get(url + "/processes")["processes"] == []


@limit(120)
@only("crun")  # gVisor tells names alone
def test_lg5_what_processes_call_themselves_is_cut_and_escaped(s):
    bad = '"\\\n\x1b[2J' + "x" * 100_000
    with s.box(pids=1000) as box:
        url = f"/v1/sandboxes/{box.id}/wrappers/main"
        script = 'sh -c "sleep 1000; true" "$(printf "\\377")" & i=0; while [ $i -lt 300 ]; do sleep 1000 & i=$((i+1)); done; echo up; wait'
        w = s.api.call("PUT", url, {"argv": ["sh", "-c", script, bad]})
        said(s, box.id, w["exec"], "up", 60)

        def escaped():  # it was a shell before
            got = s.api.get(url + "/processes")
            return any(p["command"].endswith("\ufffd") for p in got["processes"]) and got
        got = wait_until(escaped, 30, "the one with the bad byte")
        assert got["truncated"] and len(got["processes"]) == 256, len(got["processes"])
        assert all(len(p["command"]) <= 511 for p in got["processes"])
