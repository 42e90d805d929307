"""One command, one truth: how it ended, what it said, and that its whole tree is gone."""
import base64
import glob
import os
import random
import re
import signal
import socket
import threading
import time

import nodeproto
from client import Api, ApiError, event_bytes
from marks import Skip, limit, only
from server import leftovers, wait_until

# Children that try to get away: a new session, a double fork, both. All are called "sleep 7777".
ESCAPE = ("setsid sleep 7777 & (setsid sh -c 'setsid sleep 7777 & sleep 7777' &) ; "
          "(trap '' HUP INT TERM; (sleep 7777 &) ; sleep 7777 &) ; ")


def sleepers_inside(box):
    return int(box.sh("ps -o args | grep -c '[s]leep 7777' || true"))


def sleepers_outside(s, box):
    """On crun the host sees them in the sandbox's cgroup; gVisor's tasks are not host processes by name."""
    return sum("sleep\0007777" in leftovers.read(f"/proc/{p}/cmdline") for p in s.cgroup_pids(box.id))


def random_bytes(n, seed):
    return random.Random(seed).randbytes(n)


def test_exit_codes_are_the_commands_own(s):
    with s.box() as b:
        for code in (0, 1, 2, 77, 126, 127, 128, 255):
            r = b.exec(["sh", "-c", f"exit {code}"])
            assert (r.kind, r.exit_code, r.signal) == ("exited", code, 0), r


def test_a_signal_is_not_an_exit_code(s):
    with s.box() as b:
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGABRT, signal.SIGSEGV):
            r = b.exec(["sh", "-c", f"kill -{int(number)} $$"])
            assert (r.kind, r.exit_code, r.signal) == ("signalled", None, number), r


def test_what_to_run_is_given_in_one_way(s):
    with s.box() as b:
        for verb, path in (("POST", "exec"), ("PUT", "wrappers/main")):
            for body, said in (({}, "argv or command is missing"), ({"argv": []}, "argv or command is missing"),
                               ({"argv": ["true"], "command": "true"}, "and not both")):
                status, got, *_ = s.api.request(verb, f"/v1/sandboxes/{b.id}/{path}", body)
                assert status == 400 and said in got["message"], (path, body, got)


def test_a_command_that_does_not_exist_is_an_error_not_an_exit(s):
    with s.box() as b:
        try:
            r = b.exec(["/no/such/thing"])
        except ApiError as e:
            assert e.status in (400, 404, 422) and e.body["message"] and "exit_code" not in e.body, e
        else:
            assert r.kind == "exited" and r.exit_code == 127, r


def test_arguments_environment_directory_and_input_arrive_unchanged(s):
    with s.box() as b:
        args = ["a b", "", "'\"$x`", "ünï", "*", "-n", "\n"]
        r = b.exec(["sh", "-c", 'for a; do printf "%s|" "$a"; done', "sh", *args])
        assert r.out.decode() == "".join(a + "|" for a in args), r
        r = b.exec("echo $A; echo $PATH; pwd", env={"A": "x=y z"}, cwd="/tmp")
        assert r.out.decode().split("\n")[0] == "x=y z" and r.out.decode().split("\n")[2] == "/tmp", r
        assert "/bin" in r.out.decode().split("\n")[1]
        assert b.exec(["cat"], stdin="in\0put ü\n".replace("\0", " ")).out == "in put ü\n".encode()
        assert b.exec(["cat"]).out == b""


def test_both_streams_are_byte_exact_as_json(s):
    with s.box() as b:
        put(b, "o", out := random_bytes(300_001, 1))
        put(b, "e", err := random_bytes(200_003, 2))
        r = b.exec("cat /root/o; cat /root/e >&2")
        assert "stdout_base64" in r and "stderr_base64" in r, list(r)
        assert (r.out, r.err) == (out, err)
        assert (r.stdout_bytes, r.stderr_bytes) == (len(out), len(err))
        assert b.exec(["printf", "gr\\303\\274n"]).stdout == "grün"


