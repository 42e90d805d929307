"""Names, ports and addresses: what passes, and what every way around it gets."""
import json
import signal
import subprocess

from world import BERTHD, HOST, OUTSIDE, encode

ALLOW = [("api.example.com", "443 80 7000 7001"), ("*.example.net", "443 80")]
CONNECT = """
import socket
s = socket.create_connection(({host!r}, {port}), 10)
s.settimeout(10)
"""


def tcp(w, host, port, then="print('connected')"):
    return w.python(CONNECT.format(host=host, port=port) + then)


def ask(w, name, kind=1, server="100.80.0.1", tcp=False):
    """One DNS question from inside: (rcode, addresses)."""
    out = w.python(f"""
import socket, struct
q = struct.pack('>HHHHHH', 77, 0x100, 1, 0, 0, 0) + b''.join(bytes([len(l)]) + l.encode() for l in {name!r}.split('.')) + b'\\0' + struct.pack('>HH', {kind}, 1)
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if {tcp} else socket.SOCK_DGRAM)
s.settimeout(5)
s.connect(({server!r}, 53))
s.send((struct.pack('>H', len(q)) if {tcp} else b'') + q)
a = s.recv(4096)[2 if {tcp} else 0:]
n = struct.unpack('>H', a[6:8])[0]
print(a[3] & 15, *([socket.inet_ntoa(a[-4:])] if n else []))
""")
    assert out.returncode == 0, out.stderr
    return out.stdout.split()


KNOCK = """
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect({path!r})
s.settimeout(10)
try:
    s.send({record!r})
    print(len(s.recv(65536)))
except OSError:
    print(0)
"""


def test_only_the_user_of_berthd_tells_policies(w):
    """Of those who reach the socket: not the user berth-egress itself has, nor any other."""
    record = encode("drop", sandbox="sb_t1_unknown", generation=1)
    knock = KNOCK.format(path=str(w.work / "run/egress.sock"), record=record)

    def answer(uid):
        done = subprocess.run(["/usr/bin/python3", "-c", knock], user=uid, group=uid, extra_groups=[], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)
    assert answer(BERTHD) > 0 and answer(0) > 0
    assert answer(65534) == 0, "the user it runs as"
    assert answer(BERTHD + 1) == 0


def test_allowed_names_work(w):
    assert w.policy(ALLOW)["version"] == w.version
    out = w.curl("http://api.example.com/hello")
    assert json.loads(out.stdout)["path"] == "/hello", out
    assert json.loads(w.curl("https://api.example.com/tls").stdout)["path"] == "/tls"
    assert json.loads(w.curl("https://a.deep.example.net/wild").stdout)["path"] == "/wild"
    big = w.inside("sh", "-c", f"head -c 3000000 /dev/zero | curl -sS -m 30 --cacert {w.work}/ca.pem --data-binary @- https://api.example.com/big")
    assert json.loads(big.stdout)["body"] == 3000000, big
    assert not w.own_events(), w.events


OPEN = 2  # enum network_mode


def test_open_reaches_what_is_public(w):
    assert w.policy(mode=OPEN)["version"] == w.version
    assert json.loads(w.curl("http://www.example.com/hello").stdout)["path"] == "/hello"
    assert json.loads(w.curl("https://evil.example.org/tls").stdout)["path"] == "/tls"
    assert tcp(w, "api.example.com", 7000, "s.send(b'ab'); print(s.recv(9))").stdout == "b'ab'\n"
    assert tcp(w, OUTSIDE, 7000, "s.send(b'ip'); print(s.recv(9))").stdout == "b'ip'\n", "an address, and no name"
    assert json.loads(w.curl(f"http://{OUTSIDE}/ip").stdout)["path"] == "/ip"
    assert not w.own_events(), w.events


def test_open_does_not_reach_inwards(w):
    """Not by an address, not by a public name that leads there, not by an address of this host that is public."""
    w.policy(mode=OPEN)
    for address in ("10.0.0.1", "169.254.169.254", "192.168.0.1", "127.0.0.2", "198.18.200.1", "100.64.0.9"):
        tcp(w, address, 80, "s.send(b'GET / HTTP/1.0\\r\\n\\r\\n'); print(s.recv(9))")
        if address != "127.0.0.2":  # its own loopback
            w.event("address", address)
    for name in ("inner.example.com", "metadata.example.com", "private.example.com", "self.example.com", "second.example.com"):
        assert json.loads(w.curl(f"http://{name}/").stdout)["code"] == "inner_address", name
        w.event("inner_address", name)
    for own in HOST:
        tcp(w, own, 80, "s.send(b'GET / HTTP/1.0\\r\\n\\r\\n'); print(s.recv(9))")
        w.event("inner_address", own)
    assert ask(w, "localhost") == ["3"], "no name that a rule could have"


