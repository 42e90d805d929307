"""Speaks berth-node's protocol: one packet, one message (src/proto/node.h)."""
import array
import socket
import struct

VERSION = 2  # NODE_VERSION
VERBS = ["none", "image", "create", "start", "observe", "connect", "stop", "destroy",
         "inventory", "capacity", "usage", "lease", "limit"]
PRESENCE = ["unknown", "absent", "present"]

LIMITS = [("memory_bytes", "Q"), ("disk_bytes", "Q"), ("cpu_milli", "I"), ("pids", "I"), ("open_files", "I")]
USAGE = [(name, "Q") for name in ("since_ms", "cpu_us", "memory_bytes", "memory_peak_bytes", "pids", "pids_peak", "pids_refused",
                                  "disk_bytes", "oom_kills")]
TARGET = [("request", "s"), ("sandbox", "s"), ("generation", "Q"), ("epoch", "Q")]
OBSERVATION = [("sandbox", "s"), ("generation", "Q"), ("presence", "I"), ("process", "I"),
               ("cgroup", "I"), ("disk", "I"), ("runtime", "I"), ("link", "I"), ("record", "I"),
               ("ready", "I"), ("ended", "I"), ("life", "I"), ("protocol", "I"), ("observed_ms", "Q"), ("address", "s"),
               ("detail", "s")] + USAGE
IMAGE = [("digest", "s"), ("bytes", "Q"), ("phase", "s"), ("done", "Q"), ("total", "Q")]
FIELDS = {  # verb: request, part, reply
    "image": ([("request", "s"), ("op", "I"), ("source", "s"), ("digest", "s")], IMAGE, IMAGE),
    "create": (TARGET + [("image", "s"), ("runtime", "s")] + LIMITS + [("trust", "s"), ("keep_disk", "I")], None, OBSERVATION),
    "start": (TARGET, None, OBSERVATION),
    "observe": (TARGET, None, OBSERVATION),
    "connect": (TARGET, None, USAGE),
    "stop": (TARGET + [("grace_ms", "I"), ("life", "I")], None, OBSERVATION),
    "destroy": (TARGET, None, OBSERVATION),
    "inventory": ([("request", "s"), ("follow", "I")], OBSERVATION, [("zero", "I")]),
    "capacity": ([("request", "s"), ("follow", "I")], None,
                 [("version", "I"), ("cpus", "I"), ("memory_total", "Q"), ("memory_available", "Q"),
                  ("disk_total", "Q"), ("disk_available", "Q"), ("sandboxes", "I"),
                  ("cgroups", "s"), ("runtimes", "s"), ("cpu_us", "Q"), ("pids", "I"), ("open_files", "I")]),
    "lease": ([("request", "s"), ("op", "I"), ("epoch", "Q"), ("until_ms", "Q")], None,
              [("state", "I"), ("epoch", "Q"), ("until_ms", "Q"), ("runs", "I"), ("still", "I"), ("frozen_ms", "Q")]),
    "usage": (TARGET, None, USAGE),
    "limit": (TARGET + LIMITS, None, [("zero", "I")]),
}


class NodeError(Exception):
    pass


def encode(fields, values):
    out = b""
    for name, kind in fields:
        v = values.get(name, "" if kind == "s" else 0)
        out += struct.pack(">H", len(v.encode())) + v.encode() if kind == "s" else struct.pack(">" + kind, v)
    return out


def decode(fields, data):
    out, at = {}, 0
    for name, kind in fields:
        if kind == "s":
            (n,) = struct.unpack_from(">H", data, at)
            out[name] = data[at + 2:at + 2 + n].decode()
            at += 2 + n
        else:
            (out[name],) = struct.unpack_from(">" + kind, data, at)
            at += struct.calcsize(">" + kind)
    return out


class Node:
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.connect(path)
        self.sock.settimeout(120)
        self.id = 0

    def send(self, verb, fd=None, **values):
        self.id += 1
        packet = struct.pack(">BBBQ", VERSION, VERBS.index(verb), 0, self.id) + encode(FIELDS[verb][0], values)
        control = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        self.sock.sendmsg([packet], control)
        return self.id

    def receive(self):
        """(id, verb, kind, record, fd) of the next message."""
        data, control, _, _ = self.sock.recvmsg(65536, socket.CMSG_SPACE(4))
        if not data:
            raise NodeError("connection closed")
        _, verb, kind, ident = struct.unpack_from(">BBBQ", data)
        verb, body = VERBS[verb], data[11:]
        fd = array.array("i", control[0][2])[0] if control else None
        if kind == 3:
            (code,) = struct.unpack_from(">I", body)
            return ident, verb, kind, decode([("msg", "s"), ("fix", "s")], body[4:]) | {"code": code}, fd
        return ident, verb, kind, decode(FIELDS[verb][kind], body), fd

    def call(self, verb, fd=None, **values):
        """The reply; parts are collected in reply["parts"]."""
        ident, parts = self.send(verb, fd=fd, **values), []
        while True:
            got, _, kind, record, passed = self.receive()
            if got != ident:
                continue
            if kind == 1:
                parts.append(record)
            elif kind == 3:
                raise NodeError(record["msg"])
            else:
                return record | {"parts": parts, "fd": passed}


FRAMES = {"hello": 1, "exec": 2, "stdin": 3, "stdin_end": 4, "signal": 5, "started": 6, "stdout": 7,
          "stderr": 8, "exited": 9, "error": 10}
KINDS = ["none", "exited", "signalled", "timed_out", "oom", "killed", "lost"]


def frame(kind, payload=b""):
    return struct.pack(">BI", FRAMES[kind], len(payload)) + payload


def exec_frame(argv, env=(), cwd="", timeout_ms=0, stdin=False, ident="", flags=0, cols=0, rows=0, shell=""):
    def text(s):
        return struct.pack(">H", len(s.encode())) + s.encode()

    def listed(items):
        return struct.pack(">I", len(items)) + b"".join(
            struct.pack(">I", len(i.encode())) + i.encode() for i in items)
    return frame("exec", text(ident) + struct.pack(">III", int(stdin) | flags, cols, rows) + text(shell) +
                 struct.pack(">Q", timeout_ms) + text(cwd) + listed(argv) + listed(env))


def read_frames(sock):
    """Yield (name, payload) until the peer closes."""
    names = {v: k for k, v in FRAMES.items()}
    data = b""
    while True:
        while len(data) >= 5:
            kind, n = struct.unpack_from(">BI", data)
            if len(data) < 5 + n:
                break
            yield names[kind], data[5:5 + n]
            data = data[5 + n:]
        more = sock.recv(1 << 20)
        if not more:
            return
        data += more


def decode_exit(payload):
    kind, code, signum, wall, user, system, rss = struct.unpack_from(">BIIQQQQ", payload)
    return {"kind": KINDS[kind], "code": code, "signum": signum, "wall_us": wall, "user_us": user,
            "system_us": system, "max_rss_kb": rss}


def run(fd, argv, **options):
    """Run a command over a connected descriptor: (exit or error, stdout, stderr)."""
    with socket.socket(fileno=fd) as sock:
        sock.setblocking(True)
        sock.sendall(exec_frame(argv, **options))
        out, err = b"", b""
        for name, payload in read_frames(sock):
            if name == "stdout":
                out += payload
            elif name == "stderr":
                err += payload
            elif name == "exited":
                return decode_exit(payload), out, err
            elif name == "error":
                return payload[6:].decode(), out, err
    raise NodeError("init hung up")
