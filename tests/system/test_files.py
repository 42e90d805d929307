"""Files of a sandbox through the API: byte for byte, whole or not at all, whatever the guest has planted."""
import base64
import hashlib
import http.client
import http.server
import io
import json
import os
import random
import signal
import socket
import tarfile
import tempfile
import threading
import time
import urllib.parse

from client import Api, ApiError, parse_events
from marks import limit, only
from server import leftovers, signal_all, wait_until

GIB = int(os.environ.get("BERTH_FILE_GIB", "1"))
DEV_OPTIONS = ["--pool-size", f"{GIB + 3}g"]

HERE_ODD = [b"plain", b"with space", b"new\nline", b"tab\tand \\ \"quotes\"", b"\xff\xfe not utf-8", "gr\u00fcn \u2603".encode(), b"n" * 255,
            b"-rf", b"%41+&=#?"]


def q(path, **more):
    path = path.encode() if isinstance(path, str) else path
    return urllib.parse.urlencode({"path": path, **more}, quote_via=urllib.parse.quote, safe="")


def url(box, path, verb="", **more):
    return f"/v1/sandboxes/{box.id}/files{verb}?{q(path, **more)}"


def put(box, path, data, headers=None, **more):
    """(status, entry)"""
    status, body, _ = box.api.request("PUT", url(box, path, **more), data, headers)
    if status >= 400:
        raise ApiError(status, body)
    return status, body


def get(box, path, **headers):
    status, body, head = box.api.request("GET", url(box, path), headers={k.replace("_", "-"): v for k, v in headers.items()})
    if status >= 400:
        raise ApiError(status, body)
    return status, body, head


def read(box, path):
    return get(box, path)[1]


def stat(box, path):
    return box.api.get(url(box, path, "/stat"))


def listing(box, path, **more):
    return box.api.get(url(box, path, "/list", **more))["entries"]


def remove(box, path, **more):
    return box.api.call("DELETE", url(box, path, **more))["removed"]


def mkdir(box, path, **more):
    return box.api.call("POST", f"/v1/sandboxes/{box.id}/files/mkdir", {"path": path, **more})


def move(box, frm, to, **more):
    return box.api.call("POST", f"/v1/sandboxes/{box.id}/files/move", {"from": frm, "to": to, **more})


def reason(call, *args, **more):
    """(status, reason) of a call that must fail."""
    try:
        call(*args, **more)
    except ApiError as e:
        assert e.body["message"] and e.body["remediation"] and e.body["request_id"], e.body
        return e.status, e.body.get("reason")
    raise AssertionError("it did not fail")


def name_of(entry, what="name"):
    return base64.b64decode(entry[what + "_base64"]) if what + "_base64" in entry else entry[what].encode()


def noise(n, seed=1):
    return random.Random(seed).randbytes(n)


def test_w19_bytes_come_back_as_they_went(s):
    with s.box() as b:
        for n in (0, 1, 5, 65535, 65536, 65537, 262144, 3_000_001):
            data = noise(n, n)
            assert put(b, "/root/f", data)[1]["size"] == n
            assert read(b, "/root/f") == data
            assert stat(b, "/root/f")["size"] == n
        assert b.sh("sha256sum < /root/f").split()[0] == hashlib.sha256(data).hexdigest()


def test_a_write_says_new_or_replaced_and_keeps_mode_and_owner(s):
    with s.box() as b:
        status, entry = put(b, "/root/f", b"one")
        assert (status, entry["mode"], entry["type"], entry["path"], entry["name"]) == (201, "0644", "file", "/root/f", "f")
        b.sh("chown 7:8 /root/f; chmod 4751 /root/f")
        status, entry = put(b, "/root/f", b"two")
        assert (status, entry["mode"], entry["uid"], entry["gid"]) == (200, "4751", 7, 8), entry
        assert put(b, "/root/g", b"x", mode="0600")[1]["mode"] == "0600"
        assert put(b, "/root/f", b"x", mode="755")[1]["mode"] == "0755"
        assert put(b, "/root/a/b/c/f", b"deep", parents=1)[0] == 201
        assert b.sh("cat /root/a/b/c/f; stat -c %a /root/a/b") == "deep755\n"
        assert reason(put, b, "/root/f", b"", mode="rwx")[0] == 400


def test_cf_odd_names_survive_every_way(s):
    with s.box() as b:
        mkdir(b, "/root/odd")
        for i, name in enumerate(HERE_ODD):
            assert name_of(put(b, b"/root/odd/" + name, str(i).encode())[1]) == name
        got = listing(b, "/root/odd")
        assert [name_of(e) for e in got] == sorted(HERE_ODD), got
        assert [name_of(e, "path") for e in got] == [b"/root/odd/" + n for n in sorted(HERE_ODD)]
        for i, name in enumerate(HERE_ODD):
            assert read(b, b"/root/odd/" + name) == str(i).encode()
            assert name_of(stat(b, b"/root/odd/" + name)) == name
            assert remove(b, b"/root/odd/" + name) == 1
        assert listing(b, "/root/odd") == []


