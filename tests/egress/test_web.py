"""Requests: methods, paths, limits; and secrets that are added outside."""
import json
import socket
import subprocess

from world import SECRET_SEED, decode

TOKEN = "tok-0123456789abcdef"
SECRET = {"name": "t", "host": "api.example.com", "methods": "GET POST", "paths": "/v1/* /git/*",
          "header": "Authorization", "value": "Bearer " + TOKEN}
RULES = [("api.example.com", "443 80")]


def keep_alive(w, paths, host="api.example.com", port=80):
    """Several requests over one connection; the status of each."""
    out = w.python(f"""
import http.client
c = http.client.HTTPConnection({host!r}, {port}, timeout=15)
for p in {paths!r}:
    try:
        method, path = p.split()
        c.request(method, path)
        r = c.getresponse(); r.read()
        print(r.status)
        if r.will_close: break
    except Exception as e:
        print('broken', e); break
""")
    return out.stdout.split("\n")[:-1]


def box_ca(w):
    """What the box trusts: the CA of its seed, as berthd would put it there."""
    path = w.work / "box-ca.pem"
    if not path.exists():
        path.write_text(subprocess.run([str(w.build / "tests/ca-pem"), SECRET_SEED, "sb_t1_box"], check=True,
                                       capture_output=True, text=True).stdout)
    return path


def opened(w, url, *more):
    return w.inside("curl", "-sS", "-m", "15", "--noproxy", "*", "--cacert", box_ca(w), *more, url)


