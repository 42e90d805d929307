"""Ways around a policy that somebody in the box would think of."""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import time

from test_policy import ask, tcp
from test_web import RULES, SECRET, box_ca, opened

PATHS = [("api.example.com", "80", "GET POST", "/v1/*")]


def paths(w):
    return [r["path"] for r in w.outside.seen("request")]


def test_an_upgrade_hides_no_requests(w):
    """The server goes on with HTTP, and answers whatever comes."""
    w.policy(PATHS)
    for word in ("websocket", "h2c"):
        out = tcp(w, "api.example.com", 80, f"""
s.send(b'GET /v1/{word} HTTP/1.1\\r\\nHost: api.example.com\\r\\nConnection: Upgrade\\r\\nUpgrade: {word}\\r\\n\\r\\n')
said = b''
while b'"path"' not in said and (data := s.recv(65536)): said += data  # a request behind half an answer cuts the connection
print(said)
s.send(b'GET /admin HTTP/1.1\\r\\nHost: evil.example.org\\r\\n\\r\\n')
while d := s.recv(65536): print(d)""")
        assert "200 OK" in out.stdout and "403" in out.stdout, out
    tcp(w, "api.example.com", 80, """
s.send(b'GET /v1/last HTTP/1.1\\r\\nHost: api.example.com\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n'
       b'GET /admin HTTP/1.1\\r\\nHost: api.example.com\\r\\n\\r\\n')
while d := s.recv(65536): print(d)""")
    assert paths(w) == ["/v1/websocket", "/v1/h2c", "/v1/last"], paths(w)
    w.event("host", "evil.example.org")
    w.event("request", "api.example.com")


def test_a_second_upgrade_is_not_said(w):
    """The first is a WebSocket; a server may agree to the other, and what follows is no HTTP we read."""
    w.policy(PATHS)
    head = "GET /v1/echo HTTP/1.1\\r\\nHost: api.example.com\\r\\nConnection: Upgrade, HTTP2-Settings\\r\\nHTTP2-Settings: AAMAAABk\\r\\n"
    for words in ("websocket", "h2c"), ("h2c", "websocket"), ("websocket", "websocket"):
        fields = "".join(f"Upgrade: {word}\\r\\n" for word in words)
        out = tcp(w, "api.example.com", 80, f"s.send(b'{head}{fields}\\r\\n'); print(s.recv(65536))")
        assert "403" in out.stdout, (words, out)
    w.event("not_http", "api.example.com")
    assert not paths(w), paths(w)
    out = tcp(w, "api.example.com", 80, f"s.send(b'{head}Upgrade: h2c\\r\\n\\r\\n'.replace(b'echo', b'h2c')); print(s.recv(65536))")
    assert "200 OK" in out.stdout, out
    sent = w.outside.seen("request")[-1]["headers"]
    assert not {"Upgrade", "HTTP2-Settings"} & set(sent), sent


def test_a_path_ends_at_no_hash(w):
    """What is behind it is of the path to a server that does not know better."""
    w.policy(PATHS)
    for target in ("/v1/x#/../../admin", "/v1/#", "/admin#/v1/x"):
        out = tcp(w, "api.example.com", 80, f"s.send(b'GET {target} HTTP/1.1\\r\\nHost: api.example.com\\r\\n\\r\\n'); print(s.recv(65536))")
        assert "403" in out.stdout, (target, out)
    w.event("request", "api.example.com")
    assert not paths(w), paths(w)


def test_a_request_without_host_is_for_the_name_that_was_checked(w):
    """HTTP/1.0 need not say Host: a server with many names would choose one that no rule has."""
    w.policy([("api.example.com", "80 8080")])
    for port, host in ((80, "api.example.com"), (8080, "api.example.com:8080")):
        out = tcp(w, "api.example.com", port, "s.send(b'GET /old HTTP/1.0\\r\\n\\r\\n'); print(s.recv(65536))")
        assert "200 OK" in out.stdout, out
        assert w.outside.seen("request")[-1]["headers"].get("Host") == host, w.outside.seen("request")
    for target in ("http://evil.example.org/", "http://api.example.com/"):
        out = tcp(w, "api.example.com", 80, f"s.send(b'GET {target} HTTP/1.1\\r\\nHost: api.example.com\\r\\n\\r\\n'); print(s.recv(65536))")
        assert "403" in out.stdout, (target, out)
    assert paths(w) == ["/old", "/old"], paths(w)