def test_each_failure_has_its_reason(s):
    with s.box() as b:
        b.sh("mkdir -p /root/d/e; echo x > /root/d/f; ln -s loop /root/loop; ln -s nowhere /root/dangling")
        for want, call, *args in [
                ((404, "no_such_file"), read, b, "/root/none"), ((404, "no_such_file"), put, b, "/root/none/f", b""),
                ((404, "no_such_file"), stat, b, "/none"), ((404, "no_such_file"), remove, b, "/none"),
                ((404, "no_such_file"), move, b, "/none", "/root/x"), ((404, "no_such_file"), read, b, "/root/dangling"),
                ((404, "no_such_file"), put, b, "/root/dangling", b""),
                ((400, "is_a_directory"), read, b, "/root/d"), ((400, "is_a_directory"), put, b, "/root/d", b"x"),
                ((400, "not_a_directory"), listing, b, "/root/d/f"), ((400, "not_a_directory"), read, b, "/root/d/f/g"),
                ((409, "exists"), mkdir, b, "/root/d"), ((409, "exists"), move, b, "/root/d/f", "/root/d/e"),
                ((409, "not_empty"), remove, b, "/root/d"), ((400, "too_many_links"), read, b, "/root/loop"),
                ((400, "name_too_long"), put, b, "/root/" + "n" * 256, b""),
                ((400, "name_too_long"), stat, b, "/" + "d/" * 2100),
                ((403, None), put, b, "/proc/self/oom_score_adj", b"0"), ((400, None), read, b, "relative"),
                ((404, "no_such_file"), put, b, "/proc/none/x", b"")]:
            got = reason(call, *args)
            assert got == want or (want[1] is None and got[0] == want[0]), (call.__name__, args[1:], got)
        assert reason(b.api.get, f"/v1/sandboxes/{b.id}/files/stat") == (400, None)
        assert reason(Api(s.port, s.key).get, "/v1/sandboxes/sb_c1_00000000000000000000/files/stat?path=/")[0] == 404


def test_what_the_sandbox_itself_refuses_has_its_reason(s):
    with s.box(open_files=64) as b:
        assert reason(mkdir, b, "/sys/x") == (403, "read_only")
        assert reason(remove, b, "/dev/shm") == (409, "in_use")  # something is mounted there
        assert reason(move, b, "/dev/shm", "/dev/shn") == (409, "in_use")
        b.sh("cd /root; for i in $(seq 100); do mkdir d; cd d; done")  # a descriptor for each
        assert reason(listing, b, "/root", recursive="true") == (507, "too_many_files")
        assert [e["name"] for e in listing(b, "/root")] == ["d"]


@only("crun")  # gVisor runs what is open for writing
def test_a_program_that_is_being_written_is_not_run_and_one_that_runs_is_replaced(s):
    with s.box() as b:
        b.sh("cp /bin/busybox /root/sleep")
        b.api.call("POST", f"/v1/sandboxes/{b.id}/exec", {"argv": ["/root/sleep", "1000"], "background": True})
        put(b, "/root/sleep", b"new")  # takes the name, not the file that runs
        assert read(b, "/root/sleep") == b"new"
        b.sh("cp /bin/busybox /root/true")
        b.api.call("POST", f"/v1/sandboxes/{b.id}/exec", {"command": "exec 3>>/root/true; : > /tmp/held; sleep 1000", "background": True})
        wait_until(lambda: b.exec("test -e /tmp/held").exit_code == 0, 30, "it is open for writing")
        assert reason(b.exec, ["/root/true"]) == (400, "cannot_run")


def test_ranges_and_etags(s):
    with s.box() as b:
        data = noise(100_000)
        put(b, "/root/f", data)
        status, body, head = get(b, "/root/f")
        assert status == 200 and head["Content-Length"] == "100000" and head["Berth-Mode"] == "0644", head.items()
        for text, part in [("bytes=10-19", data[10:20]), ("bytes=99990-", data[99990:]), ("bytes=-7", data[-7:]),
                           ("bytes=99999-200000", data[99999:]), ("bytes=0-0", data[:1])]:
            status, body, h = get(b, "/root/f", Range=text)
            assert (status, body) == (206, part) and h["Content-Range"].endswith("/100000"), (text, status, h.items())
        assert get(b, "/root/f", Range="bytes=5-1")[0] == 200 and get(b, "/root/f", Range="lines=1-2")[0] == 200
        assert reason(get, b, "/root/f", Range="bytes=100000-")[0] == 416
        assert get(b, "/root/f", If_None_Match=head["ETag"])[0] == 304
        assert get(b, "/root/f", Range="bytes=1-2", If_Range=head["ETag"])[1] == data[1:3]
        put(b, "/root/f", data)
        assert get(b, "/root/f", If_None_Match=head["ETag"])[0] == 200
        assert read(b, "/proc/self/status").startswith(b"Name:"), "a file that says it is empty and is not"


