"""Terminals: a pty, any number of viewers, and a scrollback that outlives them all."""
import fcntl
import os
import pty
import socket
import struct
import subprocess
import termios
import threading
import time

import images
from client import ApiError
from marks import limit, only
from server import wait_until
from test_http import rss
from websocket import WebSocket


class Terminal:
    def __init__(self, s, box, **options):
        self.s, self.box = s, box
        self.all = f"/v1/sandboxes/{box.id}/terminals"
        self.made = s.api.call("POST", self.all, options)
        self.id, self.path = self.made["id"], f"{self.all}/{self.made['id']}"

    def get(self):
        return self.s.api.get(self.path)

    def view(self, query=""):
        ws = WebSocket(self.s.api, self.path + "/attach" + query)
        assert ws.status == 101, ws.head
        return ws


def sh(s, box, script, **options):
    return Terminal(s, box, argv=["sh", "-c", script], **options)


def test_pt_1_a_terminal_has_a_size_takes_keys_and_shows_what_happens(s):
    with s.box() as b:
        t = Terminal(s, b, argv=["sh"], cols=100, rows=30, env={"PS1": "$ "})
        assert (t.made["state"], t.made["cols"], t.made["rows"], t.made["kind"]) == ("running", 100, 30, None), t.made
        with t.view() as v:
            v.send(b"stty size; tty; echo $TERM\n")
            assert b"30 100\r\n" in v.until(b"xterm-256color\r\n")
            assert v.texts[0]["type"] == "attached" and v.texts[0]["position"] == 0
            v.say(type="resize", cols=132, rows=43)
            v.send(b"stty size\n")
            v.until(b"43 132\r\n")
            s.api.call("POST", t.path + "/resize", {"cols": 90, "rows": 20})
            v.send(b"stty size\n")
            v.until(b"20 90\r\n")
            assert (t.get()["cols"], t.get()["viewers"]) == (90, 1)
            v.send(b"exit 5\n")
            v.until(None)
            assert v.texts[-1]["type"] == "exit" and v.texts[-1]["exit_code"] == 5 and v.code == 1000
        assert (t.get()["state"], t.get()["kind"], t.get()["exit_code"]) == ("ended", "exited", 5)


def test_a_new_size_is_told_by_a_signal(s):
    with s.box() as b:
        t = sh(s, b, "trap 'stty size; exit 3' WINCH; echo up; while :; do sleep 0.1; done")
        with t.view() as v:
            v.until(b"up\r\n")
            v.say(type="resize", cols=61, rows=17)
            v.until(b"17 61\r\n")


def test_pt_2_and_3_an_early_end_is_seen_with_all_that_was_said(s):
    with s.box() as b:
        t = sh(s, b, "seq 1 5000; echo Traceback: boom; kill -9 $$")
        wait_until(lambda: t.get()["state"] == "ended", 30, "ended")
        assert (t.get()["kind"], t.get()["signal"], t.get()["exit_code"]) == ("signalled", 9, None)
        with t.view() as v:
            said = v.until(None)
        assert said == b"".join(b"%d\r\n" % i for i in range(1, 5001)) + b"Traceback: boom\r\n"


def test_pt_4_a_terminal_has_a_limit(s):
    with s.box() as b:
        t = sh(s, b, "setsid sleep 7777 & sleep 7777", timeout_ms=1000)
        wait_until(lambda: t.get()["state"] == "ended", 30, "ended")
        assert (t.get()["kind"], t.get()["exit_code"]) == ("timed_out", None)
        assert b.sh("ps -o args | grep -c '[s]leep 7777' || true") == "0\n"


def test_pt_5_viewers_see_the_same_and_a_slow_one_slows_nobody(s):
    with s.box() as b:
        t = sh(s, b, "read x; seq 1 60000; read y; exit 0")
        slow = t.view()  # reads nothing until the others are through
        got = []

        def look():
            with t.view() as v:
                got.append(v.until(None))
        threads = [threading.Thread(target=look) for _ in range(3)]
        [x.start() for x in threads]
        wait_until(lambda: t.get()["viewers"] == 4, 30, "four viewers")
        with t.view() as v:
            v.send(b"go\n")
            v.until(b"60000\r\n")
            v.send(b"end\n")
            [x.join() for x in threads]
            v.until(None)
        assert len(set(got)) == 1 and got[0].count(b"\r\n") == 60002, [len(x) for x in got]
        assert slow.until(None) == got[0]
        slow.close()
        wait_until(lambda: t.get()["viewers"] == 0, 30, "no viewer")


