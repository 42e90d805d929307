"""Bugs that were measured in other products, by the number or the words they are known under: docs/field-bugs.md."""
import os
import signal
import threading
import time

import nodeproto
from client import ApiError, event_bytes
from marks import limit, only
from server import wait_until
from test_files import put, read, rss_kb
from test_journal import begin, follow, get, path, wait_end
from test_shells import Shell

VENDOR_RATIO = 39  # its 13.7 s for a million lines, beside the 0.35 s of the bare command


def sse(s, box, command, **options):
    """(stdout, stderr, the last event, when each first came) of a command as events."""
    got, first, last = {"stdout": [], "stderr": []}, {}, None
    for name, data in s.api.events("POST", f"/v1/sandboxes/{box.id}/exec", {"command": command, **options}):
        first.setdefault(name, time.monotonic())
        if name in got:
            got[name].append(event_bytes(data))
        last = name, data
    return b"".join(got["stdout"]), b"".join(got["stderr"]), last, first


def numbers(n):
    return "".join(f"{i}\n" for i in range(1, n + 1)).encode()


# -- commands and their output

@limit(120)
def test_cf_the_tail_of_a_stream_is_there(s):
    lines = 200 if s.runtime == "crun" else 20
    big = f"i=0; while [ $i -lt {lines} ]; do head -c 199999 /dev/zero | tr '\\0' x; echo; i=$((i+1)); done"
    with s.box() as b:
        for command, want in (("seq 20000", numbers(20000)), ("seq 300000", numbers(300000)), (big, (b"x" * 199999 + b"\n") * lines)):
            out, _, (name, end), _ = sse(s, b, command)
            assert out == want and (name, end["exit_code"]) == ("exit", 0), (command[:20], len(out), len(want))
            assert follow(s, b.id, begin(s, b.id, command)["id"])[0] == want, command[:20]


def test_cf_a_long_line_is_whole_wherever_it_was_looked_at(s):
    command = "i=0; while [ $i -lt 20 ]; do head -c 100003 /dev/zero | tr '\\0' $((i % 10)); sleep 0.05; i=$((i+1)); done"
    want = b"".join(str(i % 10).encode() * 100003 for i in range(20))
    with s.box() as b:
        assert sse(s, b, command)[0] == want
        assert follow(s, b.id, begin(s, b.id, command)["id"])[0] == want


@only("crun")
def test_cf_output_is_read_once_and_not_again_at_every_look(s):
    size = 40_000_000

    def was_read():
        with open(f"/proc/{s.pid('berthd')}/io") as f:
            return int(f.readline().split()[1])
    with s.box() as b:
        before = was_read()
        ident = begin(s, b.id, f"yes 0123456789 | head -c {size}; sleep 0.5; echo end")["id"]
        assert len(follow(s, b.id, ident)[0]) == size + 4
        times = (was_read() - before) / size
        print(f"      read {times:.1f} times; the vendor: 43 times")
        assert times < 4, times


def test_cf_text_without_a_newline_comes_at_once(s):
    """The command goes on when they were heard, and not by the clock."""
    out, command = b"", "printf 'name? '; until [ -e /root/heard ]; do sleep 0.1; done; echo end"
    with s.box() as b:
        for name, data in s.api.events("POST", f"/v1/sandboxes/{b.id}/exec", {"command": command, "timeout_ms": 60000}):
            if name == "stdout":
                out += event_bytes(data)
                if out == b"name? ":
                    put(b, "/root/heard", b"")
        assert (out, name, data["kind"]) == (b"name? end\n", "exit", "exited"), (out, name, data)


def test_cf_bytes_that_are_no_text_are_kept(s):
    want = b"a\0b\xff\xfe\xc3(\xe2\x82\r\n\n"
    command = "printf 'a\\0b\\377\\376\\303(\\342\\202\\r\\n\\n'"
    with Shell(s, image=None) as sh:
        assert sh.box.exec(command).out == want
        assert sh.run(command).out == want
        assert sse(s, sh.box, command)[0] == want
        assert follow(s, sh.box.id, begin(s, sh.box.id, command)["id"])[0] == want


@limit(120)
def test_cf_a_million_lines_take_no_minute(s):
    with s.box() as b:
        start = time.monotonic()
        assert b.exec("seq 1000000 | cat > /dev/null").exit_code == 0
        bare = time.monotonic() - start
        start = time.monotonic()
        end, out, _ = s.api.run_frames(b.id, ["seq", "1000000"])
        took = time.monotonic() - start
        assert end["kind"] == "exited" and len(out) == 6888896 and out.endswith(b"\n999999\n1000000\n"), end
        print(f"      a million lines: {took:.2f} s, {took / bare:.1f} x a pipe; the vendor's 13.7 s were {VENDOR_RATIO} x")
        assert took < VENDOR_RATIO * bare, (took, bare)