def test_directories_moves_and_removals(s):
    with s.box() as b:
        assert mkdir(b, "/root/a/b/c", parents=True, mode="0700")["mode"] == "0700"
        assert mkdir(b, "/root/a/b/c", parents=True)["mode"] == "0700"
        put(b, "/root/a/f", b"1")
        put(b, "/root/g", b"2")
        assert reason(move, b, "/root/g", "/root/a/f") == (409, "exists")
        assert move(b, "/root/g", "/root/a/f", overwrite=True)["path"] == "/root/a/f"
        assert read(b, "/root/a/f") == b"2"
        assert move(b, "/root/a", "/root/z")["type"] == "directory"
        assert [e["path"] for e in listing(b, "/root/z", recursive=1)] == ["/root/z/b", "/root/z/b/c", "/root/z/f"]
        b.sh("ln -s /etc /root/z/link; mkdir -p /root/z/keep; ln -s /root/g2 /root/z/b/l; echo k > /etc/kept")
        assert stat(b, "/root/z/link")["target"] == "/etc" and stat(b, "/root/z/link")["type"] == "symlink"
        assert remove(b, "/root/z", recursive=1) == 7
        assert b.sh("cat /etc/kept; ls /root") == "k\n"
        assert reason(remove, b, "/", recursive=1)[0] == 400
        assert b.sh("ls /bin | head -1").strip()


@limit(120)
def test_a_tree_of_ten_thousand_comes_in_pages(s):
    with s.box() as b:
        b.sh("cd /root; for i in $(seq 0 99); do mkdir -p t/$i/s; for j in $(seq 0 49); do : > t/$i/f$j; : > t/$i/s/g$j; done; done")
        want = sorted(("t", str(i), *rest) for i in range(100) for rest in
                      [(), ("s",), *[(f"f{j}",) for j in range(50)], *[("s", f"g{j}") for j in range(50)]])
        want = ["/root/" + "/".join(w) for w in want]
        assert len(want) == 10200
        got, after = [], ""
        while True:
            page = b.api.get(url(b, "/root", "/list", recursive=1, limit=777, after=after))
            got += [e["path"] for e in page["entries"]]
            after = page["next"]
            if not after:
                break
            if len(got) < 800:
                b.sh(f"rm -f '{got[-1]}'")  # the page goes on behind what is gone
        assert got[0] == "/root/t" and got[1:] == want, (len(got), len(want))
        assert len(listing(b, "/root/t", limit=100)) == 100
        assert reason(listing, b, "/root", limit=0)[0] == 400
        assert len(listing(b, "/", recursive=1, limit=10000)) == 10000
        assert remove(b, "/root/t", recursive=1) == 10200


def test_a_tree_deeper_than_any_path_can_be_removed(s):
    with s.box() as b:
        chain = "for i in $(seq 1 350); do mkdir dddddddddd; cd dddddddddd; done; : > bottom"
        b.sh(f"mkdir /root/a /root/b; cd /root/b; {chain}; cd /root/a; {chain}; mv /root/b .")
        gone = remove(b, "/root/a", recursive=1)
        assert gone == 704, gone
        assert b.sh("ls -A /root") == ""


def test_a_deep_tree_is_removed_with_few_descriptors(s):
    with s.box(open_files=64) as b:
        b.sh("cd /root; mkdir t; cd t; for i in $(seq 1 150); do mkdir d e; : > f; cd d; done")
        assert remove(b, "/root/t", recursive=1) == 451
        assert b.sh("ls -A /root") == ""


def test_w19_readers_see_the_old_file_or_the_new_one(s):
    with s.box() as b:
        a, z = b"a" * 400_000, b"z" * 300_000
        put(b, "/root/f", a)
        stop, seen, bad = threading.Event(), set(), []

        def reader():
            while not stop.is_set():
                got = read(b, "/root/f")
                seen.add(got[:1])
                if got not in (a, z):
                    bad.append((len(got), set(got)))
        threads = [threading.Thread(target=reader) for _ in range(3)]
        for t in threads:
            t.start()
        inside = b.exec("for i in $(seq 1 200); do h=$(md5sum < /root/f); echo $h; done | sort -u | wc -l")
        for i in range(40):
            put(b, "/root/f", z if i % 2 == 0 else a)
        stop.set()
        for t in threads:
            t.join()
        assert not bad and seen, bad[:3]
        assert inside.exit_code == 0 and int(inside.out) <= 2
        assert b.sh("ls -A /root").split() == ["f"], "nothing is left beside it"


def planted(b):
    b.sh("mkfifo /root/fifo; ln -s fifo /root/tofifo; mknod /root/null c 1 3 2>/dev/null; ln -s /dev/zero /root/zero; "
         "ln -s /proc/self/fd /root/fds; ln -s /proc/kmsg /root/kmsg; ln -s /dev/tty /root/tty; true")