def test_scrollback_is_replayed_from_any_position(s):
    with s.box() as b:
        t = sh(s, b, "printf '0123456789'; read x; printf 'end'; read y")
        with t.view() as v:
            v.until(b"9")
        for i in (0, 4, 10):
            with t.view(f"?from={i}") as v:
                assert v.until(b"9") == b"0123456789"[i:] if i < 10 else True
                if i < 10:
                    assert v.texts[0]["position"] == i, v.texts
        with t.view("?from=10") as v:
            v.send(b"x\n")
            v.until(b"end")
        ws = WebSocket(s.api, t.path + "/attach?from=99999")
        assert ws.status == 400
        ws.close()


@limit(90)
def test_a_terminal_outlives_its_viewers_and_berthd(s):
    with s.box() as b:
        t = sh(s, b, "i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo n$i; sleep 0.1; done; read x; echo got $x; exit 7")
        with t.view() as v:
            first = v.until(b"n5\r\n")
        s.kill("berthd")
        s.wait_healthy()
        with t.view(f"?from={len(first)}") as v:
            rest = v.until(b"n40\r\n")
            v.send(b"word\n")
            rest += v.until(None)
            assert v.texts[-1]["exit_code"] == 7
        assert (first + rest).startswith(b"".join(b"n%d\r\n" % i for i in range(1, 41))) and b"got word" in rest


def test_delete_kills_everything_and_forgets_it(s):
    with s.box() as b:
        t = sh(s, b, "setsid sleep 7778 & (setsid sh -c 'setsid sleep 7778 & sleep 7778' &) ; sleep 7778")
        v = t.view()
        wait_until(lambda: b.sh("ps -o args | grep -c '[s]leep 7778' || true") != "0\n", 30, "it runs")
        gone = s.api.call("DELETE", t.path)
        assert (gone["state"], gone["kind"], gone["exit_code"]) == ("ended", "killed", None), gone
        assert b.sh("ps -o args | grep -c '[s]leep 7778' || true") == "0\n"
        v.until(None)
        assert v.texts[-1]["type"] == "exit" and v.texts[-1]["kind"] == "killed", v.texts
        v.close()
        try:
            t.get()
            raise AssertionError("still there")
        except ApiError as e:
            assert e.status == 404, e
        assert s.api.get(t.all)["terminals"] == []


def test_cf_a_terminal_reports_its_end(s):
    with s.box() as b:
        t = sh(s, b, "exit 0")
        with t.view() as v:
            v.until("exit")
            assert v.texts[-1]["exit_code"] == 0


def test_a_command_that_does_not_read_gets_all_of_it_later(s):
    with s.box() as b:
        data = b"".join(b"%06d\n" % i for i in range(20000))
        t = sh(s, b, "stty raw -echo; echo up; sleep 1; head -c 140000 | md5sum; exit 0")
        with t.view() as v:
            v.until(b"up\n")
            for i in range(0, len(data), 4096):
                v.send(data[i:i + 4096])
            out = v.until(None)
        import hashlib
        assert hashlib.md5(data).hexdigest().encode() in out, out


@only("crun")
def test_what_is_no_websocket_or_no_terminal_is_refused(s):
    with s.box() as b:
        t = sh(s, b, "sleep 7777")
        for path, status in ((t.path + "/attach", 400), (t.all + "/tm_nothing/attach", 404)):
            ws = WebSocket(s.api, path)
            if status == 400:
                ws.close()
                assert s.api.request("GET", path)[0] == 400
            else:
                assert ws.status == 404
        x = b.exec(["true"])["id"]
        assert s.api.request("GET", f"{t.all}/{x}")[0] == 404
        for bad in ({"cols": 0}, {"rows": 5000}, {"argv": ["/no/such"]}, {"nonsense": 1}):
            status = s.api.request("POST", t.all, bad)[0]
            assert status in (400, 404), (bad, status)
        with t.view() as v:
            v.say(type="resize", cols=0, rows=1)
            v.until("error")
            v.say(type="what")
            v.until("error")
            v.send(b"\xff", 1)  # text that is none
            v.until(None)
            assert v.code == 1007
        assert t.get()["state"] == "running"
        assert [x["id"] for x in s.api.get(t.all)["terminals"]] == [t.id]


@only("crun")
def test_one_idempotency_key_makes_one_terminal(s):
    with s.box() as b:
        path, key = f"/v1/sandboxes/{b.id}/terminals", {"Idempotency-Key": "t1"}
        a, c = (s.api.call("POST", path, {"argv": ["sleep", "7777"]}, key)["id"] for _ in range(2))
        assert a == c and len(s.api.get(path)["terminals"]) == 1


