"""berthd before strangers: malformed requests, slow ones, and ten thousand that only listen."""
import json
import pathlib
import pwd
import re
import resource
import select
import socket
import subprocess
import threading
import time

import nodeproto
from client import Api
from marks import SLOW, limit, only
from server import TOP, die_with_parent, wait_until

VECTORS = TOP / "tests/fuzz/corpus/http"
GOOD = b"GET /v1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
STREAMS, STREAMS_MB = 10_000, 20


def connect(s, timeout=10):
    return socket.create_connection(("127.0.0.1", s.port), timeout=timeout)


def read_all(sock, seconds):
    data, end = b"", time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            sock.settimeout(max(0.05, end - time.monotonic()))
            more = sock.recv(65536)
            if not more:
                break
            data += more
    except OSError:
        pass
    return data


def test_44_of_44_malformed_requests_are_refused(s):
    vectors = sorted(VECTORS.glob("vector-*"))
    assert len(vectors) == 44
    accepted = []
    for v in vectors:
        with connect(s) as sock:
            sock.sendall(v.read_bytes() + GOOD)
            sock.shutdown(socket.SHUT_WR)
            answer = read_all(sock, 3)
        status = re.match(rb"HTTP/1\.[01] (\d+)", answer)
        if status and (status[1][:1] == b"2" or status[1] == b"404") or answer.count(b"HTTP/1.1 ") > 1:
            accepted.append((v.name, answer[:80]))
        assert not status or status[1][:1] == b"4", (v.name, answer[:200])
    assert not accepted, accepted


def test_good_requests_on_one_connection_are_all_answered(s):
    with connect(s) as sock:
        sock.sendall(GOOD.replace(b"Connection: close\r\n", b"") * 3 + GOOD)
        answer = read_all(sock, 60)
    assert answer.count(b"HTTP/1.1 200") == 4, answer