def test_fifos_devices_and_sockets_are_refused_and_nothing_hangs(s):
    with s.box() as b:
        planted(b)
        start = time.monotonic()
        for path in ("/root/fifo", "/root/tofifo", "/root/zero", "/dev/null", "/dev/zero", "/root/tty", "/root/fds/0"):
            for call in (read, lambda b, p: put(b, p, b"x")):
                status, why = reason(call, b, path)
                assert status in (400, 403, 404), (path, status, why)
        assert reason(read, b, "/root/fifo") == (400, "not_a_file") == reason(put, b, "/root/zero", b"")
        assert time.monotonic() - start < 30
        assert stat(b, "/root/fifo")["type"] == "fifo" and stat(b, "/dev/null")["type"] == "device"
        assert {e["name"]: e["type"] for e in listing(b, "/root")}["zero"] == "symlink"
        assert remove(b, "/root", recursive=1) >= 6


def test_a_link_leads_to_the_guests_own_files(s):
    with s.box() as b:
        secret = noise(16).hex()
        host = os.path.join(s.work, "host-secret")
        with open(host, "w") as f:
            f.write(secret)
        b.sh(f"ln -s /etc/shadow /root/shadow; ln -s {host} /root/host; ln -s ../../../../../../../../{host} /root/up; "
             "ln -s / /root/slash; echo guest > /etc/shadow; ln -s shadow /root/two")
        assert read(b, "/root/shadow") == b"guest\n" == read(b, "/root/two")
        assert reason(read, b, "/root/host") == (404, "no_such_file") == reason(read, b, "/root/up")
        assert reason(put, b, "/root/host", b"x") == (404, "no_such_file")
        put(b, "/root/shadow", b"through")
        assert b.sh("cat /etc/shadow; readlink /root/shadow") == "through/etc/shadow\n"
        assert {e["name"] for e in listing(b, "/root/slash")} >= {"bin", "etc", "proc"}
        with open(host) as f:
            assert f.read() == secret
        os.unlink(host)


@limit(120)
def test_a_name_that_is_swapped_all_the_time_neither_hangs_nor_leads_out(s):
    with s.box() as b:
        b.sh("cd /root; mkdir d; echo inside > d/f; echo good > plain; mkfifo pipe; ln -s /etc e; echo x > /etc/f")
        done = threading.Event()

        def swap():
            b.exec("cd /root; i=0; while [ $i -lt 4000 ] && [ ! -e stop ]; do i=$((i+1)); ln -sfn /etc x; mv -T x s 2>/dev/null; rm -f s; "
                   "ln pipe s; rm -f s; ln plain s; rm -f s; ln -s d s; rm -f s; mkdir s; rmdir s; done", timeout_ms=90000)
            done.set()
        t = threading.Thread(target=swap)
        t.start()
        seen, end = set(), time.monotonic() + 8
        while time.monotonic() < end and not done.is_set():
            for call, args in ((read, ("/root/s",)), (read, ("/root/s/f",)), (put, ("/root/s/n", b"n")), (stat, ("/root/s",)),
                               (listing, ("/root/s",)), (remove, ("/root/s/n",))):
                try:
                    got = call(b, *args)
                    seen.add((call.__name__, bytes(got[:7]) if isinstance(got, bytes) else ""))
                except ApiError as e:
                    assert e.status in (400, 403, 404, 409), e
        b.sh(": > /root/stop")
        t.join()
        assert seen <= {("read", b"good\n"), ("read", b"inside\n"), ("read", b"x\n"), ("put", ""), ("stat", ""), ("listing", ""),
                        ("remove", "")}, seen


def test_a_full_disk_says_so_and_keeps_the_old_file(s):
    with s.box(disk_mb=64) as b:
        put(b, "/root/f", b"precious")
        for _ in range(5):
            try:
                status, why = reason(put, b, "/root/f", noise(1 << 20) * 100)
                break
            except OSError:  # it answers in the middle and reads on for 2 s: we may stand still for longer
                status, why = None, None
        assert (status, why) == (507, "no_space"), (status, why)
        assert read(b, "/root/f") == b"precious"
        assert b.sh("ls -A /root").split() == ["f"]
        assert put(b, "/root/f", noise(1000))[0] == 200


class Upload:
    """A PUT that stops half way."""

    def __init__(self, s, box, path, total, sent):
        self.sock = socket.create_connection(("127.0.0.1", s.port), timeout=60)
        self.sock.sendall((f"PUT {url(box, path)} HTTP/1.1\r\nHost: b\r\nAuthorization: Bearer {s.key}\r\n"
                           f"Content-Length: {total}\r\n\r\n").encode())
        self.sock.sendall(b"n" * sent)
        self.total, self.sent = total, sent

    def finish(self):
        try:
            self.sock.sendall(b"n" * (self.total - self.sent))
            return self.sock.recv(65536)
        except ConnectionError:  # it answered, and waited for us no longer than 2 s
            return b""