def test_both_streams_are_byte_exact_as_events(s):
    with s.box() as b:
        put(b, "o", out := random_bytes(300_001, 3))
        put(b, "e", err := random_bytes(200_003, 4))
        got, names = {"stdout": b"", "stderr": b""}, []
        for name, data in s.api.events("POST", f"/v1/sandboxes/{b.id}/exec",
                                       {"command": "cat /root/o; cat /root/e >&2; exit 5"}):
            names.append(name)
            if name in got:
                assert data["offset"] == len(got[name]), data["offset"]
                got[name] += event_bytes(data)
        assert names[0] == "started" and names[-1] == "exit" and names.count("exit") == 1, names[:3]
        assert (data["kind"], data["exit_code"]) == ("exited", 5)
        assert (got["stdout"], got["stderr"]) == (out, err)


def test_text_split_inside_a_character_is_whole_again_as_events(s):
    with s.box() as b:
        text = ("grün€😀" * 50_000).encode()
        put(b, "t", text)
        got = b"".join(event_bytes(d) for n, d in s.api.events(
            "POST", f"/v1/sandboxes/{b.id}/exec", {"argv": ["cat", "/root/t"]}) if n == "stdout")
        assert got == text


def test_both_streams_are_byte_exact_over_an_upgraded_connection(s):
    with s.box() as b:
        put(b, "o", out := random_bytes(3_000_001, 5))
        put(b, "e", err := random_bytes(2_000_003, 6))
        end, got_out, got_err = s.api.run_frames(b.id, ["sh", "-c", "cat /root/o & cat /root/e >&2; wait"])
        assert (end["kind"], end["code"]) == ("exited", 0)
        assert (got_out, got_err) == (out, err)


def test_input_over_an_upgraded_connection_is_byte_exact(s):
    with s.box() as b:
        data = random_bytes(1_500_007, 7)
        # The frames of 1.5 MB go out before anything is read: init and berthd must hold back, not drop.
        end, out, _ = s.api.run_frames(b.id, ["sh", "-c", "cat > /root/in; cat /root/in"], stdin=data)
        assert end["kind"] == "exited" and out == data


def test_input_after_its_end_goes_nowhere_and_the_command_runs_on(s):
    """input_after_its_end: one frame of a client had a running command told as lost."""
    with s.box() as b:
        with s.api.upgrade(b.id) as sock:
            sock.sendall(nodeproto.exec_frame(["sh", "-c", "cat; echo up; until [ -e /root/go ]; do sleep 0.1; done; exit 6"],
                                              stdin=True))
            for kind, data in ("stdin", b"a"), ("stdin_end", b""), ("stdin", b"b"), ("stdin_end", b""):
                sock.sendall(nodeproto.frame(kind, data))
            seen = b""
            for name, data in nodeproto.read_frames(sock):
                assert name in ("started", "stdout", "taken", "exited"), (name, data)
                seen += data if name == "stdout" else b""
                if name == "stdout" and seen.endswith(b"up\n"):
                    assert b.exec("touch /root/go").exit_code == 0  # it has come after the input: so does this
                if name == "exited":
                    end = nodeproto.decode_exit(data)
            assert seen == b"aup\n" and (end["kind"], end["code"]) == ("exited", 6), (seen, end)
        ident = s.api.call("POST", f"/v1/sandboxes/{b.id}/exec",
                           {"command": "cat; until [ -e /root/go2 ]; do sleep 0.1; done; exit 7", "background": True,
                            "stdin_open": True})["id"]
        at = f"/v1/sandboxes/{b.id}/execs/{ident}"
        s.api.call("POST", at + "/stdin?end=1", b"a")
        status, answer, _ = s.api.request("POST", at + "/stdin", b"b")
        assert status == 409, (status, answer)
        assert s.api.get(at)["state"] == "running"
        b.exec("touch /root/go2")
        wait_until(lambda: s.api.get(at)["state"] == "ended", 30, "it ended")
        assert (s.api.get(at)["kind"], s.api.get(at)["exit_code"]) == ("exited", 7), s.api.get(at)


def test_more_than_4_mib_is_cut_and_said_to_be(s):
    with s.box() as b:
        r = b.exec("head -c 6000000 /dev/zero; echo short >&2")
        assert (r.kind, r.exit_code) == ("exited", 0)
        assert r.stdout_truncated is True and r.stdout_bytes == 6_000_000
        assert len(r.out) == 4 << 20 and r.err == b"short\n" and not r.get("stderr_truncated")