def test_a_websocket_is_bytes(w):
    w.policy(PATHS)
    out = tcp(w, "api.example.com", 80, """
s.send(b'GET /v1/echo HTTP/1.1\\r\\nHost: api.example.com\\r\\nConnection: keep-alive, Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\nsoon')
got = b''
while not got.endswith(b'soon'): got += s.recv(65536)
s.send(b'later')
print(got[:12], s.recv(9))""")
    assert out.stdout == "b'HTTP/1.1 101' b'later'\n", out


def test_chunks_hide_no_requests(w):
    """A server may end the line of a chunk's size at LF alone; whoever reads on sees another chunk."""
    w.policy(PATHS)
    hidden = "0\\r\\n\\r\\nGET /admin HTTP/1.1\\r\\nHost: api.example.com\\r\\n\\r\\n"
    size = len(hidden.encode().decode("unicode_escape"))
    tcp(w, "api.example.com", 80, f"""
s.send(b'POST /v1/chunks HTTP/1.1\\r\\nHost: api.example.com\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n'
       b'{size:x};\\n' + b'x' * {size} + b'\\r\\n{hidden}\\r\\n0\\r\\n\\r\\n')
s.settimeout(3)
print(s.recv(65536), s.recv(65536))""")
    assert "/admin" not in paths(w), paths(w)


def test_a_chunked_body_ends_in_no_bare_lf(w):
    """To a server that wants CR LF there, what follows are trailers, and the body behind them is its next request."""
    w.policy(PATHS)
    evil = b"GET /admin HTTP/1.1\r\nHost: evil.example.org\r\n\r\n"
    tcp(w, "api.example.com", 80, f"""
s.send(b'POST /v1/chunks HTTP/1.1\\r\\nHost: api.example.com\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\n'
       b'POST /v1/x HTTP/1.1\\r\\nHost: api.example.com\\r\\nContent-Length: {len(evil)}\\r\\n\\r\\n' + {evil!r})
s.settimeout(3)
print(s.recv(65536), s.recv(65536))""")
    assert "/admin" not in paths(w), paths(w)
    assert w.event("not_http", "api.example.com")["rule"] == "the lines of a chunked body end in CR LF"


UNREAD = """
def head(line, length): return line + b' HTTP/1.1\\r\\nHost: api.example.com\\r\\n' + (b'Content-Length: %d\\r\\n' % length if length else b'') + b'\\r\\n'
def read(s):
    s.settimeout(20); got = b''
    try:
        while d := s.recv(65536): got += d
        got += b' END'
    except OSError: pass
    return got
"""


def test_a_body_behind_a_request_without_one_leaves_that_its_answer(w):
    """Both are sent at once: the first answer is not the one that is the last."""
    w.policy(PATHS)
    out = tcp(w, "api.example.com", 80, UNREAD + """
s.sendall(head(b'GET /v1/a', 0) + head(b'POST /v1/b', 2) + b'xx'); print(read(s).decode())""")
    first, _, second = out.stdout.partition('"path": "/v1/a"')
    assert "close" not in first and '"path": "/v1/b"' in second and " END" in second, out
    assert paths(w) == ["/v1/a", "/v1/b"], paths(w)


def test_a_body_that_is_not_read_is_no_next_request(w):
    """Python's http.server does not read a body that its handler does not ask for."""
    w.policy(PATHS, max_requests=1)
    out = tcp(w, "api.example.com", 80, UNREAD + """
evil = b'DELETE /admin HTTP/1.1\\r\\nHost: evil.example.org\\r\\n\\r\\n'
s.sendall(head(b'GET /v1/unread', len(evil)) + evil); print(read(s))""")
    assert paths(w) == ["/v1/unread"], paths(w)
    assert "200 " in out.stdout and " END" in out.stdout, out


def test_a_secret_is_in_no_body(w):
    """The body is a POST, and the next head, with the secret in it, would be the body of that: cut before its end, and echoed."""
    w.policy([("api.example.com", "443", "GET", "/v1/*")], secrets=[SECRET | {"paths": ""}])
    before = len("GET /v1/x HTTP/1.1\r\nHost: api.example.com\r\nAccept-Encoding: identity\r\nAuthorization: ") + len(SECRET["value"])
    out = tcp(w, "api.example.com", 443, UNREAD + f"""
import ssl
s = ssl.create_default_context(cafile={str(box_ca(w))!r}).wrap_socket(s, server_hostname='api.example.com')
inner = head(b'POST /v1/notes', {before - 1})
s.sendall(head(b'GET /v1/unread', len(inner)) + inner)
print(s.recv(65536)[:12])
try:
    for i in range(2): s.sendall(head(b'GET /v1/x', 0)); print(read(s))
except OSError as e: print(e)""")
    assert "200" in out.stdout and "cannot parse" not in out.stdout and SECRET["value"][7:15] not in out.stdout, out
    assert paths(w) == ["/v1/unread"], paths(w)