@limit(120)
def test_what_dies_in_the_middle_of_a_write_leaves_the_old_file(s):
    with s.box() as b:
        put(b, "/root/f", b"old")
        up = Upload(s, b, "/root/f", 10_000_000, 5_000_000)  # the client
        time.sleep(0.3)
        up.sock.close()
        time.sleep(0.3)
        assert read(b, "/root/f") == b"old"
        up = Upload(s, b, "/root/f", 10_000_000, 5_000_000)  # berthd
        time.sleep(0.3)
        s.kill("berthd")
        s.wait_healthy()
        assert read(b, "/root/f") == b"old"
        if s.runtime == "crun":  # the process in init that does it; on gVisor nobody outside sees it
            up = Upload(s, b, "/root/f", 10_000_000, 5_000_000)
            init = s.init_pid(b.id)
            child = wait_until(lambda: [p for p in s.cgroup_pids(b.id) if p != init], 10, "the writer")
            signal_all(child, signal.SIGKILL)  # one that served the last request may be among them, and end by itself
            answer = up.finish()
            assert b" 503 " in answer.split(b"\r\n")[0] or not answer, answer
            assert read(b, "/root/f") == b"old"
        wait_until(lambda: b.sh("ls -A /root").split() == ["f"], 10, "nothing beside it")
        put(b, "/root/f", b"new")
        assert read(b, "/root/f") == b"new"


def test_a_file_that_is_cut_while_it_is_read_is_no_whole_file(s):
    with s.box() as b:
        b.sh("dd if=/dev/zero of=/root/f bs=1M count=40 2>/dev/null")
        conn = b.api.connect()
        conn.request("GET", url(b, "/root/f"), headers=b.api.headers())
        r = conn.getresponse()
        first = r.read(1000)
        b.sh("truncate -s 1000 /root/f 2>/dev/null || : > /root/f")
        try:
            rest = r.read()
        except http.client.IncompleteRead:
            pass
        else:
            raise AssertionError(f"{len(first) + len(rest)} bytes, and it looked whole")
        finally:
            conn.close()


def test_a_sandbox_that_is_killed_meanwhile_ends_the_answer(s):
    b = s.box()
    b.sh("dd if=/dev/zero of=/root/f bs=1M count=60 2>/dev/null")
    conn = b.api.connect()
    conn.request("GET", url(b, "/root/f"), headers=b.api.headers())
    r = conn.getresponse()
    r.read(1000)
    s.api.delete(b.id)
    try:
        rest = r.read()
    except (http.client.IncompleteRead, ConnectionError):
        pass
    else:
        assert False, len(rest)
    conn.close()
    assert reason(read, b, "/root/f")[0] == 404


def test_files_do_not_wait_behind_commands(s):
    with s.box() as b:
        t = threading.Thread(target=lambda: b.exec(": > /tmp/begun; until [ -e /root/end ]; do sleep 0.1; done"))
        t.start()
        wait_until(lambda: "begun" in [e["name"] for e in listing(b, "/tmp")], 30, "the command begun")
        for i in range(20):
            put(b, "/root/f", str(i).encode())
            assert read(b, "/root/f") == str(i).encode()
        assert t.is_alive(), "the command ended before it was told to"
        put(b, "/root/end", b"")  # what waited behind the command would wait for ever
        t.join()


def test_another_owner_sees_nothing(s):
    code, out, err = s.berth("key", "create", "other", "--role", "user", "--json")
    assert code == 0, err
    other = Api(s.port, json.loads(out).get("key") or json.loads(out)["secret"])
    with s.box() as b:
        put(b, "/root/f", b"mine")
        for method, verb in (("GET", ""), ("PUT", ""), ("DELETE", ""), ("GET", "/stat"), ("GET", "/list"), ("GET", "/watch")):
            status, _, _ = other.request(method, url(b, "/root/f", verb))
            assert status == 404, (method, verb, status)
        assert read(b, "/root/f") == b"mine"