@only("crun")
def test_cf_output_that_nobody_reads_is_not_in_memory(s):
    with s.box() as b:
        before = rss_kb([s.pid("berthd")])
        ident = begin(s, b.id, "yes | head -c 200000000")["id"]
        most = 0
        while get(s, b.id, ident)["state"] == "running":
            most = max(most, rss_kb([s.pid("berthd")] + s.cgroup_pids(b.id)))
            time.sleep(0.05)
        assert get(s, b.id, ident)["stdout_bytes"] == 200_000_000
        assert most - before < 64_000, (most, before)


def test_cf_a_background_start_without_its_directory_is_an_error_at_once(s):
    with s.box() as b:
        try:
            ident = begin(s, b.id, "echo never", cwd="/no/such/place")["id"]
        except ApiError as e:
            assert e.status in (400, 404) and "/no/such/place" in e.body["message"], e
        else:
            raise AssertionError(get(s, b.id, ident))
        with Shell(s, image=None) as sh:
            r = sh.run("echo never", cwd="/no/such/place")
            assert r.kind == "exited" and r.exit_code != 0 and r.out == b"", r


def test_cf_files_do_not_wait_behind_a_shells_command(s):
    with Shell(s, image=None) as sh:
        slow = threading.Thread(target=lambda: sh.run("until [ -e /root/go ]; do sleep 0.1; done", timeout_ms=60000))
        slow.start()
        wait_until(lambda: sh.get()["state"] == "busy", 20, "busy")
        for i in range(5):
            put(sh.box, "/root/f", str(i).encode())
            assert read(sh.box, "/root/f") == str(i).encode()
        assert slow.is_alive()
        put(sh.box, "/root/go", b"")
        slow.join()


# -- the sandbox and its options

@only("crun")
def test_w7_no_header_names_a_sandbox(s):
    status, made, _ = s.api.request("POST", "/v1/sandboxes", {"image": "base", "name": "w7-mine"}, {"X-Sandbox-Name": "w7-theirs"})
    assert status == 201 and made["name"] == "w7-mine", made
    with s.box(name="w7-theirs") as other:
        r = s.api.call("POST", f"/v1/sandboxes/{made['id']}/exec", {"command": "echo x > /root/x"}, {"X-Sandbox-Name": "w7-theirs"})
        assert r["exit_code"] == 0 and other.sh("ls /root") == ""
    s.api.delete(made["id"])


@only("crun")
def test_w8_options_are_read_back_after_a_restart(s):
    options = {"name": "w8", "sleep_after_ms": 7_200_000, "keep_alive": True, "env": {"A": "1"}, "labels": {"k": "v"}}
    with s.box(**options) as b:
        before = s.api.get(f"/v1/sandboxes/{b.id}")
        assert {k: before[k] for k in options} == options, before
        s.kill("berthd", "berth-node")
        s.wait_healthy()
        after = s.api.get(f"/v1/sandboxes/{b.id}")
        assert {k: after[k] for k in options} == options, after
        assert b.sh("echo $A") == "1\n"


@only("crun")
def test_w9_options_are_there_before_the_first_command_or_nothing_is(s):
    with s.box(env={"FIRST": "seen"}, pids=50) as b:
        assert b.sh("echo $FIRST") == "seen\n"
    count = len(s.api.sandboxes())
    for bad in ({"sleep_after_ms": -1}, {"env": {"a;b": "x"}}, {"keep_alive": "yes"}, {"labels": {"": ""}}):
        assert s.api.request("POST", "/v1/sandboxes", {"image": "base", **bad})[0] == 400, bad
    assert len(s.api.sandboxes()) == count


def as_if_init_said(s, box, version):
    """What berth-node remembers of its HELLO is the last in its record. It is read when it starts."""
    with open(f"{s.dir}/node/alloc/{s.allocation(box.id)}/record", "r+b") as f:
        f.seek(-4, os.SEEK_END)
        f.write(version.to_bytes(4, "big"))


def guest_events(s, box):
    return [h for h in s.api.get(f"/v1/sandboxes/{box.id}/events")["events"] if h["event"].startswith("guest_")]


def guest_of(s, box):
    return s.api.get(f"/v1/sandboxes/{box.id}")["guest"]