def test_a_timeout_kills_the_whole_tree(s):
    with s.box() as b:
        r = b.exec(ESCAPE + "echo up; sleep 7777", timeout_ms=6000)
        assert (r.kind, r.exit_code) == ("timed_out", None), r
        assert r.out == b"up\n" and 5900 < r.wall_ms < 60000, r
        assert sleepers_outside(s, b) == 0  # the answer comes after the end was seen
        assert sleepers_inside(b) == 0


def test_a_client_that_goes_away_takes_the_whole_tree_with_it(s):
    with s.box() as b:
        for way in ("frames", "events"):
            if way == "frames":
                sock = s.api.upgrade(b.id)
                sock.sendall(nodeproto.exec_frame(["sh", "-c", ESCAPE + "echo up; sleep 7777"]))
                for name, data in nodeproto.read_frames(sock):
                    if name == "stdout":
                        break
                sock.close()
            else:
                stream = s.api.events("POST", f"/v1/sandboxes/{b.id}/exec", {"command": ESCAPE + "echo up; sleep 7777"})
                for name, data in stream:
                    if name == "stdout":
                        break
                stream.close()
            wait_until(lambda: sleepers_inside(b) == 0, 10, f"{way}: nothing of it runs inside")
            assert sleepers_outside(s, b) == 0


def test_a_signal_frame_reaches_the_command(s):
    with s.box() as b, s.api.upgrade(b.id) as sock:
        sock.sendall(nodeproto.exec_frame(["sh", "-c", "trap 'echo caught; exit 9' USR1; echo up; while :; do sleep 0.1; done"]))
        seen = b""
        for name, data in nodeproto.read_frames(sock):
            if name == "stdout":
                seen += data
                if seen == b"up\n":
                    sock.sendall(nodeproto.frame("signal", (10).to_bytes(4, "big")))
            if name == "exited":
                end = nodeproto.decode_exit(data)
        assert seen == b"up\ncaught\n" and (end["kind"], end["code"]) == ("exited", 9), (seen, end)


@only("crun")
def test_what_is_berths_own_is_not_for_a_client_to_ask_for(s):
    """Neither the flags of a wrapper in an EXEC frame (a cgroup, a journal that stays) nor a wrapper's name."""
    key = s.api.call("POST", "/v1/keys", {"name": "frames", "role": "user"})
    user = Api(s.port, key["key"])
    ident = user.create()
    with user.upgrade(ident) as sock:
        sock.sendall(nodeproto.exec_frame(["sh", "-c", "echo up; exec sleep 7777"], ident="plain", flags=8 | 16))
        for name, data in nodeproto.read_frames(sock):
            if name == "stdout":
                break
        of_box = f"/sys/fs/cgroup/**/{ident.replace('-', '_')}.*"
        assert glob.glob(of_box, recursive=True) and not glob.glob(of_box + "/plain", recursive=True)
    wait_until(lambda: user.get(f"/v1/sandboxes/{ident}/execs/plain")["state"] == "ended", 30, "it was killed")
    with user.upgrade(ident) as sock:
        sock.sendall(nodeproto.exec_frame(["true"], ident="wr.main.9.mine"))
        assert next(nodeproto.read_frames(sock))[0] == "error"
    for what, body in ("exec", {"argv": ["true"]}), ("terminals", {}):
        status, answer, _ = user.request("POST", f"/v1/sandboxes/{ident}/{what}", {**body, "id": "wr.main.9.mine"})
        assert status == 400 and "wrappers" in answer["message"], (what, status, answer)
    user.delete(ident)
    s.api.call("DELETE", "/v1/keys/" + key["id"])