def tar_of(entries):
    """A tar of [(name, bytes or (type, target))]."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, what in entries:
            info = tarfile.TarInfo(name)
            if isinstance(what, bytes):
                info.size, info.mode, info.mtime = len(what), 0o640, 1_000_000
                tar.addfile(info, io.BytesIO(what))
            else:
                info.type, info.linkname = what
                info.mode = 0o750
                tar.addfile(info)
    return out.getvalue()


def test_trees_go_in_and_come_out_as_tar(s):
    with s.box() as b:
        big = noise(700_001)
        tree = [("d", (tarfile.DIRTYPE, "")), ("d/big", big), ("d/empty", b""), ("x" * 90 + "/" + "y" * 90 + "/" + "z" * 200, b"long"),
                ("d/link", (tarfile.SYMTYPE, "../nowhere")), ("d/n\nl", b"newline"), ("hard", (tarfile.LNKTYPE, "d/big"))]
        status, got, _ = b.api.request("PUT", url(b, "/root/t", "/tar"), tar_of(tree))
        assert (status, got) == (200, {"entries": 7}), got
        assert b.sh("cd /root/t; sha256sum < d/big; stat -c '%a %Y' d/big; readlink d/link; cat x*/*/*; stat -c %h hard").split("\n") == [
            hashlib.sha256(big).hexdigest() + "  -", "640 1000000", "../nowhere", "long2", ""]
        b.sh("mkfifo /root/t/fifo; printf 1 > \"$(printf '/root/t/\\377')\"")
        status, data, head = b.api.request("GET", url(b, "/root/t", "/tar"))
        assert status == 200 and head["Content-Type"] == "application/x-tar"
        with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as tar:
            names = {m.name: m for m in tar.getmembers()}
            assert tar.extractfile("d/big").read() == big and names["d/link"].linkname == "../nowhere"
            assert set(names) == {"d", "d/big", "d/empty", "d/link", "d/n\nl", "hard", "x" * 90, "x" * 90 + "/" + "y" * 90,
                                  "x" * 90 + "/" + "y" * 90 + "/" + "z" * 200, "\udcff"}, set(names)
        status, data, _ = b.api.request("GET", url(b, "/root/t/d/big", "/tar"))
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            assert tar.getnames() == ["big"]
        assert reason(b.api.get, url(b, "/none", "/tar")) == (404, "no_such_file")


def unpack_reason(b, data, path="/root/u"):
    return reason(b.api.call, "PUT", url(b, path, "/tar"), data)


def test_an_archive_stays_where_it_is_unpacked(s):
    with s.box() as b:
        b.sh("mkdir -p /root/u /etc/x; ln -s /etc/x /root/u/there; echo k > /etc/kept")
        assert unpack_reason(b, tar_of([("../out", b"1")]))[0] == 400
        assert unpack_reason(b, tar_of([("a/../../out", b"1")]))[0] == 400
        assert unpack_reason(b, tar_of([("there/f", b"1")])) == (400, "not_a_directory")
        assert unpack_reason(b, tar_of([("l", (tarfile.SYMTYPE, "/etc")), ("l/f", b"1")])) == (400, "not_a_directory")
        assert unpack_reason(b, tar_of([("h", (tarfile.LNKTYPE, "../../etc/kept"))]))[0] == 400
        assert unpack_reason(b, tar_of([("n", (tarfile.CHRTYPE, ""))])) == (400, "not_a_file")
        assert unpack_reason(b, tar_of([("f", noise(100_000))])[:60_000])[0] == 400
        assert unpack_reason(b, b"this is no archive" * 100)[0] == 400
        b.api.call("PUT", url(b, "/root/u", "/tar"), tar_of([("/abs", b"below")]))
        assert b.sh("cat /root/u/abs; ls /etc/x; ls /root; cat /etc/kept") == "belowu\nk\n"
        assert b.sh("ls -A /root/u").split() == ["abs", "l", "there"], "and half a file is none"


def keyed(b, method, path, key, body=None):
    """(status, body, replayed?)"""
    headers = {"Idempotency-Key": key}
    status, data, head = b.api.request(method, path, body, headers)
    return status, data, head.get("Idempotency-Replayed") == "true"


@only("crun")
def test_a_write_a_move_and_a_removal_with_a_key_happen_once(s):
    with s.box() as b:
        k = [noise(8, i).hex() + b.id for i in range(9)]
        first = keyed(b, "PUT", url(b, "/root/f"), k[0], b"one")
        put(b, "/root/f", b"two")
        again = keyed(b, "PUT", url(b, "/root/f"), k[0], b"one")
        assert (first[0], first[2]) == (201, False) and again == (201, first[1], True), (first, again)
        assert read(b, "/root/f") == b"two" and b.sh("ls -A /root").split() == ["f"]
        assert keyed(b, "PUT", url(b, "/root/f"), k[0], b"other")[0] == 409
        assert keyed(b, "PUT", url(b, "/root/g"), k[0], b"one")[0] == 409
        assert read(b, "/root/f") == b"two"
        body = {"from": "/root/f", "to": "/root/g"}
        first = keyed(b, "POST", f"/v1/sandboxes/{b.id}/files/move", k[1], body)
        assert first[0] == 200 and keyed(b, "POST", f"/v1/sandboxes/{b.id}/files/move", k[1], body) == (200, first[1], True)
        assert keyed(b, "DELETE", url(b, "/root/g"), k[2]) == (200, {"removed": 1}, False)
        put(b, "/root/g", b"back")
        assert keyed(b, "DELETE", url(b, "/root/g"), k[2]) == (200, {"removed": 1}, True)
        assert read(b, "/root/g") == b"back"
        # What failed changed nothing, and may be tried again.
        assert keyed(b, "PUT", url(b, "/root/d/f"), k[3], b"x")[0] == 404
        mkdir(b, "/root/d")
        assert keyed(b, "PUT", url(b, "/root/d/f"), k[3], b"x")[::2] == (201, False)
        assert keyed(b, "DELETE", url(b, "/none"), k[4])[0] == 404 == keyed(b, "DELETE", url(b, "/none"), k[4])[0]
        got = []
        threads = [threading.Thread(target=lambda: got.append(keyed(b, "POST", f"/v1/sandboxes/{b.id}/files/mkdir", k[5], {"path": "/root/m"})))
                   for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sorted(g[0] for g in got)[0] == 201 and {g[0] for g in got} <= {201, 503} and sum(not g[2] and g[0] == 201 for g in got) == 1, got
        s.kill("berthd")
        s.wait_healthy()
        assert keyed(b, "PUT", url(b, "/root/d/f"), k[3], b"x")[::2] == (201, True)


def tree_facts(top):
    """{path: (kind, mode, contents)} of a local tree."""
    out = {}
    for root, dirs, files in os.walk(os.fsencode(top)):
        for name in dirs + files:
            path = os.path.join(root, name)
            st = os.lstat(path)
            what = os.readlink(path) if os.path.islink(path) else open(path, "rb").read() if os.path.isfile(path) else b""
            out[os.path.relpath(path, os.fsencode(top))] = (st.st_mode >> 12, 0 if os.path.islink(path) else st.st_mode & 0o777, what)
    return out


@only("crun")
def test_cp_carries_files_and_trees_both_ways(s):
    top = tempfile.mkdtemp(dir=s.work)
    src = os.path.join(top, "src")
    os.makedirs(src + "/a/b")
    for i, name in enumerate(HERE_ODD):
        with open(os.fsencode(src) + b"/a/" + name, "wb") as f:
            f.write(noise(i * 1000, i))
        os.chmod(os.fsencode(src) + b"/a/" + name, 0o600 + i)
    os.symlink("../nowhere", src + "/a/b/link")
    with s.box() as b:
        def cp(*args, stdin=b"", want=0):
            code, out, err = s.berth("cp", *args, stdin=stdin)
            assert (code == 0) == (want == 0), (args, code, err)
            return out or err
        mkdir(b, "/root/there")
        cp(src, b.id + ":/root/new")
        cp(src, b.id + ":/root/there")
        assert b.sh("find /root/new | wc -l") == b.sh("find /root/there/src | wc -l")
        cp(b.id + ":/root/new", top + "/back")
        assert tree_facts(src) == tree_facts(top + "/back")
        os.mkdir(top + "/dir")
        cp(b.id + ":/root/there/src", top + "/dir")
        assert tree_facts(src) == tree_facts(top + "/dir/src")
        cp(src + "/a/plain", b.id + ":/root/one")
        assert stat(b, "/root/one")["mode"] == "0600" and read(b, "/root/one") == noise(0, 0)
        cp("-", b.id + ":/root/in", stdin=b"from a pipe")
        assert cp(b.id + ":/root/in", "-") == b"from a pipe"
        cp(b.id + ":/root/in", top + "/dir")
        with open(top + "/dir/in", "rb") as f:
            assert f.read() == b"from a pipe"
        assert b"no" in cp(b.id + ":/none", top + "/x", want=1).lower() and not os.path.exists(top + "/x")
        assert cp(top, top + "/y", want=1) and cp("nowhere", b.id + ":/root/z", want=1)


@only("crun")
def test_what_a_sandbox_sends_stays_where_cp_was_told(s):
    """An archive of a hostile guest: init is not believed, so here its place is taken by a server that lies."""
    top = tempfile.mkdtemp(dir=s.work)
    evil = [[("../evil", b"1")], [("l", (tarfile.SYMTYPE, top)), ("l/evil", b"1")], [("/" + top + "/evil2", b"1")],
            [("x", (tarfile.CHRTYPE, ""))]]
    served = []

    class Liar(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"type": "directory", "mode": "0755"}).encode() if "/stat?" in self.path else tar_of(served[0])
            self.send_response(200)
            self.send_header("Content-Type", "application/json" if "/stat?" in self.path else "application/x-tar")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass
    liar = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    threading.Thread(target=liar.serve_forever, daemon=True).start()
    for i, entries in enumerate(evil):
        served[:] = [entries]
        into = f"{top}/into{i}/deep"
        os.makedirs(into)
        code, _, err = s.berth("cp", "sb_c1_x:/t", into, env={"BERTH_URL": f"http://127.0.0.1:{liar.server_port}"})
        assert (code == 0) == (i == 2), (i, code, err)
        assert not os.path.exists(f"{top}/evil") and not os.path.exists(f"{top}/into{i}/evil") and not os.path.exists(f"{top}/evil2")
    liar.shutdown()


def rss_kb(pids):
    return sum(int(line.split()[1]) for p in pids for line in leftovers.read(f"/proc/{p}/status").split("\n") if line.startswith("VmRSS"))


class Memory:
    """The most that berthd, and all of the sandbox's processes, had in memory meanwhile."""

    def __init__(self, s, box):
        self.read = lambda: (rss_kb([s.pid("berthd")]), rss_kb(s.cgroup_pids(box.id)))
        self.first = self.most = self.read()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stop.wait(0.1):
            self.most = tuple(map(max, self.most, self.read()))

    def end(self):
        self.stop.set()
        self.thread.join()
        return self.most[0] - self.first[0], self.most[1] - self.first[1]