def test_open_is_over_with_the_next_policy(w):
    w.policy(mode=OPEN)
    assert w.curl("http://evil.example.org/").returncode == 0
    w.policy(ALLOW)
    assert w.curl("http://evil.example.org/").returncode != 0
    refused = w.policy(mode=3)
    assert refused["version"] == 0 and "mode 3" in refused["why"], refused
    assert w.curl("http://api.example.com/").returncode != 0, "closed by what is not understood"


def test_other_ports_are_bytes(w):
    w.policy(ALLOW)
    assert tcp(w, "api.example.com", 7000, "s.send(b'ab'); print(s.recv(9))").stdout == "b'ab'\n"
    assert tcp(w, "api.example.com", 7001, "print(s.recv(99))").stdout == "b'hello first\\n'\n"


LARGE = """
import socket, sys
at = socket.gethostbyname('api.example.com')
print('found', flush=True)
sys.stdin.readline()
s = socket.create_connection((at, {port}), 15)
s.sendall({first!r})
print('sent', flush=True)
got = b''
while len(got) < {want} and (data := s.recv(65536)):
    got += data
print(len(got), got[:15])
"""


def large_first(w, port, first, want):
    """All of it is there before berth-egress reads any."""
    egress = next(p for p in w.procs if any("berth-egress" in str(a) for a in p.args))
    with subprocess.Popen(["ip", "netns", "exec", w.box, "/usr/bin/python3", "-c", LARGE.format(port=port, first=first, want=want)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout.readline() == "found\n"
        egress.send_signal(signal.SIGSTOP)
        try:
            print(file=client.stdin, flush=True)
            assert client.stdout.readline() == "sent\n"
        finally:
            egress.send_signal(signal.SIGCONT)
        return client.communicate(timeout=30)[0]


def test_a_large_first_message_is_no_hello(w):
    w.policy([("api.example.com", "80 7000")])
    assert large_first(w, 7000, b"x" * 40000, 40000) == f"40000 {b'x' * 15}\n"
    post = b"POST /large HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 40000\r\n\r\n" + b"x" * 40000
    assert large_first(w, 80, post, 15).split(" ", 1)[1] == f"{b'HTTP/1.1 200 OK'}\n"


def test_a_request_in_two_parts_is_waited_for(w):
    """On a port where a raw client would be let through after 50 ms."""
    w.policy([("api.example.com", "8080")])
    parts = ("import time; s.send(b'GET /parts HTTP/1.1\\r\\n'); time.sleep(0.5); "
             "s.send(b'Host: api.example.com\\r\\n\\r\\n'); print(s.recv(400)[:15])")
    assert tcp(w, "api.example.com", 8080, parts).stdout == f"{b'HTTP/1.1 200 OK'}\n"


FIRST = """
import time
time.sleep({wait})
s.send({first!r})
try:
    print(s.recv(400)[:60])
except ConnectionError:
    print('closed')
"""


def test_who_waits_is_looked_at_all_the_same(w):
    """On a port where bytes pass: another Host or SNI, at once, late, in parts, or behind empty lines."""
    w.policy([("api.example.com", "8080 7000")])
    evil = b"GET /evil HTTP/1.1\r\nHost: evil.example.org\r\n\r\n"
    for wait in (0, 0.4, 1.5):
        for first in (evil, b"\r\n\r\n" + evil):
            out = tcp(w, "api.example.com", 8080, FIRST.format(wait=wait, first=first))
            assert "403" in out.stdout, (wait, first, out)
    split = "import time; s.send(b'GE'); time.sleep(0.4); s.send(b'T /evil HTTP/1.1\\r\\nHost: evil.example.org\\r\\n\\r\\n'); print(s.recv(400)[:60])"
    assert "403" in tcp(w, "api.example.com", 8080, split).stdout
    w.event("host", "evil.example.org")
    late = tcp(w, "api.example.com", 7000, f"""
import ssl, time
time.sleep(0.4)
ssl.create_default_context(cafile={str(w.work / 'ca.pem')!r}).wrap_socket(s, server_hostname='evil.example.org')
""")
    assert "denied" in late.stderr, late
    w.event("sni", "evil.example.org")
    assert not w.outside.seen("request"), w.outside.seen("request")
    good = b"GET /good HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n"
    assert "200" in tcp(w, "api.example.com", 8080, FIRST.format(wait=0.4, first=good)).stdout
    assert tcp(w, "api.example.com", 7000, FIRST.format(wait=0.4, first=b"ab")).stdout == "b'ab'\n"
    assert tcp(w, "api.example.com", 7000, FIRST.format(wait=0, first=b"\r\n")).stdout == "b'\\r\\n'\n"


def test_a_server_that_speaks_first_is_heard_soon(w):
    """Against a service that speaks second, on the same way: no more than a moment is added."""
    w.policy(ALLOW)
    clock = "import time; t = time.monotonic(); {}; print(time.monotonic() - t)"
    first = min(float(tcp(w, "api.example.com", 7001, clock.format("s.recv(99)")).stdout) for _ in range(3))
    second = min(float(tcp(w, "api.example.com", 7000, clock.format("s.send(b'ab'); s.recv(9)")).stdout) for _ in range(3))
    assert first < second + 0.5, (first, second)


def test_dns_answers_only_allowed_names(w):
    w.policy(ALLOW)
    assert ask(w, "api.example.com")[1].startswith("198.18.")
    assert ask(w, "api.example.com", server="8.8.8.8")[1].startswith("198.18."), "whoever is asked, we answer"
    assert ask(w, "x.example.net", tcp=True)[1].startswith("198.18.")
    assert ask(w, "api.example.com", kind=28) == ["0"], "there is no IPv6"
    assert ask(w, "evil.example.org") == ["3"]
    assert w.event("name", "evil.example.org")["port"] == 53
    assert ask(w, "example.net") == ["3"], "a wildcard is what is below"
    assert ask(w, "api.example.com", kind=16) == ["5"], "no TXT"
    w.event("dns_type")
    assert not w.outside.seen("dns"), "a question left the host"


def test_dns_is_no_tunnel(w):
    w.policy(ALLOW)
    assert ask(w, ".".join(["a" * 60] * 3) + ".example.net") == ["5"]
    w.event("dns_length")
    codes = w.python("""
import socket, struct, os
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(2)
s.connect(('100.80.0.1', 53))
got = []
for i in range(150):
    n = os.urandom(8).hex()
    s.send(struct.pack('>HHHHHH', i, 0x100, 1, 0, 0, 0) + bytes([16]) + n.encode() + b'\\7example\\3net\\0\\0\\1\\0\\1')
    got.append(s.recv(4096)[3] & 15)
print(got.count(0), got.count(5))
""")
    ok, refused = map(int, codes.stdout.split())
    assert ok <= 110 and refused >= 40, codes
    w.event("dns_rate")
    assert not w.outside.seen("dns")


def test_a_name_that_is_not_allowed(w):
    w.policy(ALLOW)
    assert w.curl("https://evil.example.org/").returncode == 6
    w.event("name", "evil.example.org")
    assert not w.outside.seen()


def test_a_port_that_is_not_allowed(w):
    w.policy(ALLOW)
    assert w.curl("http://api.example.com:8080/").returncode != 0
    assert w.event("port", "api.example.com")["port"] == 8080


def test_a_forged_sni_gains_nothing(w):
    w.policy(ALLOW)
    address = ask(w, "api.example.com")[1]
    out = w.curl("https://evil.example.org/", "--resolve", f"evil.example.org:443:{address}")
    assert out.returncode == 35 and "denied" in out.stderr, out
    assert w.event("sni", "evil.example.org")["rule"] == "api.example.com"
    assert not w.outside.seen("request")


def test_a_forged_host_gains_nothing(w):
    w.policy(ALLOW)
    out = w.curl("http://api.example.com/", "-H", "Host: evil.example.org")
    assert json.loads(out.stdout)["code"] == "host", out
    w.event("host", "evil.example.org")
    out = tcp(w, "api.example.com", 80, """
for path, host in (('/one', 'api.example.com'), ('/two', 'evil.example.org')):
    s.send(f'GET {path} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n'.encode())
    said = s.recv(65536)
    while path == '/one' and b'"path"' not in said: # the head and the rest may come one after the other
        said += s.recv(65536)
    print(said)""")
    assert "200 OK" in out.stdout and "403 Forbidden" in out.stdout, out
    assert [r["path"] for r in w.outside.seen("request")] == ["/one"], "the second request went through"


def test_raw_addresses(w):
    w.policy(ALLOW)
    for address in (OUTSIDE, "169.254.169.254", "127.0.0.1", "10.0.0.1", "100.80.0.1", "198.18.1.200", "1.1.1.1"):
        out = tcp(w, address, 443, "s.send(b'x'); print(s.recv(9))")
        if address != "127.0.0.1":  # its own loopback, where nobody is
            w.event("address", address)
        assert out.stdout in ("", "b''\n"), (address, out)
    assert not w.outside.seen()


def test_names_that_lead_inside(w):
    names = ["inner.example.com", "metadata.example.com", "private.example.com"]
    w.policy([(n, "80 443") for n in names])
    for n in names:
        assert json.loads(w.curl(f"http://{n}/").stdout)["code"] == "inner_address"
        w.event("inner_address", n)
    w.policy([("mixed.example.com", "80")])
    assert json.loads(w.curl("http://mixed.example.com/ok").stdout)["path"] == "/ok", "the public one of both is dialled"


def test_an_address_a_rule_names(w):
    w.policy([(OUTSIDE, "80 7000")])
    assert json.loads(w.curl(f"http://{OUTSIDE}/by-address").stdout)["path"] == "/by-address"
    assert w.curl(f"https://{OUTSIDE}/").returncode != 0
    w.event("address", OUTSIDE)


def test_udp_is_refused(w):
    w.policy(ALLOW)
    w.python("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'quic', ('203.0.113.10', 443))")
    assert w.event("udp", OUTSIDE)["port"] == 443


def test_what_is_not_http(w):
    w.policy(ALLOW)
    out = tcp(w, "api.example.com", 443, "s.send(b'SSH-2.0-x\\r\\n'); print(s.recv(99))")
    assert out.stdout == "b''\n", out
    w.event("not_http", "api.example.com")
    out = tcp(w, "api.example.com", 80, "s.send(b'CONNECT evil.example.org:443 HTTP/1.1\\r\\nHost: api.example.com\\r\\n\\r\\n'); print(s.recv(999))")
    assert "403" in out.stdout, out
    assert not w.outside.seen("request")


def test_nothing_without_rules(w):
    w.policy([], mode=0)
    assert w.curl("https://api.example.com/").returncode == 6
    w.event("name", "api.example.com")


def test_a_box_nobody_knows(w):
    w.policy(ALLOW, address="100.80.0.77")
    assert w.curl("https://api.example.com/", "-m", "4").returncode != 0
    w.policy(ALLOW)
    assert w.curl("https://api.example.com/").returncode == 0


def test_a_change_is_for_the_next_connection(w):
    w.policy(ALLOW)
    assert w.curl("https://api.example.com/").returncode == 0
    w.policy([("www.example.com", "443")])
    assert w.curl("https://api.example.com/").returncode == 6
    assert w.curl("https://www.example.com/").returncode == 0


def test_an_older_policy_changes_nothing(w):
    w.policy(ALLOW, version=100)
    assert w.policy([("evil.example.org", "443")], version=50)["version"] == 100
    assert w.curl("https://evil.example.org/").returncode == 6
    w.generation += 1
    assert w.policy(ALLOW, version=1)["version"] == 1, "a later life begins anew"
    assert w.policy(ALLOW, generation=w.generation - 1, version=200)["generation"] == w.generation
    w.control.send(encode("drop", sandbox="sb_t1_box", generation=w.generation))
    w.wait(lambda: w.confirms and w.confirms[-1]["version"] == 0)


def test_a_policy_that_cannot_be_closes_the_box(w):
    w.policy(ALLOW)
    got = w.policy([("not a host", "443")])
    assert got["version"] == 0 and "host name" in got["why"], got
    assert w.curl("https://api.example.com/").returncode == 6
    secret = {"name": "x", "host": "api.example.com", "header": "X\r\nY", "value": "v"}
    assert w.policy(ALLOW, secrets=[secret])["version"] == 0


def test_bootstrap_ends_with_the_lock(w):
    rules = [("api.example.com", "443", "", "", 0), ("www.example.com", "443", "", "", 1)]
    w.policy(rules)
    assert w.curl("https://www.example.com/").returncode == 0
    w.policy(rules, locked=1)
    assert w.curl("https://www.example.com/").returncode == 6
    assert w.curl("https://api.example.com/").returncode == 0


def test_connections_are_counted(w):
    w.policy(ALLOW, max_connections=2)
    codes = [w.curl("https://api.example.com/").returncode for _ in range(3)]
    assert codes[:2] == [0, 0] and codes[2] != 0, codes
    w.event("max_connections")


def test_bytes_out_are_counted(w):
    w.policy(ALLOW)
    w.curl("https://api.example.com/")
    w.wait(lambda: "sb_t1_box" in w.counts)
    w.policy(ALLOW, max_bytes_out=w.counts["sb_t1_box"]["bytes_out"] + 100000)
    out = w.inside("sh", "-c", f"head -c 3000000 /dev/zero | curl -sS -m 20 --cacert {w.work}/ca.pem --data-binary @- https://api.example.com/big")
    assert out.returncode != 0
    w.event("max_bytes_out")


def test_a_limit_below_what_was_used_lets_nothing_out(w):
    w.policy(ALLOW)
    assert w.curl("http://api.example.com/").returncode == 0
    w.wait(lambda: w.counts.get("sb_t1_box", {}).get("bytes_out", 0) > 0)
    w.policy(ALLOW, max_bytes_out=1)
    w.outside.forget()
    assert json.loads(w.curl("http://api.example.com/more").stdout)["code"] == "max_bytes_out"
    w.event("max_bytes_out")
    assert not w.outside.seen("request")