def test_commands_of_one_sandbox_run_side_by_side(s):
    with s.box() as b:
        done, last = [], "[ $(ls /tmp/side | wc -l) = 8 ]"  # each waits for the other seven: one after another none would end
        b.exec("mkdir /tmp/side")
        command = f"touch /tmp/side/$$; until {last}; do sleep 0.05; done; echo "
        threads = [threading.Thread(target=lambda i=i: done.append(b.exec(f"{command}{i}").out)) for i in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert sorted(done) == [f"{i}\n".encode() for i in range(8)]


def test_a_command_killed_with_its_sandbox_is_lost_not_exited(s):
    b = s.box()
    answer = []
    t = threading.Thread(target=lambda: answer.append(b.exec("echo up; sleep 7777")))
    t.start()
    wait_until(lambda: sleepers_inside(b) == 1, 10, "it runs")
    for pid in s.cgroup_pids(b.id):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    t.join(30)
    assert answer and answer[0].kind == "lost" and answer[0].exit_code is None, answer
    s.api.delete(b.id)


def test_a_command_that_kills_whoever_watches_it_is_not_told_as_a_success(s):
    with s.box() as b:
        r = b.exec("kill -9 $PPID; sleep 1; exit 0", timeout_ms=5000)
        assert r.kind == "lost" and r.exit_code is None, r
        assert b.exec(["echo", "on"]).out == b"on\n"


@limit(240)
@only("crun")
def test_oom_is_told_of_whom_the_kernel_killed_and_of_no_other(s):
    """A kill -9 is no OOM because another was one, and of four killed together each is told so."""
    with s.box(memory_mb=64) as b:
        def look(ident):
            return s.api.get(f"/v1/sandboxes/{b.id}/execs/{ident}")
        b.exec("probe eat 400; true")  # its child was OOM-killed, it was not
        for _ in range(2):
            assert b.exec("kill -9 $$").kind == "signalled"
        ask = {"command": "sleep 1; exec probe eat 400", "background": True}  # all are there before one eats
        ids = [s.api.call("POST", f"/v1/sandboxes/{b.id}/exec", ask)["id"] for _ in range(4)]
        wait_until(lambda: all(look(i)["state"] == "ended" for i in ids), 120, "all four ended")
        assert [look(i)["kind"] for i in ids] == ["oom"] * 4, [look(i) for i in ids]
        assert b.exec("kill -9 $$").kind == "signalled"


def kernel_log_can_be_read():
    if os.readlink("/proc/self/ns/pid") != "pid:[4026531836]":  # its pids are not the log's
        return False
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def kind_beside_an_oom_kill(s):
    with s.box(memory_mb=64) as b:
        def look(ident):
            return s.api.get(f"/v1/sandboxes/{b.id}/execs/{ident}")

        def begin(command):
            return s.api.call("POST", f"/v1/sandboxes/{b.id}/exec", {"command": command, "background": True})["id"]
        waits = "while [ ! -e /tmp/%s ]; do sleep 0.1; done; "
        itself = begin(waits % "one" + "kill -9 $$")
        hog = begin(waits % "two" + "exec probe eat 400")
        assert b.exec("probe eat 400; touch /tmp/one").exit_code == 0  # its child was OOM-killed
        wait_until(lambda: look(itself)["state"] == "ended", 60, "the one that kills itself ended")
        kind = look(itself)["kind"]
        b.exec("touch /tmp/two")
        wait_until(lambda: look(hog)["state"] == "ended", 60, "the one that eats ended")
        assert look(hog)["kind"] == "oom", look(hog)
        return kind


@limit(240)
@only("crun")
def test_a_kill_9_beside_an_oom_kill_is_told_as_what_it_was(s):
    """Its own count cannot tell them apart: one kill of the box's, and two that died of SIGKILL."""
    if not kernel_log_can_be_read():
        raise Skip("the kernel's log cannot be read here")
    for _ in range(8):  # the kernel says little about a kill that comes with ten others in 5 s, here or elsewhere
        if kind_beside_an_oom_kill(s) == "signalled":
            return
        time.sleep(6)
    raise AssertionError("a kill -9 was told as oom each time")


@limit(240)
@only("crun")
def test_a_child_killed_for_memory_makes_no_oom_of_what_a_command_does_itself(s):
    """It kills itself, or the process of init that watches it, after a child of its own size was OOM-killed."""
    if not kernel_log_can_be_read():
        raise Skip("the kernel's log cannot be read here")
    cases = (("exec probe eat-forked 200", "signalled"), ("probe eat 400; kill -9 $$", "signalled"),
             ("probe eat 400; kill -9 $PPID; sleep 5", "lost"))
    for command, want in cases:
        for _ in range(6):  # as above: more than ten kills in 5 s leave it open
            with s.box(memory_mb=128) as b:
                r = b.exec(command, timeout_ms=40000)
                assert s.api.get(f"/v1/sandboxes/{b.id}/usage")["oom_kills"] == 1, r
            if r.kind == want:
                break
            time.sleep(6)
        assert r.kind == want and r.exit_code is None, (command, r)


@limit(120)
@only("crun")
def test_a_process_that_the_kernels_log_does_not_name_is_told_as_oom(s):
    """It names one that shares the memory, or the number of a thread."""
    with s.box(memory_mb=64) as b:
        for how in "eat-shared", "eat-thread":
            for _ in range(3):
                r = b.exec(["probe", how, "400"], timeout_ms=40000)
                assert r.kind == "oom", (how, r)


@limit(240)
@only("crun")
def test_the_number_of_a_process_killed_for_memory_is_told_of_no_other(s):
    """Numbers come again: here the next ones that the host gives out are chosen, so that it takes no hour."""
    chooser = "/proc/sys/kernel/ns_last_pid"
    if not kernel_log_can_be_read() or not os.access(chooser, os.W_OK):
        raise Skip("the kernel's log cannot be read here, or no process's number be chosen")
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    os.lseek(log, 0, os.SEEK_END)
    with s.box(memory_mb=64) as theirs, s.box(memory_mb=128) as ours:
        r = theirs.exec("for i in 1 2 3 4 5 6 7 8; do probe eat 400; done; true")
        assert r.exit_code == 0, r
        text = b""
        try:
            while True:
                text += os.read(log, 8192)
        except BlockingIOError:
            os.close(log)
        victims = [int(p) for p in re.findall(rb": Killed process (\d+) \(probe\)", text)]
        assert victims, text[-2000:]
        for pid in victims * 4:
            if os.path.exists(f"/proc/{pid}"):
                continue
            with open(chooser, "w", encoding="ascii") as f:
                f.write(str(pid - 2))  # one is init's own
            r = ours.exec("kill -9 $$")
            assert (r.kind, r.signal) == ("signalled", 9), r


@limit(90)
def test_a_memory_hog_is_told_as_oom(s):
    b = s.box(memory_mb=64)
    r = b.exec(["probe", "eat", "400"], timeout_ms=40000)
    allowed = ("oom",) if s.runtime == "crun" else ("oom", "lost")
    assert r.kind in allowed and r.exit_code is None, r
    if s.runtime == "crun":
        assert b.exec(["true"]).exit_code == 0
    else:  # the kernel knows one process of it, and has ended that
        def box():
            return s.api.get(f"/v1/sandboxes/{b.id}")
        wait_until(lambda: box()["state"] == "failed", 30, "failed")
        assert box()["last_failure"]["why"] == "it ran out of memory (memory_mb)", box()
        assert s.api.call("POST", f"/v1/sandboxes/{b.id}/wake")["state"] == "ready"
        os.kill(s.init_pid(b.id), signal.SIGKILL)
        wait_until(lambda: box()["state"] == "failed", 30, "failed again")
        assert box()["last_failure"]["why"] == "its processes ended", box()
    s.api.delete(b.id)


def test_a_client_that_reads_slowly_loses_nothing(s):
    with s.box() as b, s.api.upgrade(b.id) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        put(b, "big", data := random_bytes(2_000_000, 9))
        sock.sendall(nodeproto.exec_frame(["cat", "/root/big"]))
        time.sleep(1)
        out = b"".join(p for n, p in nodeproto.read_frames(sock) if n == "stdout")
        assert out == data


def put(box, name, data):
    """A file in the sandbox, through base64 so that it works before byte-exact input is shown to."""
    for at in range(0, len(data), 600_000):
        text = base64.b64encode(data[at:at + 600_000]).decode()
        r = box.exec(f"base64 -d >> /root/{name}", stdin=text)
        assert r.exit_code == 0, r