@only("crun")
@limit(180 * GIB)
def test_gigabytes_either_way_with_flat_memory(s):
    """BERTH_FILE_GIB=4 for more of them; the memory is the same."""
    piece, count = noise(1 << 20), GIB << 10
    with s.box(disk_mb=count + 500, memory_mb=256) as b:
        m = Memory(s, b)
        status, entry = put(b, "/root/f", Pieces(piece, count), {"Content-Length": str(GIB << 30)})
        assert (status, entry["size"]) == (201, GIB << 30)
        conn = b.api.connect()
        conn.request("GET", url(b, "/root/f"), headers=b.api.headers())
        r = conn.getresponse()
        for i in range(count):
            assert r.read(1 << 20) == piece, i
        assert r.read() == b""
        conn.close()
        conn = b.api.connect()  # and a client that does not read costs nothing either
        conn.request("GET", url(b, "/root/f"), headers=b.api.headers())
        time.sleep(1)
        berthd, box = m.end()
        conn.close()
        print(f"      {GIB} GiB both ways: berthd {berthd} kB more, {m.most[0]} kB at most; the sandbox {box} kB more, "
              f"{m.most[1]} kB at most", flush=True)
        assert berthd < 64_000 and box < 32_000, (berthd, box)


class Pieces:
    """A body that is never all in memory."""

    def __init__(self, piece, count):
        self.piece, self.left = piece, count

    def read(self, _=None):
        self.left -= 1
        return self.piece if self.left >= 0 else b""