@only("crun")
@limit(120)
def test_pr11_an_init_of_another_minor_version_works_and_is_told_once(s):
    with s.box() as b:
        current = guest_of(s, b)
        assert current["status"] == "current" and current["protocol"].startswith("2."), current
        assert guest_events(s, b) == []
        as_if_init_said(s, b, 999 << 16 | 2)
        s.kill("berth-node")
        s.wait_healthy()

        def ran():
            status, body, _ = s.api.request("POST", f"/v1/sandboxes/{b.id}/exec", {"command": "echo on"})
            assert status != 501, body
            return status == 200 and body["stdout"] == "on\n"
        wait_until(ran, 60, "it works")
        wait_until(lambda: guest_of(s, b) == {"protocol": "2.999", "status": "differs"}, 60, "the record says it")
        assert b"protocol 2.999, differs" in s.berth("show", b.id)[1]
        (event,) = guest_events(s, b)
        assert event["event"] == "guest_differs" and "2.999" in event["reason"] and event["from"] == event["to"] == "ready", event
        s.kill("berthd", "berth-node")  # looked at again, and nothing is new
        s.wait_healthy()
        wait_until(ran, 60, "it works again")
        assert s.api.call("POST", f"/v1/sandboxes/{b.id}/sleep")["guest"]["protocol"] == "2.999"
        assert b.sh("echo woken") == "woken\n"
        assert guest_of(s, b) == current and guest_events(s, b) == [event]


@only("crun")
@limit(120)
def test_w10_an_init_of_another_version_is_refused_and_can_be_replaced_and_deleted(s):
    with s.box() as b, s.box() as kept:
        put(b, "/root/f", b"kept")
        for box in (b, kept):
            as_if_init_said(s, box, 1)
        s.kill("berth-node")
        s.wait_healthy()

        def told():
            status, body, _ = s.api.request("POST", f"/v1/sandboxes/{b.id}/exec", {"command": "true"})
            return body if status == 501 else None
        body = wait_until(told, 30, "refused for its version")
        assert "version 1.0" in body["message"] and "sleep" in body["remediation"], body
        wait_until(lambda: guest_of(s, b) == {"protocol": "1.0", "status": "incompatible"}, 60, "the record says it")
        assert [h["event"] for h in guest_events(s, b)] == ["guest_incompatible"]
        assert s.api.call("POST", f"/v1/sandboxes/{b.id}/sleep")["state"] == "asleep"
        assert read(b, "/root/f") == b"kept"
        assert guest_of(s, b)["status"] == "current"
        assert s.api.delete(kept.id)["receipt"]["process"] == "absent"


@limit(120)
def test_w11_what_ended_in_sleep_is_not_said_to_be_there(s):
    with Shell(s, image=None) as sh:
        box = sh.box.id
        pid = sh.out("cd /tmp; X=1; echo $$")
        ident = begin(s, box, "sleep 1000")["id"]
        s.api.call("POST", f"/v1/sandboxes/{box}/sleep")
        end = wait_end(s, box, ident)
        assert end["kind"] != "exited" and end["exit_code"] is None, end
        r = sh.run("echo $$")
        assert r.exit_code == 0 and (r.out.decode() != pid or s.runtime == "runsc"), r
        assert s.api.get(path(box) + "?state=running")["execs"] == []
        assert sh.get()["state"] == "idle"


@limit(120)
def test_w20_a_shell_of_before_works_after_sleep(s):
    with Shell(s, image=None, cwd="/var", env={"FROM": "record"}) as sh:
        for _ in range(2):
            s.api.call("POST", f"/v1/sandboxes/{sh.box.id}/sleep")
            assert sh.out("echo $FROM; pwd") == "record\n/var\n"


# -- commands and their ends

@only("crun")
def test_w12_a_foreground_command_can_be_killed(s):
    with s.box() as b, s.api.upgrade(b.id) as sock:
        sock.sendall(nodeproto.exec_frame(["sh", "-c", "trap '' TERM; echo up; sleep 7777 & wait; sleep 7777"], ident="front"))
        end = None
        for name, data in nodeproto.read_frames(sock):
            if name == "stdout":
                assert s.api.call("POST", path(b.id, "front", "/kill"), {"signal": "TERM", "grace_ms": 300})["kind"] == "killed"
            elif name == "exited":
                end = nodeproto.decode_exit(data)
                break
        assert end and end["kind"] == "killed", end
        assert b.sh("ps -o args | grep -c '[s]leep 7777' || true") == "0\n"


