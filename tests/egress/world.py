"""berth-egress between a box and an outside, in namespaces of their own, without the daemons."""
import ctypes
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUTSIDE = "203.0.113.10"
HOST = ["203.0.113.1", "203.0.113.3"]  # berth-egress's own public addresses
BOX = "100.80.0.2"
BERTHD = 12345  # a user id that is not in use, for who tells policies
SECRET_SEED = "ab" * 32
KINDS = ["none", "policy", "rule", "secret", "drop", "confirm", "event", "counts", "ask", "answer"]


def fields_of():
    """The records of src/proto/egress.h, as it lists their members."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "src/proto/egress.h").read_text(), flags=re.S)
    out = {}
    for name, body in re.findall(r"struct egress_(\w+) \{(.*?)\n\};", text, re.S):
        out[name] = [(v.strip().split("[")[0], {"char": "s", "uint32_t": "I", "uint64_t": "Q"}[t])
                     for t, names in re.findall(r"(char|uint32_t|uint64_t) ([^;]+);", body) for v in names.split(",")]
    return out


FIELDS = fields_of()


def encode(kind, **values):
    out = bytes([1, KINDS.index(kind)])
    for name, t in FIELDS[kind]:
        v = values.pop(name, "" if t == "s" else 0)
        out += struct.pack(">H", len(v.encode())) + v.encode() if t == "s" else struct.pack(">" + t, v)
    assert not values, values
    return out


def decode(data):
    kind, at, out = KINDS[data[1]], 2, {}
    for name, t in FIELDS[kind]:
        if t == "s":
            n = struct.unpack_from(">H", data, at)[0]
            out[name] = data[at + 2:at + 2 + n].decode()
            at += 2 + n
        else:
            out[name] = struct.unpack_from(">" + t, data, at)[0]
            at += struct.calcsize(">" + t)
    return kind, out


def sh(*args, **kw):
    return subprocess.run([str(a) for a in args], check=True, capture_output=True, text=True, **kw).stdout


def make_certificates(work, names):
    """A CA for the outside, and one certificate of it for all names."""
    sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
       "-subj", "/CN=outside test CA", "-keyout", work / "ca.key", "-out", work / "ca.pem")
    sh("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=outside",
       "-keyout", work / "key.pem", "-out", work / "req.pem")
    (work / "ext").write_text("subjectAltName=" + ",".join("DNS:" + n for n in names) + "\n")
    sh("openssl", "x509", "-req", "-days", "30", "-in", work / "req.pem", "-CA", work / "ca.pem", "-CAkey", work / "ca.key",
       "-CAcreateserial", "-extfile", work / "ext", "-out", work / "cert.pem")
    (work / "server.pem").write_text((work / "key.pem").read_text() + (work / "cert.pem").read_text())


def make_repository(work):
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"]
    tree, bare = work / "tree", work / "repositories"
    sh(*git, "init", "-q", tree)
    (tree / "file").write_text("in git\n")
    sh(*git, "-C", tree, "add", "file")
    sh(*git, "-C", tree, "commit", "-q", "-m", "one")
    sh(*git, "clone", "-q", "--bare", tree, bare / "repo.git")
    return str(bare)


class Outside:
    """The servers, run in a namespace that has their address."""

    def __init__(self, work, prefix, zone, names, address=OUTSIDE, repository="/nonexistent"):
        self.work, self.address = work, address
        make_certificates(work, names)
        (work / "zone.json").write_text(json.dumps(zone))
        (work / "seen.jsonl").write_text("")
        self.proc = subprocess.Popen(prefix + ["/usr/bin/python3", HERE / "outside.py", address, work / "zone.json",
                                               work / "server.pem", work / "seen.jsonl", repository],
                                     stdout=subprocess.PIPE, text=True)
        assert self.proc.stdout.readline() == "ready\n", "the outside does not start"

    def seen(self, kind=None):
        rows = [json.loads(line) for line in (self.work / "seen.jsonl").read_text().splitlines()]
        return [r for r in rows if kind in (None, r["kind"])]

    def forget(self):
        (self.work / "seen.jsonl").write_text("")

    def close(self):
        self.proc.kill()
        self.proc.wait()


def netns_is_mounted():
    """`ip netns add` makes /run/netns a mount of itself, the first time on a machine."""
    return " /run/netns " in pathlib.Path("/proc/self/mountinfo").read_text()


class World:
    def __init__(self, build, zone, names):
        self.was_mounted = netns_is_mounted()
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="egress-"))
        self.work.chmod(0o711)
        self.build, self.tag = build, f"eg{os.getpid()}"
        self.router, self.box, self.out, self.far = self.spaces = [f"{self.tag}{x}" for x in "rbof"]
        self.procs, self.control, self.version, self.generation = [], None, 0, 0
        self.events, self.confirms, self.counts, self.answers = [], [], {}, {}
        self.changed = threading.Condition()
        try:
            self.make_namespaces()
            self.outside = Outside(self.work, ["ip", "netns", "exec", self.far], zone, names,
                                   repository=make_repository(self.work))
            self.start_egress(build)
        except BaseException:
            self.close()
            raise

    def ns(self, name, *args, **kw):
        return sh("ip", "netns", "exec", name, *args, **kw)

    def make_namespaces(self):
        for name in self.spaces:
            sh("ip", "netns", "add", name)
            self.ns(name, "ip", "link", "set", "lo", "up")
        sh("ip", "-n", self.out, "link", "add", "far0", "type", "veth", "peer", "name", "eth0", "netns", self.far)
        for name, link, addresses in ((self.out, "far0", HOST), (self.far, "eth0", [OUTSIDE])):
            for address in addresses:
                self.ns(name, "ip", "addr", "add", address + "/24", "dev", link)
            self.ns(name, "ip", "link", "set", link, "up")
        sh("ip", "-n", self.router, "link", "add", "box0", "type", "veth", "peer", "name", "eth0", "netns", self.box)
        for name, link, address in ((self.router, "box0", "100.80.0.1/24"), (self.box, "eth0", BOX + "/24")):
            self.ns(name, "ip", "addr", "add", address, "dev", link)
            self.ns(name, "ip", "link", "set", link, "up")
        self.ns(self.box, "ip", "route", "add", "default", "via", "100.80.0.1")
        self.ns(self.router, "ip", "rule", "add", "fwmark", "1", "lookup", "100")
        self.ns(self.router, "ip", "route", "add", "local", "default", "dev", "lo", "table", "100")
        self.ns(self.router, "nft", "-f", "-", input="""table inet berth {
            chain arriving {
                type filter hook prerouting priority mangle; policy accept;
                meta l4proto tcp tproxy ip to :15001 meta mark set 1 accept
                meta l4proto udp tproxy ip to :53 meta mark set 1 accept
            }
        }
        """)
        conf = pathlib.Path("/etc/netns") / self.box
        conf.mkdir(parents=True)
        (conf / "resolv.conf").write_text("nameserver 100.80.0.1\noptions timeout:10 attempts:1\n")

    def sockets(self):
        """What berth-node would make in the router's namespace."""
        libc = ctypes.CDLL(None, use_errno=True)
        home, made = os.open("/proc/thread-self/ns/net", os.O_RDONLY), []
        there = os.open(f"/run/netns/{self.router}", os.O_RDONLY)
        assert libc.setns(there, 0x40000000) == 0
        try:
            for kind, port in ((socket.SOCK_STREAM, 15001), (socket.SOCK_DGRAM, 53)):
                s = socket.socket(socket.AF_INET, kind)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.setsockopt(socket.SOL_IP, 19, 1)  # IP_TRANSPARENT
                s.bind(("0.0.0.0", port))
                if kind == socket.SOCK_STREAM:
                    s.listen(512)
                else:  # what a test sends while berth-egress has no processor is kept
                    s.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
                made.append(s)
        finally:
            assert libc.setns(home, 0x40000000) == 0
            os.close(home)
            os.close(there)
        return made

    def start_egress(self, build):
        node = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        node.bind(str(self.work / "node.sock"))
        node.listen(4)
        doors = self.sockets()
        os.chmod(self.work / "node.sock", 0o666)
        state = self.work / "run"
        state.mkdir()
        shutil.chown(state, "nobody")
        (self.work / "egress.conf").write_text(
            f"socket = {state}/egress.sock\nsocket_user = {BERTHD}\nnode_socket = {self.work}/node.sock\nresolver = {OUTSIDE}:53\n"
            f"trust_file = {self.work}/ca.pem\n")
        self.log = open(self.work / "egress.log", "w")
        self.procs.append(subprocess.Popen(
            ["ip", "netns", "exec", self.out, "setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups",
             "--no-new-privs", build / "src/egress/berth-egress", "--config", self.work / "egress.conf"], stderr=self.log))
        peer, _ = node.accept()
        for s in doors:
            kind = 2 if s.type == socket.SOCK_DGRAM else 1  # src/proto/router.h
            socket.send_fds(peer, [struct.pack(">II", 1, kind)], [s.fileno()])
            s.close()
        self.node = (node, peer)
        self.control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for _ in range(1200):
            try:
                self.control.connect(str(state / "egress.sock"))
                break
            except OSError:
                time.sleep(0.05)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while data := self.control.recv(65536):
            kind, record = decode(data)
            with self.changed:
                if kind == "event":
                    self.events.append(record)
                elif kind == "confirm":
                    self.confirms.append(record)
                elif kind == "counts":
                    self.counts[record["sandbox"]] = record
                elif kind == "answer":
                    self.answers[record["number"]] = record
                self.changed.notify_all()

    def wait(self, check, seconds=60):
        with self.changed:
            assert self.changed.wait_for(check, seconds), f"not seen; events {self.events[-5:]}"
            return check()

    def policy(self, rules=(), secrets=(), sandbox="sb_t1_box", version=None, address=BOX, wait=True, **caps):
        """rules: (host, ports[, methods, paths, bootstrap]); answers with the confirmation."""
        self.version = version or self.version + 1
        self.confirms.clear()
        caps = {"generation": self.generation, "mode": 1, "ca_seed": SECRET_SEED, **caps}
        self.control.send(encode("policy", sandbox=sandbox, version=self.version, rules=len(rules), secrets=len(secrets),
                                 address=struct.unpack(">I", socket.inet_aton(address))[0], **caps))
        for r in rules:
            host, ports, methods, paths, bootstrap = r + ("", "", 0)[len(r) - 2:]
            self.control.send(encode("rule", host=host, ports=ports, methods=methods, paths=paths, bootstrap=bootstrap))
        for s in secrets:
            self.control.send(encode("secret", **s))
        return self.wait(lambda: self.confirms and self.confirms[-1]) if wait else None

    def ask(self, sandbox="sb_t1_box", generation=None):
        number = len(self.answers) + 1
        self.control.send(encode("ask", sandbox=sandbox, generation=generation or self.generation, number=number))
        return self.wait(lambda: self.answers.get(number))

    def event(self, kind, name=None):
        """That was refused, and said."""
        return self.wait(lambda: next((e for e in self.events if e["kind"] == kind and name in (None, e["name"])), None))

    def own_events(self):
        """Those of this test: what another was refused may be told late."""
        return [e for e in self.events if e["generation"] == self.generation]

    def forget(self):
        time.sleep(0.45)  # what is under way is told
        with self.changed:
            self.events.clear()
            self.counts.clear()
        self.outside.forget()
        self.generation += 10  # counts begin anew

    def inside(self, *args, **kw):
        return subprocess.run(["ip", "netns", "exec", self.box, *map(str, args)], capture_output=True, text=True,
                              timeout=60, **kw)

    def curl(self, url, *more):
        return self.inside("curl", "-sS", "-m", "15", "--noproxy", "*", "--cacert", self.work / "ca.pem", *more, url)

    def python(self, code):
        return self.inside("/usr/bin/python3", "-c", code)

    def close(self):
        if self.control:
            self.control.close()
        for p in self.procs:
            p.terminate()
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        if hasattr(self, "outside"):
            self.outside.close()
        for name in self.spaces:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        if not self.was_mounted and netns_is_mounted() and not os.listdir("/run/netns"):
            subprocess.run(["umount", "/run/netns"], check=True)
        shutil.rmtree(pathlib.Path("/etc/netns") / self.box, ignore_errors=True)
        shutil.rmtree(self.work, ignore_errors=True)