UNDER_WAY = """
import socket, time
s = socket.create_connection(('api.example.com', {port}), 10)
s.sendall({head!r})
time.sleep(0.5); print('up', flush=True)
s.settimeout(0.1)
for i in range(300):
    time.sleep(0.1)
    try:
        s.sendall({piece!r})
        if not s.recv(65536): break
    except TimeoutError: pass
    except OSError: break
else: print('goes on')
"""


def test_a_request_under_way_ends_with_the_rule_that_allowed_it(w):
    """A WebSocket, a body that goes on, and one with another request behind it; also by the lock."""
    host = b" HTTP/1.1\r\nHost: api.example.com\r\n"
    socket_ = b"GET /v1/echo" + host + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    upload = b"POST /v1/up" + host + b"Transfer-Encoding: chunked\r\n\r\n"
    now, free = ("api.example.com", "80", "GET", "/ro"), ("api.example.com", "80", "", "", 1)
    for head, piece in ((socket_, b"x" * 100), (upload, b"3\r\nabc\r\n")):
        for after in ({"rules": [now, free], "locked": 1}, {"rules": [now]}):
            w.policy([now, free])
            with subprocess.Popen(["ip", "netns", "exec", w.box, "/usr/bin/python3", "-c", UNDER_WAY.format(port=80, head=head, piece=piece)],
                                  stdout=subprocess.PIPE, text=True) as p:
                assert p.stdout.readline() == "up\n"
                w.policy([now, free, ("www.example.com", "80")])
                time.sleep(0.5)
                assert p.poll() is None, "what is still allowed goes on"
                w.policy(**after)
                said = p.communicate(timeout=120)[0]
                assert said == "", (head, after, said)


def test_every_request_line_is_one(w):
    """On a port where bytes pass: a method of another kind, and a Host of another with the next request."""
    w.policy([("api.example.com", "8080")])
    good, evil = b" /first HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n", b"GET /evil HTTP/1.1\r\nHost: evil.example.org\r\n\r\n"
    for first in ((b"M-SEARCH" + good,), (b"M-SEAR", b"CH" + good), (b"M-SEARCH /first HTT", b"P/1.1\r\nHost: api.example.com:8080\r\n\r\n"),
                  (b" GET" + good,), (b" ", b"GET" + good)):
        tcp(w, "api.example.com", 8080, f"""
import time
try:
    for part in {(*first, evil)!r}: s.sendall(part); time.sleep(0.3)
    print(s.recv(65536))
except OSError as e: print(e)""")
        assert "/evil" not in paths(w), (first, paths(w))
    assert w.event("host", "evil.example.org") and w.event("not_http", "api.example.com")


def test_what_was_refused_is_not_dialled(w):
    """The second of two requests is refused while the name of the first is being resolved."""
    w.policy(PATHS)
    out = tcp(w, "api.example.com", 80, """
s.send(b'GET /v1/one HTTP/1.1\\r\\nHost: api.example.com\\r\\n\\r\\nGET /admin HTTP/1.1\\r\\nHost: api.example.com\\r\\n\\r\\n')
print(s.recv(65536))""")
    assert "403" in out.stdout, out
    assert json.loads(w.curl("http://api.example.com/v1/later").stdout)["path"] == "/v1/later"
    assert paths(w) == ["/v1/later"] and len(w.outside.seen("accept")) == 1, w.outside.seen()


def test_connections_at_once_are_counted(w):
    w.policy([("api.example.com", "7000")], max_connections=2)
    address = ask(w, "api.example.com")[1]
    out = w.python(f"""
import socket
all = [socket.create_connection(({address!r}, 7000), 10) for _ in range(20)]
for s in all:
    s.settimeout(10)
    s.send(b'x')
def got(s):
    try: return s.recv(9)
    except OSError: return b''
print(sum(got(s) == b'x' for s in all))""")
    assert out.stdout == "2\n", out
    w.event("max_connections")


def test_no_part_of_an_answer_is_asked_for(w):
    """Half of a secret is not found in half of an answer."""
    w.policy(RULES, secrets=[SECRET | {"paths": ""}])
    opened(w, "https://api.example.com/part", "-H", "Range: bytes=0-40", "-H", "If-Range: x", "-H", "TE: trailers")
    sent = w.outside.seen("request")[-1]["headers"]
    assert not {"Range", "If-Range", "TE"} & set(sent), sent