class Watch:
    def __init__(self, box, path, **more):
        self.seen, self.box, self.failed = [], box, None
        self.conn = box.api.connect()
        self.conn.request("GET", url(box, path, "/watch", **more), headers=box.api.headers({"Accept": "text/event-stream"}))
        self.reply = self.conn.getresponse()
        assert self.reply.status == 200, self.reply.read()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        wait_until(lambda: self.seen and self.seen[0][0] == "watching", 10, "watching")

    def run(self):
        try:
            for event in parse_events(self.reply):
                self.seen.append(event)
        except (OSError, ValueError, AttributeError, http.client.HTTPException) as e:
            self.failed = e

    def wait(self, kind, path, to=None):
        def there():
            return any(n == "change" and e["type"] == kind and e["path"] == path and e.get("to") == to for n, e in self.seen)
        wait_until(there, 15, f"{kind} {path} among {self.seen[-20:]}")

    def close(self):
        self.conn.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)


def test_changes_are_told_as_they_happen(s):
    with s.box() as b:
        b.sh("mkdir -p /root/w/sub; echo x > /root/w/old")
        w = Watch(b, "/root/w", recursive=1)
        b.sh("echo y >> /root/w/old")
        w.wait("modified", "/root/w/old")
        put(b, "/root/w/sub/new", b"1")  # of a write the name is told, and not those that Berth uses on the way to it
        w.wait("created", "/root/w/sub/new")
        one = Watch(b, "/root/w/sub/new")
        for text in (b"2", b"3"):  # each is another file in the place of the one before
            seen = len(one.seen)
            put(b, "/root/w/sub/new", text)
            w.wait("modified", "/root/w/sub/new")
            wait_until(lambda n=seen: ("change", {"type": "modified", "path": "/root/w/sub/new"}) in one.seen[n:], 15, one.seen)
        one.close()
        b.api.call("PUT", url(b, "/root/w/sub", "/tar"), tar_of([("link", (tarfile.SYMTYPE, "new")), ("file", b"x")]))
        w.wait("created", "/root/w/sub/link")
        w.wait("created", "/root/w/sub/file")
        b.sh("mkdir -p /root/w/a/b && echo 1 > /root/w/a/b/f")
        w.wait("created", "/root/w/a/b/f")
        b.sh("mv /root/w/a /root/w/z && echo 2 > /root/w/z/b/g")
        w.wait("moved", "/root/w/a", "/root/w/z")
        w.wait("created", "/root/w/z/b/g")
        b.sh("rm /root/w/old")
        w.wait("deleted", "/root/w/old")
        w.close()
        assert not [e for _, e in w.seen if ".berth-" in str(e) or "#" in str(e)], w.seen
        assert reason(b.api.get, url(b, "/none", "/watch")) == (404, "no_such_file")