class Open:
    """One TLS connection from inside that stays open, whatever becomes of the policy."""

    CODE = """
import http.client, ssl, sys
c = http.client.HTTPSConnection('api.example.com', timeout=15, context=ssl.create_default_context(cafile=sys.argv[1]))
c.connect(); c.auto_open = 0
for line in sys.stdin:
    try:
        c.request('GET', line.strip())
        print(c.getresponse().read().decode().replace(chr(10), ' '), flush=True)
    except Exception as e:
        print('ended', type(e).__name__, flush=True); break
"""

    def __init__(self, w, ca):
        self.process = subprocess.Popen(["ip", "netns", "exec", w.box, "/usr/bin/python3", "-c", self.CODE, str(ca)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def ask(self, path):
        print(path, file=self.process.stdin, flush=True)
        return self.process.stdout.readline()


def test_methods_and_paths(w):
    w.policy([("api.example.com", "80", "GET", "/v1/* /health")])
    assert keep_alive(w, ["GET /v1/x", "GET /health", "POST /v1/x"]) == ["200", "200", "403"]
    for bad in ("GET /admin", "GET /v1/../admin", "GET /v1/%2e%2e/admin", "GET //v1/x", "DELETE /health", "GET /healthy"):
        assert keep_alive(w, [bad]) == ["403"], bad
    w.event("request", "api.example.com")
    assert {r["path"] for r in w.outside.seen("request")} == {"/v1/x", "/health"}


def test_who_has_said_all_is_still_answered(w):
    """`printf ... | nc`: its end arrives before the server is reached."""
    w.policy([("api.example.com", "80")])
    out = w.python("""
import socket
s = socket.create_connection(("api.example.com", 80), 15)
s.sendall(b"GET /half HTTP/1.1\\r\\nHost: api.example.com\\r\\nConnection: close\\r\\n\\r\\n")
s.shutdown(socket.SHUT_WR)
print(s.recv(100).split(b"\\r\\n")[0].decode())
""")
    assert out.stdout == "HTTP/1.1 200 OK\n", out
    assert [r["path"] for r in w.outside.seen("request")] == ["/half"]


def test_who_goes_in_the_middle_ends_nobody_else(w):
    w.policy([("api.example.com", "80")])
    w.python("""
import random, socket, struct, time
for i in range(150):
    s = socket.create_connection(("api.example.com", 80), 15)
    s.sendall(b"GET /gone HTTP/1.1\\r\\nHost: api.example.com\\r\\n\\r\\n" * 4)
    if i % 2: s.shutdown(socket.SHUT_WR)
    time.sleep(random.random() / 100)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
""")
    assert w.procs[0].poll() is None, "it ended"
    assert keep_alive(w, ["GET /a"]) == ["200"]


def cut_by(w, first, then, ca=None, heard=b""):
    """What comes back if the second goes out when so much of the answer to the first was heard, and how that ends."""
    return w.python(f"""
import socket, ssl
s = socket.create_connection(('api.example.com', {443 if ca else 80}), timeout=20)
if {bool(ca)}:
    s = ssl.create_default_context(cafile={str(ca)!r}).wrap_socket(
        s, server_hostname='api.example.com', suppress_ragged_eofs=False)
s.sendall({first!r})
got = b''
try:
    while {heard!r} not in got and (data := s.recv(65536)):
        got += data
    s.sendall({then!r})
    while data := s.recv(65536):
        got += data
    print('end')
except OSError as e:
    print(type(e).__name__)
print(got)
""").stdout.split("\n", 1)


def test_an_answer_under_way_is_cut_and_not_written_into(w):
    get = b"GET /v1/part HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
    long = get.replace(b"/part", b"/part/long")
    post = b"POST /v1/part/long HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 100000\r\n\r\n"
    limited = [("api.example.com", "80", "GET HEAD POST", "/v1/*")]
    w.policy(limited)
    how, got = cut_by(w, get, b"")
    assert how == "end" and "part one;part two" in got, (how, got)
    for kind, first, then, caps in (("request", long, get.replace(b"/v1/part", b"/admin"), {}),
                                    ("not_http", long, b"\0garbage\r\n\r\n", {}),
                                    ("max_bytes_out", post, b"x" * 20000, {"max_bytes_out": 3000})):
        w.generation += 10
        w.policy(RULES if caps else limited, **caps)
        how, got = cut_by(w, first, then, heard=b"part one;")
        w.event(kind)
        assert how == "ConnectionResetError" and "berth-egress" not in got and "two" not in got, (kind, how, got)
    w.policy(RULES, secrets=[SECRET])
    how, got = cut_by(w, get.replace(b"part", b"trailer"), b"", box_ca(w))
    w.event("unreadable")
    assert how in ("ConnectionResetError", "SSLEOFError") and "berth-egress" not in got, (how, got)
    # Behind an answer that is whole, or before one, it is said.
    w.policy(limited)
    for first, whole in ((get, b"}"), (get.replace(b"GET", b"HEAD"), b"\r\n\r\n")):
        how, got = cut_by(w, first.replace(b"/part", b"/x"), get.replace(b"/v1/part", b"/admin"), heard=whole)
        assert how == "end" and got.count("HTTP/1.1 ") == 2 and "HTTP/1.1 403" in got, (how, got)


def test_keep_alive_evades_no_limit(w):
    w.policy([("api.example.com", "80")], max_requests=3)
    assert keep_alive(w, ["GET /a"] * 5) == ["200", "200", "200", "429"]
    w.event("max_requests")
    assert keep_alive(w, ["GET /a"]) == ["429"], "another connection"
    assert len(w.outside.seen("request")) == 3


def test_limits_see_into_tls(w):
    w.policy([("api.example.com", "443", "GET", "/v1/*")], max_requests=2)
    assert json.loads(opened(w, "https://api.example.com/v1/ok").stdout)["path"] == "/v1/ok"
    assert json.loads(opened(w, "https://api.example.com/admin").stdout)["code"] == "request"
    assert opened(w, "https://api.example.com/v1/2", "--http2").returncode == 0, "HTTP/1.1 is agreed on"
    assert json.loads(opened(w, "https://api.example.com/v1/3").stdout)["code"] == "max_requests"
    assert len(w.outside.seen("request")) == 2


def test_a_secret_is_added_outside(w):
    w.policy(RULES, secrets=[SECRET])
    out = opened(w, "https://api.example.com/v1/me", "-i")
    seen = w.outside.seen("request")[-1]
    assert seen["headers"]["Authorization"] == SECRET["value"], seen
    assert TOKEN not in out.stdout and "********" in out.stdout, out.stdout
    assert opened(w, "https://api.example.com/v1/me", "-H", "Authorization: mine").returncode == 0
    assert w.outside.seen("request")[-1]["headers"]["Authorization"] == SECRET["value"], "the box's own is replaced"
    opened(w, "https://api.example.com/other")
    assert "Authorization" not in w.outside.seen("request")[-1]["headers"], "not for this path"
    opened(w, "https://api.example.com/v1/me", "-X", "DELETE")
    assert "Authorization" not in w.outside.seen("request")[-1]["headers"], "not for this method"
    assert TOKEN not in (w.work / "egress.log").read_text()


def test_secrets_do_not_come_back(w):
    w.policy(RULES, secrets=[SECRET | {"paths": ""}])
    for path in ("/drip", "/close", "/v1/x"):
        out = opened(w, "https://api.example.com" + path, "-i")
        assert out.returncode in (0, 56) and TOKEN not in out.stdout and "you_sent" in out.stdout, (path, out)
        assert json.loads(out.stdout.split("\n\n")[-1].split("\r\n\r\n")[-1])["you_sent"].endswith("*" * len(TOKEN)), out
    for path in ("/gzip", "/gzip-second"):
        out = opened(w, "https://api.example.com" + path)
        assert TOKEN not in out.stdout and "you_sent" not in out.stdout, (path, out)
        w.event("unreadable")
        w.events.clear()
    many = w.inside("curl", "-sS", "-m", "15", "--noproxy", "*", "--cacert", box_ca(w),
                    "https://api.example.com/v1/1", "https://api.example.com/drip", "https://api.example.com/v1/3")
    assert many.stdout.count("you_sent") == 3 and TOKEN not in many.stdout, many
    head = opened(w, "https://api.example.com/v1/h", "-I")
    assert "200" in head.stdout and TOKEN not in head.stdout, head
    big = w.inside("sh", "-c", f"head -c 3000000 /dev/zero | curl -sS -m 30 --noproxy '*' --cacert {box_ca(w)} --data-binary @- https://api.example.com/v1/big")
    assert json.loads(big.stdout)["body"] == 3000000, big


def test_secrets_do_not_come_back_in_another_form(w):
    value = "Bearer s3cr/et+tok/en0123456789"
    w.policy(RULES, secrets=[SECRET | {"paths": "", "value": value}])
    for form in ("json", "html", "url", "unicode", "cut"):
        out = opened(w, f"https://api.example.com/v1/{form}")
        assert out.stdout.count("*") >= len(value) - 1 and "n0123" not in out.stdout and "\\u0033" not in out.stdout, (form, out)


def test_a_client_that_posts_gets_its_next_connection(w):
    """No request follows one with a body where requests must be seen: the answer says so, and clients know what to do."""
    for more in {"max_requests": 100}, {"secrets": [SECRET]}:
        w.policy(RULES, **more)
        urls = [f"https://api.example.com/v1/{i}" for i in range(4)]
        out = opened(w, urls[0], *urls[1:], "-d", "data", "-w", "%{num_connects}\\n")
        assert out.stdout.count('"body": 4') == 4 and out.returncode == 0, out
        assert out.stdout.count("}1\n") == 4, out
        assert {r["headers"]["Connection"] for r in w.outside.seen("request")[-4:]} == {"close"}
        out = opened(w, "https://api.example.com/v1/told", "-i", "-d", "data", "-H", "Expect: 100-continue")
        assert out.stdout.lower().count("connection: close") == 1, f"the server does not say it, and closes: {out}"
    w.policy([("api.example.com", "80")])
    out = w.curl("http://api.example.com/1", "http://api.example.com/2", "-d", "data", "-w", "%{num_connects}\\n")
    assert out.stdout.count("}0\n") == 1, f"without such a rule it is one connection: {out}"


def test_a_secret_does_not_come_back_on_a_connection_of_before(w):
    key = SECRET | {"header": "X-Api-Key", "value": TOKEN}
    w.policy(RULES, secrets=[key])
    with Open(w, box_ca(w)) as c:
        assert "*" * len(TOKEN) in c.ask("/v1/1")
        w.policy(RULES, secrets=[key], version=w.version)  # told again: nothing ends
        said = c.ask("/v1/2")
        assert TOKEN not in said and "*" * len(TOKEN) in said, said
        w.policy(RULES, secrets=[key | {"value": TOKEN[::-1]}])
        assert c.ask("/v1/3").startswith("ended")
    with Open(w, box_ca(w)) as c:
        said = c.ask("/v1/4")
        assert TOKEN[::-1] not in said and "*" * len(TOKEN) in said, said
    assert w.outside.seen("request")[-1]["headers"]["X-Api-Key"] == TOKEN[::-1]


def test_what_must_be_seen_from_now_on_is_no_tunnel_of_before(w):
    for change in ({"max_requests": 5}, {"secrets": [SECRET]}, {"rules": [("api.example.com", "443", "GET", "")]}):
        w.policy(RULES)
        with Open(w, w.work / "ca.pem") as c:
            assert "you_sent" in c.ask("/v1/1")
            w.policy(**{"rules": RULES, **change})
            assert c.ask("/v1/2").startswith("ended"), change


def test_python_and_git_use_it(w):
    w.policy(RULES, secrets=[SECRET])
    out = w.python(f"""
import ssl, urllib.request
ctx = ssl.create_default_context(cafile={str(box_ca(w))!r})
print(urllib.request.urlopen('https://api.example.com/v1/py', context=ctx, timeout=15).read().decode())
""")
    assert json.loads(out.stdout)["path"] == "/v1/py" and TOKEN not in out.stdout, out
    assert w.outside.seen("request")[-1]["headers"]["Authorization"] == SECRET["value"]
    into = w.work / "clone"
    out = w.inside("env", f"GIT_SSL_CAINFO={box_ca(w)}", "git", "clone", "-q", "https://api.example.com/git/repo.git", into)
    assert out.returncode == 0 and (into / "file").read_text() == "in git\n", out
    assert w.outside.seen("request")[-1]["headers"]["Authorization"] == SECRET["value"]


def test_what_cannot_take_a_secret_is_told(w):
    w.policy(RULES, secrets=[SECRET])
    out = w.curl("https://api.example.com/v1/x")  # trusts the outside's CA alone
    assert out.returncode == 60, out
    w.event("pinned", "api.example.com")
    assert json.loads(w.curl("http://api.example.com/v1/x").stdout)["code"] == "plain_http"
    w.event("plain_http", "api.example.com")
    assert not w.outside.seen("request"), "the secret went out"


def test_a_server_that_is_not_who_it_says(w):
    w.policy([("wrong.example.com", "443")], secrets=[SECRET | {"host": "wrong.example.com", "paths": ""}])
    assert opened(w, "https://wrong.example.com/").returncode != 0
    w.event("server_tls", "wrong.example.com")
    assert not w.outside.seen("request")


def test_a_long_secret_crashes_nobody(w):
    w.policy(RULES, secrets=[SECRET | {"value": "x" * 4095, "paths": ""}])
    out = opened(w, "https://api.example.com/v1/long")
    assert out.stdout.count("*") >= 4095 and "xxxx" not in out.stdout, out.stdout[:200]


def test_it_is_asked_for_what_was_counted_by_now(w):
    """At once, and not with the next telling; and it says when the counter is not the one of before."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as another:
        another.connect(w.control.getpeername())
        kind, record = decode(another.recv(65536))
    assert kind == "counts" and record["sandbox"] == "", "a berth-egress that can be asked says so first"
    assert w.ask()["since_ns"] == 0, "nothing is known of a sandbox that was not told"
    w.policy([("api.example.com", "80")])
    first = w.ask()
    assert first["since_ns"] > 0 and first["requests"] == 0, first
    assert keep_alive(w, ["GET /a"] * 3) == ["200"] * 3
    then = w.ask()
    assert (then["since_ns"], then["requests"]) == (first["since_ns"], 3), (first, then)
    w.policy([("api.example.com", "80")], requests=2)
    assert w.ask() == then | {"number": then["number"] + 1}, "another policy counts on"
    w.policy([("api.example.com", "80")], requests=9)
    after = w.ask()
    assert after["since_ns"] > then["since_ns"] and after["requests"] == 9, "more than was counted here: another counter"
    assert w.ask(generation=w.generation + 1)["since_ns"] == 0