def test_two_names_in_one_hello(w):
    w.policy(RULES)
    out = tcp(w, "api.example.com", 443, """
import struct
def sni(n): return struct.pack('>HHHBH', 0, len(n) + 5, len(n) + 3, 0, len(n)) + n
e = sni(b'api.example.com') + sni(b'evil.example.org')
b = b'\\3\\3' + bytes(32) + b'\\0' + b'\\0\\2\\x13\\1' + b'\\1\\0' + struct.pack('>H', len(e)) + e
h = b'\\1\\0' + struct.pack('>H', len(b)) + b
s.send(b'\\x16\\3\\1' + struct.pack('>H', len(h)) + h)
print(s.recv(99))""")
    assert out.stdout == repr(bytes([21, 3, 3, 0, 2, 2, 49])) + "\n", out
    w.event("not_tls")


def test_the_host_itself(w):
    """A public name may lead to the host's own public address, where its firewall does not look."""
    w.policy([("self.example.com", "80"), ("second.example.com", "80")])
    for name in ("self.example.com", "second.example.com"):
        assert json.loads(w.curl(f"http://{name}/").stdout)["code"] == "inner_address"
        w.event("inner_address", name)


def test_one_box_does_not_use_up_the_rest(w):
    """Of questions over TCP there are not more at once than of other connections."""
    w.policy(RULES)
    out = w.python("""
import socket, resource, select, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
all = []
for i in range(700):
    s = socket.create_connection(('100.80.0.1', 53), 10)
    all.append(s)
p = select.poll()
for s in all: p.register(s, select.POLLIN)
end = time.monotonic() + 30
while len(p.poll(0)) < 180 and time.monotonic() < end: time.sleep(0.05)
print(len(p.poll(0)))""")
    assert int(out.stdout) >= 180, out
    w.wait(lambda: sum(e["count"] for e in w.events if e["kind"] == "open_connections") >= 180)  # and not because they were idle


def peak_kib(pid):
    return int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def test_answers_that_are_not_read_are_not_held(w):
    """Questions over TCP, as many as go, and no answer is taken: they wait where they were asked."""
    w.policy(RULES)
    pid = w.procs[0].pid
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak is from now on
    before = peak_kib(pid)
    out = w.python("""
import socket, struct, time
q = struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 0) + b'\\3api\\7example\\3com\\0\\0\\1\\0\\1'
q = (struct.pack('>H', len(q)) + q) * 30
all, sent, end = [], 0, time.monotonic() + 3
for i in range(8):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(('100.80.0.1', 53))
    s.setblocking(False)
    all.append([s, b''])
while all and time.monotonic() < end:
    for one in list(all):
        one[1] = one[1] or q
        try: n = one[0].send(one[1])
        except BlockingIOError: continue
        except OSError: all.remove(one); continue
        one[1] = one[1][n:]
        sent += n
    time.sleep(0.001)
print(sent)""")
    assert int(out.stdout) > 100000, out
    grown = peak_kib(pid) - before
    assert grown < 6000, f"{grown} KiB for {out.stdout.strip()} bytes of questions"
    assert ask(w, "api.example.com", tcp=True)[0] in ("0", "5"), "the next one is answered"


def files_of(w):
    return len(os.listdir(f"/proc/{w.procs[0].pid}/fd"))


@contextlib.contextmanager
def refused_and_held_open(w, count):
    """Connections to a port where bytes pass, with a name of another in their ClientHello; they are never closed."""
    code = f"""
import socket, ssl, sys
hello = ssl.MemoryBIO()
try: ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname='evil.example.org').do_handshake()
except ssl.SSLWantReadError: hello = hello.read()
def one():
    s = socket.create_connection(('api.example.com', 7000), 10)
    s.sendall(hello)
    while s.recv(99): pass
    return s
all = [one() for _ in range({count})]
print('held', flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(["ip", "netns", "exec", w.box, "/usr/bin/python3", "-c", code], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "held\n"
        yield
        p.stdin.close()


def test_a_flood_of_refusals_does_not_wash_away_the_first(w):
    """And what was refused ends, also where the client does not end it."""
    w.policy([*RULES, ("api.example.com", "7000")])
    before = files_of(w)
    with refused_and_held_open(w, 20):
        w.event("sni", "evil.example.org")
        assert files_of(w) >= before + 20
        flood(w)
        end = time.monotonic() + 40
        while files_of(w) > before + 10:
            assert time.monotonic() < end, f"{files_of(w)} files, of {before}"
            time.sleep(0.1)


def flood(w):
    w.python("""
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(3000):
    s.sendto(b'x', ('9.9.9.9', 1000 + i))
    if i % 30 == 29: time.sleep(0.03)""")
    told = w.wait(lambda: sum(e["count"] for e in w.events) >= 2500 and list(w.events), 40)
    assert len(told) < 220, len(told)
