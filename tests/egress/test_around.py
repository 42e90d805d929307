"""Ways around a policy that somebody in the box would think of."""
import json
import subprocess
import time

from test_policy import ask, tcp
from test_web import RULES, SECRET, TOKEN, box_ca, opened

PATHS = [("api.example.com", "80", "GET POST", "/v1/*")]
OPEN_TLS = """
import http.client, socket, ssl, sys
ctx = ssl.create_default_context(cafile={ca!r})
s = ctx.wrap_socket(socket.create_connection(('api.example.com', 443), 10), server_hostname='api.example.com')
def get(path, more=''):
    s.sendall(f'GET {{path}} HTTP/1.1\\r\\nHost: api.example.com\\r\\n{{more}}\\r\\n'.encode())
    got = b''
    while not got.endswith(b'}}') and (d := s.recv(65536)):
        got += d
    return got
"""


def paths(w):
    return [r["path"] for r in w.outside.seen("request")]


def step(w, code, between):
    """Run code inside; when it has said something, do that, and let it go on."""
    p = subprocess.Popen(["ip", "netns", "exec", w.box, "/usr/bin/python3", "-uc", code], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    first = p.stdout.readline()
    between()
    out, _ = p.communicate("go\n", timeout=60)
    return first, out


def test_an_upgrade_hides_no_requests(w):
    """The server goes on with HTTP, and answers whatever comes."""
    w.policy(PATHS)
    for word in ("websocket", "h2c"):
        out = tcp(w, "api.example.com", 80, f"""
s.send(b'GET /v1/{word} HTTP/1.1\\r\\nHost: api.example.com\\r\\nConnection: Upgrade\\r\\nUpgrade: {word}\\r\\n\\r\\n')
print(s.recv(65536))
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


def test_a_limit_below_what_was_used(w):
    w.policy(RULES)
    assert w.curl("https://api.example.com/").returncode == 0
    w.policy(RULES, max_bytes_out=10)
    assert w.curl("https://api.example.com/").returncode != 0
    w.event("max_bytes_out")


def test_what_must_be_seen_now_was_not_before(w):
    """A tunnel of before ends with the policy that could not look into it."""
    w.policy(RULES)
    code = OPEN_TLS.format(ca=str(w.work / "ca.pem")) + """
print(get('/one')[:12])
sys.stdin.readline()
try: print(get('/two')[:12])
except OSError as e: print('over')"""
    first, rest = step(w, code, lambda: w.policy([("api.example.com", "443", "GET", "/v1/*")]))
    assert "200" in first and "/two" not in paths(w), (first, rest, paths(w))


def test_a_secret_that_changes_does_not_come_back(w):
    """An answer is under way when the value it holds is replaced."""
    key = SECRET | {"paths": "", "header": "X-Api-Key", "value": TOKEN}
    code = OPEN_TLS.format(ca=str(box_ca(w))) + """
s.sendall(b'GET /wait HTTP/1.1\\r\\nHost: api.example.com\\r\\n\\r\\n')
print(s.recv(999)[:12])
sys.stdin.readline()
try: print(s.recv(65536))
except OSError: pass"""

    for then in ([key | {"value": "another-0123456789"}], []):
        w.policy(RULES, secrets=[key])

        def change():
            w.policy(RULES, secrets=then)
            (w.work / "seen.jsonl.go").write_text("")
        first, rest = step(w, code, change)
        (w.work / "seen.jsonl.go").unlink()
        assert "200" in first and TOKEN not in rest, rest


def test_the_same_policy_again_ends_nothing(w):
    """berthd was away, and tells all anew."""
    rules = RULES + [("www.example.com", "443", "GET", "")]
    w.policy(rules, secrets=[SECRET])
    code = OPEN_TLS.format(ca=str(box_ca(w))) + """
print(get('/v1/one')[:12])
sys.stdin.readline()
print(get('/v1/two')[:12])"""
    _, rest = step(w, code, lambda: w.policy(rules, secrets=[SECRET], version=w.version))
    assert "200" in rest and w.outside.seen("request")[-1]["headers"]["Authorization"] == SECRET["value"], rest


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
import socket, resource, select
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
all = []
for i in range(700):
    s = socket.create_connection(('100.80.0.1', 53), 10)
    all.append(s)
print(len(select.select(all, [], [], 2)[0]))""")
    assert int(out.stdout) >= 180, out
    w.event("open_connections")


def test_a_flood_of_refusals_does_not_wash_away_the_first(w):
    w.policy(RULES)
    w.python("""
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(3000):
    s.sendto(b'x', ('9.9.9.9', 1000 + i))
    if i % 30 == 29: time.sleep(0.03)""")
    told = w.wait(lambda: sum(e["count"] for e in w.events) >= 2500 and list(w.events), 40)
    assert len(told) < 220, len(told)


def test_who_hangs_up_ends_nobody(w):
    """An answer is written to somebody who is gone."""
    w.policy(RULES, secrets=[SECRET])
    ask_twice = "s.sendall(b'GET /v1/x HTTP/1.1\\r\\nHost: api.example.com\\r\\n\\r\\n' * 2); s.recv(9)"
    for _ in range(3):
        w.python(OPEN_TLS.format(ca=str(box_ca(w))) + ask_twice)
    assert opened(w, "https://api.example.com/v1/x").returncode == 0
    assert w.procs[0].poll() is None, "it ended"
