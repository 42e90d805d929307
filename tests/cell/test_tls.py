"""Between hosts mTLS through the shipped HAProxy configuration, and TLS for clients at the edge."""
import hashlib
import http.client
import os
import socket
import ssl
import subprocess

import cell as cells
from cell import TOP, Cell, Daemon, error_of, run
from client import event_bytes
from server import wait_until

CELL = {"hosts": 2}
CERTS = TOP / "packaging/haproxy/berth-certs"


class TlsCell(Cell):
    """Each host as docs/cell.md says: berthd on loopback only, HAProxy in front."""

    def settings_of(self, host):
        return {"listen": f"{host.address}:{cells.PORT}", "peer_listen": "127.0.0.1:7071",
                "peer_address": f"{host.address}:7443", "peer_proxy": "127.0.0.1:7072"}

    def start(self):
        self.dir.mkdir(mode=0o711)
        run(CERTS, self.dir / "tls", *[h.name for h in self.hosts])
        super().start()
        for h in self.hosts:
            text = (TOP / "packaging/haproxy/berth.cfg").read_text()
            tls = self.dir / "tls" / h.name
            os.link(self.dir / "tls/ca.pem", tls / "ca.pem")
            os.link(tls / "host.pem", tls / "edge.pem")
            text = text.replace("/etc/berth/tls", str(tls)).replace("here 127.0.0.1:7070",
                                                                    f"here {h.address}:{cells.PORT}")
            (h.dir / "haproxy.cfg").write_text(text)
            proxy = Daemon(["haproxy", "-db", "-f", h.dir / "haproxy.cfg"], h.dir / "log/haproxy.log", h.namespace)
            self.proxies.append(proxy.start())
        for h in self.hosts:
            wait_until(lambda: answers(h, 7443), 20, "HAProxy up")
        return self


make_cell = TlsCell


def answers(h, port):
    try:
        socket.create_connection((h.address, port), 2).close()
        return True
    except OSError:
        return False


def context(c, cert=None):
    ctx = ssl.create_default_context(cafile=str(c.dir / "tls/ca.pem"))
    ctx.check_hostname = False
    if cert:
        ctx.load_cert_chain(cert)
    return ctx


def ask(c, h, port, path="/v1/health", cert=None):
    """The status, or None if the connection was refused on the way."""
    conn = http.client.HTTPSConnection(h.address, port, timeout=10, context=context(c, cert))
    try:
        conn.request("GET", path)
        return conn.getresponse().status
    except (ssl.SSLError, ConnectionError):
        return None
    finally:
        conn.close()


def box(c):
    return c.hosts[0].api.create(host="h1"), c.hosts[1].api


def test_requests_go_through_both_proxies(c):
    ident, far = box(c)
    r = far.exec(ident, ["sh", "-c", "echo out; exit 3"])
    assert (r.exit_code, r.out) == (3, b"out\n")
    names, command = [], "echo a; until [ -e /root/heard ]; do sleep 0.1; done; echo b"
    for n, _ in far.events("POST", f"/v1/sandboxes/{ident}/exec", {"command": command, "timeout_ms": 60000}):
        names.append(n)
        if n == "stdout":
            far.request("PUT", f"/v1/sandboxes/{ident}/files?path=/root/heard", b"")
    assert names == ["started", "stdout", "stdout", "exit"], names
    sent = os.urandom(1 << 20)
    end, out, _ = far.run_frames(ident, ["cat"], stdin=sent)
    assert hashlib.sha256(out).digest() == hashlib.sha256(sent).digest() and end["code"] == 0


def test_a_large_output_is_whole(c):
    ident, far = box(c)
    size = sum(len(event_bytes(d)) for n, d in far.events("POST", f"/v1/sandboxes/{ident}/exec",
                                                          {"command": "yes | head -c 5000000"}) if n == "stdout")
    assert size == 5000000


def test_a_peer_without_a_certificate_is_refused(c):
    h = c.hosts[0]
    assert ask(c, h, 7443) is None
    run(CERTS, c.dir / "strangers", "h2")
    assert ask(c, h, 7443, cert=c.dir / "strangers/h2/host.pem") is None, "of another authority"
    assert ask(c, h, 7443, cert=c.dir / "tls/h2/host.pem") == 403, "a host, but with no pass"
    assert not answers(h, 7071), "the door behind it is on loopback only"


def test_a_client_that_leaves_ends_its_command(c):
    ident, far = box(c)
    first = min(c.hosts[0].pids(ident))
    before = len(c.hosts[0].pids(ident))
    events = far.events("POST", f"/v1/sandboxes/{ident}/exec", {"command": "echo go; exec sleep 1000"})
    assert [next(events)[0] for _ in range(2)] == ["started", "stdout"]
    assert len(c.hosts[0].pids(ident)) > before
    events.close()
    wait_until(lambda: len(c.hosts[0].pids(ident)) <= before, 30, "the command ended")
    assert first in c.hosts[0].pids(ident), "its sandbox did not"


def test_a_host_that_is_down_is_said_to_be(c):
    """HAProxy answers in its place: that is no answer of the host, and is not handed on as one."""
    ident, far = box(c)
    c.hosts[0].kill("berthd")
    status, code, message = error_of(far.request("POST", f"/v1/sandboxes/{ident}/exec", {"argv": ["true"]}))
    assert (status, code) == (503, "busy") and "h1" in message and "nothing was done" in message, message
    c.hosts[0].start()
    assert far.exec(ident, ["true"]).exit_code == 0


def test_clients_speak_tls_at_the_edge(c):
    assert ask(c, c.hosts[0], 443) == 200
    out = subprocess.run(["curl", "-sS", "--http2", "--cacert", c.dir / "tls/ca.pem", "--resolve",
                          f"h1:443:{c.hosts[0].address}", "-o", "/dev/null", "-w", "%{http_version} %{http_code}",
                          "https://h1/v1/health"], capture_output=True, text=True)
    assert out.stdout == "2 200", out