def berth_shell(s, args, talk, size=(24, 80)):
    """`berth shell` on a terminal of its own: (exit status, what it showed)."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    before = termios.tcgetattr(slave)
    p = subprocess.Popen([s.cli, "shell", *args], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                         env={**os.environ, **s.env, "TERM": "vt100"}, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    seen = [b""]

    def read():
        try:
            while data := os.read(master, 65536):
                seen[0] += data
        except OSError:
            pass
    t = threading.Thread(target=read, daemon=True)
    t.start()
    try:
        talk(lambda keys: os.write(master, keys),
             lambda text: wait_until(lambda: text in seen[0], 30, f"{text} in {seen[0]}"),
             lambda rows, cols: fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0)))
        status = p.wait(30)
        assert termios.tcgetattr(slave) == before  # as it was
    finally:
        p.kill()
        os.close(slave)
        time.sleep(0.1)
        os.close(master)
    return status, seen[0]


@only("crun")
def test_berth_shell_is_a_terminal(s):
    with s.box(image=images.have(s, "bash")) as b:
        def talk(type_, see, resize):
            type_(b"stty size; echo $TERM; echo bash$BASH_VERSION\n")
            see(b"33 99\r\n")
            see(b"vt100\r\n")
            see(b"bash5")
            resize(40, 120)  # its signal and keys are not in order
            type_(b"until stty size | grep '^40 120$'; do sleep 0.1; done\n")
            see(b"40 120\r\n")
            type_(b"sleep 100; echo not reached\n")
            time.sleep(0.5)
            type_(b"\x03")  # Ctrl-C is the sandbox's
            type_(b"echo on$((1+1)); exit 9\n")
            see(b"on2")
        status, seen = berth_shell(s, [b.id], talk, (33, 99))
        assert status == 9 and b"\r\nnot reached" not in seen, (status, seen)
        status, seen = berth_shell(s, [b.id, "--", "sh", "-c", "exit 4"], lambda *_: None)
        assert status == 4, (status, seen)
        r = s.berth("shell", b.id)
        assert r[0] == 125 and b"no terminal" in r[2], r


def frame(payload):
    return bytes([0x82, 0x80 | len(payload)]) + bytes(4) + payload


def seconds_of(pid):
    """CPU time of a process."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@only("crun")
@limit(180)
def test_viewers_that_type_to_a_deaf_command_and_leave_take_everything_with_them(s):
    with s.box() as b:
        t = sh(s, b, "stty raw -echo; echo up; sleep 7777")
        with t.view() as v:
            v.until(b"up\n")
            v.sock.settimeout(3)
            try:
                for _ in range(40):
                    v.send(b"x" * 60000)
            except OSError:
                pass  # it is not read any more: that is the point
            pid = s.pid("berthd")
            before = rss(pid)
            for _ in range(30):
                with t.view() as typing:
                    typing.sock.sendall(frame(b"z") * 9000)
            wait_until(lambda: t.get()["viewers"] <= 1, 60, "the viewers are gone")
            grown = rss(pid) - before
            used, start = seconds_of(pid), time.monotonic()
            time.sleep(2)
            load = (seconds_of(pid) - used) / (time.monotonic() - start)
            print(f"# 30 viewers: {before >> 20} MiB and {grown >> 20} more, then {load:.0%} of a core")
            assert grown < 64 << 20 and load < 0.4, (grown, load)


@only("crun")
@limit(90)
def test_a_terminal_has_so_many_viewers_and_no_more(s):
    with s.box() as b:
        t = sh(s, b, "sleep 7777")
        views = [t.view() for _ in range(64)]
        one_more = WebSocket(s.api, t.path + "/attach")
        assert one_more.status == 429, one_more.head
        views.pop().close()
        wait_until(lambda: t.get()["viewers"] == 63, 60, "one viewer is gone")
        t.view().close()
        [v.close() for v in views]


@only("crun")
@limit(120)
def test_a_viewer_that_pings_and_does_not_read_costs_little(s):
    with s.box() as b:
        t = sh(s, b, "sleep 7777")
        pid = s.pid("berthd")
        before, sent = rss(pid), 0
        with t.view() as v:
            v.sock.settimeout(3)
            v.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the kernel is to hold little of it
            try:
                while sent < 24 << 20:
                    sent += v.sock.send((b"\x89\x80" + bytes(4)) * 20000)
            except OSError:
                pass
            grown = rss(pid) - before
            print(f"# {sent >> 10} KiB of pings: {before >> 20} MiB and {grown >> 20} more")
        assert grown < 64 << 20, grown