@only("crun")
def test_w12_a_kill_with_a_key_strikes_once(s):
    with s.box() as b:
        ident = begin(s, b.id, "trap 'echo hit' USR1; echo up; while :; do sleep 0.02; done")["id"]
        wait_until(lambda: "up" in s.api.get(path(b.id, ident, "/output"))["stdout"], 30, "up")

        def kill(where, body, key):
            return s.api.request("POST", path(b.id, where), body, {"Idempotency-Key": key})
        for _ in range(3):
            status, got, headers = kill(ident + "/kill", {"signal": "USR1"}, "w12-a")
            assert (status, got["state"]) == (200, "running"), got
        assert headers["Idempotency-Replayed"] == "true"
        assert kill(ident + "/kill", {"signal": "USR2"}, "w12-a")[0] == 409
        wait_until(lambda: "hit" in s.api.get(path(b.id, ident, "/output"))["stdout"], 30, "hit")
        others = [begin(s, b.id, "sleep 1000", group="w12")["id"] for _ in range(2)]
        for _ in range(2):
            assert kill("kill", {"scope": "group", "group": "w12"}, "w12-b")[1] == {"killed": 2, "leftovers": 0}
        assert {get(s, b.id, i)["kind"] for i in others} == {"killed"} and get(s, b.id, ident)["state"] == "running"
        for _ in range(2):
            assert kill(ident + "/kill", {}, "w12-c")[1]["kind"] == "killed"
        assert follow(s, b.id, ident)[0] == b"up\nhit\n"
        assert kill("kill", {"scope": "group"}, "w12-d")[0] == 400
        assert kill("kill", {"scope": "background"}, "w12-d")[1] == {"killed": 0, "leftovers": 0}  # what was refused took no key


def test_w14_cwd_env_and_timeout_are_honoured_every_way(s):
    command, want = "pwd; echo $Q; sleep 1000", b"/tmp\nn e'w\n"
    options = {"cwd": "/tmp", "env": {"Q": "n e'w"}, "timeout_ms": 5000}
    with s.box() as b:
        r = b.exec(command, **options)
        assert (r.kind, r.exit_code, r.out) == ("timed_out", None, want), r
        out, _, (_, end), _ = sse(s, b, command, **options)
        assert (end["kind"], end["exit_code"], out) == ("timed_out", None, want), end
        ident = begin(s, b.id, command, **options)["id"]
        end = wait_end(s, b.id, ident)
        assert (end["kind"], end["exit_code"], follow(s, b.id, ident)[0]) == ("timed_out", None, want), end
        assert b.sh("pwd; echo [$Q]") != want.decode()


@only("crun")
def test_w15_a_stream_that_was_cut_ends_in_lost_and_not_in_success(s):
    b = s.box()
    for name, data in s.api.events("POST", f"/v1/sandboxes/{b.id}/exec", {"command": "echo up; sleep 1000"}):
        if name == "stdout":
            os.kill(s.init_pid(b.id), signal.SIGKILL)
    assert (name, data["kind"], data["exit_code"]) == ("exit", "lost", None), (name, data)
    s.api.delete(b.id)


# -- ports come with previews; until then nobody gets through

NO_PORTS = ("/v1/sandboxes/{id}/ports", "/v1/sandboxes/{id}/ports/8080", "/proxy/22/", "/proxy/8080/x", "/v1/sandboxes/{id}/proxy/22/")


@only("crun")
def test_w24_no_path_leads_to_a_port(s):
    with s.box() as b:
        ident = begin(s, b.id, "while :; do echo hi | nc -l -p 8080; done")["id"]
        assert s.api.get(path(b.id, ident, "/wait?for=port&port=8080"))["ready"]
        for p in NO_PORTS:
            for key in (s.key, None):
                keep, s.api.key = s.api.key, key
                status, body, _ = s.api.request("GET", p.format(id=b.id))
                s.api.key = keep
                assert status in (401, 404) and body["code"] in ("unauthenticated", "not_found") and body["remediation"], (p, status, body)


@only("crun")
def test_w23_who_has_no_right_wakes_nobody(s):
    with s.box() as b:
        s.api.call("POST", f"/v1/sandboxes/{b.id}/sleep")
        keep = s.api.key
        for key in (None, "brt_wrong"):
            s.api.key = key
            for p in NO_PORTS + ("/v1/sandboxes/{id}/files?path=/", "/v1/sandboxes/{id}/shells", "/v1/sandboxes/{id}/execs"):
                for host in ("localhost", f"8080-{b.id}-token.example.com"):
                    assert s.api.request("GET", p.format(id=b.id), headers={"Host": host})[0] in (401, 404), p
        s.api.key = keep
        assert s.api.get(f"/v1/sandboxes/{b.id}")["state"] == "asleep"