def test_too_much_of_anything_is_refused(s):
    for head in (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: a\r\n" + b"".join(b"X%d: y\r\n" % i for i in range(5000)) + b"\r\n"):
        with connect(s) as sock:
            try:
                sock.sendall(head)
            except OSError:
                pass
            answer = read_all(sock, 3)
        assert not answer or re.match(rb"HTTP/1\.1 4\d\d", answer), answer[:100]
    with connect(s) as sock:  # a body that is too long is refused by its length, before it comes
        sock.sendall(b"POST /v1/sandboxes HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n"
                     b"Content-Length: 99999999999\r\n\r\n" % s.key.encode())
        answer = read_all(sock, 30)
    assert re.match(rb"HTTP/1\.1 4\d\d", answer), answer[:100]
    assert s.api.get("/v1/health")["status"] == "ok"


def test_another_method_is_405_and_says_which_are_known(s):
    status, body, headers = s.api.request("PUT", "/v1/sandboxes")
    assert (status, body["reason"]) == (405, "method_not_allowed"), body
    assert sorted(headers["Allow"].split(", ")) == ["GET", "POST"] and "POST" in body["remediation"], (headers, body)
    assert s.api.request("GET", "/v1/nothing")[0] == 404


def test_a_key_that_is_none_is_refused_however_often_and_a_revoked_one_at_once(s):
    stranger = Api(s.port, "berth_" + "x" * 52)
    assert [stranger.request("GET", "/v1/sandboxes")[0] for _ in range(20)] == [401] * 20
    made = s.api.call("POST", "/v1/keys", {"name": "for a moment"})
    api = Api(s.port, made["key"])
    assert api.request("GET", "/v1/sandboxes")[0] == 200
    s.api.call("DELETE", "/v1/keys/" + made["id"])
    assert api.request("GET", "/v1/sandboxes")[0] == 401


@only("crun")
def test_what_a_key_has_open_ends_when_it_is_revoked(s):
    made = [s.api.call("POST", "/v1/keys", {"name": name, "owner": "open"}) for name in ("leaked", "good")]
    leaked, good = (Api(s.port, k["key"]) for k in made)
    ident = good.create()
    opened = []
    try:
        for api in (leaked, good):
            opened.append([api.upgrade(ident), connect(s), connect(s)])
            opened[-1][0].sendall(nodeproto.exec_frame(["cat"], stdin=True))
            for sock, path in zip(opened[-1][1:], ("/v1/events", "/v1/sandboxes/%s/files/watch?path=/tmp" % ident)):
                sock.sendall(b"GET %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n"
                             % (path.encode(), api.key.encode()))
                assert sock.recv(12) == b"HTTP/1.1 200"
        s.api.call("DELETE", "/v1/keys/" + made[0]["id"])
        for sock in opened[0]:
            sock.settimeout(60)
            while sock.recv(65536):
                pass
        for sock in opened[1]:  # of the same owner, and none of that key's
            sock.setblocking(False)
            try:
                while sock.recv(65536):
                    pass
                raise AssertionError("a stream of another key was ended")
            except BlockingIOError:
                pass
    finally:
        for sock in sum(opened, []):
            sock.close()
        good.delete(ident)


class Slow:
    """Clients that send, or read, one byte a second."""

    def __init__(self, s, ident, count):
        self.s, self.ident, self.on = s, ident, True
        self.threads = [threading.Thread(target=work) for work in (self.send, self.read) for _ in range(count)]

    def send(self):
        with connect(self.s) as sock:
            for i in range(1000):
                if not self.on:
                    return
                try:
                    sock.send(GOOD[i % len(GOOD):][:1])
                except OSError:
                    return
                time.sleep(1)

    def read(self):
        body = json.dumps({"command": "cat /dev/zero | head -c 3000000"}).encode()
        with connect(self.s) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            sock.sendall(b"POST /v1/sandboxes/%s/exec HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n"
                         b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                         % (self.ident.encode(), self.s.key.encode(), len(body), body))
            while self.on:
                try:
                    sock.recv(1)
                except OSError:
                    return
                time.sleep(1)

    def __enter__(self):
        [t.start() for t in self.threads]
        return self

    def __exit__(self, *_):
        self.on = False
        [t.join() for t in self.threads]


@limit(240)
def test_clients_of_one_byte_a_second_hurt_nobody(s):
    def taken(b, count):
        times = []
        for i in range(count):
            start = time.monotonic()
            assert b.exec(["echo", str(i)]).out == f"{i}\n".encode()
            times.append(time.monotonic() - start)
        return sorted(times)
    with s.box(memory_mb=2048) as b:
        before = taken(b, 20)
        with Slow(s, b.id, 20 if s.runtime == "crun" else 5):
            time.sleep(1)
            times = taken(b, 40)
        after = taken(b, 20)
        alone = max(before[10], after[10])  # what this machine takes for it just now
        assert times[20] < max(0.5, 5 * alone) and times[-1] < 20 + 5 * alone, (before, times, after)


def rss(pid):
    """User memory of a process, in bytes."""
    return int(re.search(r"^RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1]) << 10


UNFINISHED, BODY = 200, 1_000_000


def unfinished(s, head, more):
    """A connection that sends this and then nothing; what cannot be sent any more was refused."""
    sock = connect(s)
    try:
        sock.sendall(head + more)
    except OSError:
        pass
    return sock


@only("crun")
@limit(120)
def test_requests_that_never_end_take_little_memory_and_nothing_from_others(s):
    head = (f"POST /v1/sandboxes HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {s.key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {BODY}\r\n\r\n").encode()
    events = f"GET /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {s.key}\r\n\r\n".encode()
    other = s.api.call("POST", "/v1/keys", {"name": "of somebody else", "role": "user", "owner": "other"})
    sent = {"a head": 0, "nine tenths of a body": BODY * 9 // 10, "128 KiB behind a stream": 128 * 1024}
    for what, size in sent.items():
        before = rss(s.pid("berthd"))
        socks = [unfinished(s, events if "stream" in what else head, b"x" * size) for _ in range(UNFINISHED)]
        try:
            ask = Api(s.port, other["key"]).request("POST", "/v1/sandboxes", {"image": "no-such-image"})
            assert ask[0] == 404, ask  # another owner's body is read, and answered
            assert s.api.request("GET", "/v1/sandboxes")[0] == 200
            more = rss(s.pid("berthd")) - before
            print(f"      {UNFINISHED} x {what}: {UNFINISHED * size / 1e6:.0f} MB sent, {more / 1e6:.1f} MB more", flush=True)
            assert more < max(UNFINISHED * size / 2, UNFINISHED * 32768), (what, more)
        finally:
            [sock.close() for sock in socks]
    s.api.call("DELETE", "/v1/keys/" + other["id"])


@only("crun")
@limit(240)
def test_ten_thousand_idle_streams_cost_under_20_mb(s):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    assert hard > STREAMS + 500, f"the limit of open files is {hard}"
    ask = (f"GET /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {s.key}\r\n"
           "Accept: text/event-stream\r\n\r\n").encode()
    s.kill("berthd")  # a new one, whose memory holds nothing of earlier tests
    time.sleep(0.5)
    s.wait_healthy()
    s.api.get("/v1/sandboxes")
    before, streams = rss(s.pid("berthd")), []
    try:
        while len(streams) < STREAMS:
            batch = [connect(s, 60) for _ in range(min(200, STREAMS - len(streams)))]
            for sock in batch:
                sock.sendall(ask)
            for sock in batch:
                assert sock.recv(4096).startswith(b"HTTP/1.1 200"), "refused"
            streams += batch
        time.sleep(1)
        more = rss(s.pid("berthd")) - before
        print(f"      {STREAMS} idle streams: {more / 1e6:.1f} MB more, {more / STREAMS:.0f} B each", flush=True)
        assert more < STREAMS_MB * 1e6, more
        with s.box() as b:  # one event to all of them, and work goes on
            assert b.exec(["echo", "x"]).out == b"x\n"
        told = read_events(streams, b"ready", 90)
        assert told == STREAMS, told
    finally:
        for sock in streams:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert s.api.get("/v1/health")["status"] == "ok"


def read_events(streams, word, seconds):
    """How many of these get to see that word."""
    waiting, poll, end = {k.fileno(): [k, b""] for k in streams}, select.epoll(), time.monotonic() + seconds
    for fd in waiting:
        poll.register(fd, select.EPOLLIN)
    seen = 0
    while waiting and time.monotonic() < end:
        for fd, _ in poll.poll(1):
            if fd not in waiting:
                continue
            waiting[fd][1] += waiting[fd][0].recv(65536)
            if word in waiting[fd][1]:
                seen += 1
                poll.unregister(fd)
                del waiting[fd]
    poll.close()
    return seen


def test_a_clients_trace_id_is_echoed_and_in_every_line_of_both_daemons(s):
    def log(daemon):
        return [json.loads(line) for line in pathlib.Path(s.dir, "log", daemon + ".log").read_text().split("\n") if line.startswith("{")]

    def request(method, path, body=None):
        status, said, headers = s.api.request(method, path, body, {"X-Trace-Id": "tr_0123456789abcdef"})
        assert headers.get_all("X-Trace-Id") == ["tr_0123456789abcdef"], headers.items()
        assert headers["X-Request-Id"].startswith("tr_0123456789abcdef."), headers.items()
        return status, said, headers["X-Request-Id"]
    _, box, made = request("POST", "/v1/sandboxes", {"image": "base"})
    _, _, ran = request("POST", f"/v1/sandboxes/{box['id']}/exec", {"argv": ["true"]})
    _, _, gone = request("DELETE", "/v1/sandboxes/" + box["id"])
    assert len({made, ran, gone}) == 3
    wait_until(lambda: {made, ran, gone} <= {line.get("request_id") for line in log("berthd")}, 20, "all three in berthd's log")
    wait_until(lambda: {made, gone} <= {line.get("request_id") for line in log("berth-node")}, 20, "both in berth-node's log")
    for daemon in ("berthd", "berth-node"):  # no line about its life that another request, or none, would have to be blamed for
        of_it = [line for line in log(daemon) if line.get("sandbox") == box["id"]]
        assert of_it and all(line.get("request_id", "").startswith("tr_0123456789abcdef.") for line in of_it), of_it
    status, said, _ = s.api.request("POST", "/v1/sandboxes", {"image": "nosuch"}, {"X-Trace-Id": "tr_x"})
    assert status == 404 and said["request_id"].startswith("tr_x."), said
    for bad in ("", "a b", "a.b", "x" * 65):
        status, said, headers = s.api.request("GET", "/v1/health", None, {"X-Trace-Id": bad})
        assert status == 400 and "X-Trace-Id" in said["message"] and "64" in said["remediation"], said
        assert headers["X-Request-Id"] == headers["X-Trace-Id"] == said["request_id"], headers.items()
    _, _, headers = s.api.request("GET", "/v1/health")
    assert headers["X-Trace-Id"] == headers["X-Request-Id"] and headers["X-Request-Id"].startswith("rq_"), headers.items()


def test_what_must_be_said_once_and_is_said_twice_is_refused(s):
    def ask(target, *headers):
        with connect(s) as sock:
            sock.sendall("\r\n".join([f"GET {target} HTTP/1.1", "Host: x", "Connection: close", *headers, "", ""]).encode())
            return read_all(sock, 60).decode()
    key = "Authorization: Bearer " + s.key
    for header in (key, "authorization: Bearer nonsense", "Idempotency-Key: a", "X-API-Key: a", "Last-Event-ID: 1", "X-Trace-Id: tr_a"):
        twice = [header, header] if header.split(":")[0] != "authorization" else [header]
        got = ask("/v1/sandboxes", key, *(twice[1:] if header is key else twice))
        name = header.split(":")[0].replace("authorization", "Authorization")
        assert got.startswith("HTTP/1.1 400 ") and f"{name} is sent more than once" in got, (header, got)
    for query in ("limit=1&limit=2", "limit=1&state=ready&limit=1", "limit&limit", "limit=2&&limit=1&"):
        got = ask("/v1/sandboxes?" + query, key)
        assert got.startswith("HTTP/1.1 400 ") and 'the query says \\"limit\\" more than once' in got, (query, got)
    assert ask("/v1/sandboxes?limit=1&state=ready", key, "Accept: a/b", "Accept: c/d").startswith("HTTP/1.1 200 ")
    assert ask("/v1/health?a=1&a=2").startswith("HTTP/1.1 200 ")


def test_the_log_says_of_a_cut_answer_what_its_client_got(s):
    def line():
        text = pathlib.Path(s.dir, "log", "berthd.log").read_text()
        return next((json.loads(row) for row in text.split("\n") if '"tr_cut.' in row and '"msg":"request"' in row), None)
    with s.box() as b, connect(s) as sock:
        sock.sendall((f"GET /v1/sandboxes/{b.id}/files?path=/proc/self/mem HTTP/1.1\r\nHost: x\r\nX-Trace-Id: tr_cut\r\n"
                      f"Authorization: Bearer {s.key}\r\n\r\n").encode())
        got = read_all(sock, 60)
        wait_until(line, 10, "logged")
    assert got.startswith(b"HTTP/1.1 " + line()["status"].encode()), (got, line())
    if line()["status"] == "200":
        assert not got.endswith(b"0\r\n\r\n") and line()["why"].startswith("cut: "), (got, line())


def test_a_second_server_on_the_same_port_is_refused_with_words(s):
    conf = pathlib.Path(s.dir, "berthd.conf")
    user = conf.read_text().split(" user=")[1].split()[0]  # of one user listeners may share a port
    p = subprocess.Popen(["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups",
                          s.build / "src/berthd/berthd", "--config", conf],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=die_with_parent)
    try:
        said = p.communicate(timeout=60 * SLOW)[0].decode()
    except subprocess.TimeoutExpired:
        raise AssertionError("a second berthd serves the same port") from None
    finally:
        p.kill()
    assert p.returncode == 1 and f"listen at 127.0.0.1:{s.port}" in said and "choose another port" in said, said
    assert s.healthy()


def test_no_log_has_a_key_or_what_a_command_was_given(s):
    def logged(text):
        return any(text in log.read_bytes() for log in pathlib.Path(s.dir, "log").glob("*.log"))
    told, word = "told-to-a-command-5c1e", s.key.removeprefix("berth_").encode()
    with s.box() as b:
        for path in ("/v1/sandboxes/" + s.key, "/" + s.key, f"/v1/sandboxes/{b.id}/wrappers/{s.key}", f"/v1/sandboxes?after={s.key}"):
            s.api.request("GET", path)
        r = b.exec(["sh", "-c", f"echo {told}; cat; echo $MINE; false"], stdin=told, env={"MINE": told})
        assert r.out.count(told.encode()) == 3
        last = "/v1/nothing-after-this"
        s.api.request("GET", last)
        wait_until(lambda: logged(last.encode()), 30, "logged")
        seen = {text: logged(text) for text in (b"/berth_****", word, told.encode())}
        assert list(seen.values()) == [True, False, False], seen


def test_what_is_refused_is_counted_for_the_operator(s):
    """A key that is none, a role, a pass, a path and a port: one row each, however often, and with the sandbox that was meant."""
    def incidents():
        return {(i["kind"], i["sandbox"]): i for i in s.api.get("/v1/security")["incidents"] if i["source"] == "127.0.0.1"}

    user = Api(s.port, s.api.call("POST", "/v1/keys", {"name": "small", "role": "user", "owner": "o-small"})["key"])
    stranger = Api(s.port, "berth_no_such_key_for_incidents")
    with s.box() as b:
        before = incidents()
        for _ in range(5):
            status, said, _ = stranger.request("GET", f"/v1/sandboxes/{b.id}")
            assert (status, said["reason"]) == (401, "bad_key"), said
        for what, status, reason in (
                (user.request("GET", "/v1/keys"), 403, "role_denied"),
                (s.api.request("GET", "/v1/health", None, {"Berth-Peer": "v2;h1;h2"}), 403, "forged_pass"),
                (s.api.request("GET", "/v1/sandboxes/%2e%2e/files"), 404, "path_escape"),
                (s.api.request("PUT", f"/v1/sandboxes/{b.id}/network",
                               {"mode": "allow", "rules": [{"host": "example.com", "ports": [70000]}]}), 400, "invalid_port")):
            assert (what[0], what[1].get("reason")) == (status, reason), what[:2]

        def more(kind, sandbox=""):
            return incidents().get((kind, sandbox), {"count": 0})["count"] - before.get((kind, sandbox), {"count": 0})["count"]

        def counts():
            return [more(k, b.id) for k in ("bad_key", "invalid_port")] + [more(k) for k in ("role_denied", "forged_pass", "path_escape")]
        # Row by row: one that is taken while requests come is complete only with the next round.
        wait_until(lambda: sum(counts()) >= 9, 30, "written down")
        assert counts() == [5, 1, 1, 1, 1], incidents()
        row = incidents()[("bad_key", b.id)]
        assert row["first_at"] <= row["last_at"] and "not known" in row["detail"], row
    log = pathlib.Path(s.dir, "log", "berthd.log").read_text()
    told = [json.loads(line) for line in log.split("\n") if '"security incident"' in line and b.id in line]
    assert [line["kind"] for line in told if line["kind"] == "bad_key"] == ["bad_key"], told
    assert user.request("GET", "/v1/security")[0] == 403
