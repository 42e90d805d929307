"""What a client or a guest that means harm can make the daemons hold: a table of abuses, and the memory of each daemon."""
import json
import pathlib
import re
import socket
import threading
import time

import images
from client import Api
from marks import limit, only
from websocket import WebSocket

RUNTIMES = ("crun",)
DAEMONS = ("berthd", "berth-node", "berth-egress")
LAST = 2.5  # seconds an abuse goes on for
MIB = 1 << 20


class Abuse:
    """One of a user's key, in a box of its own. What it opens is closed at its end."""

    def __init__(self, s, api, box):
        self.s, self.api, self.box, self.socks, self.end = s, api, box, [], 0

    def path(self, more):
        return f"/v1/sandboxes/{self.box}{more}"

    def connect(self, data=b""):
        """A connection that sends this, and reads nothing. What is refused is no concern here."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the kernel is to hold little of it
        sock.settimeout(5)
        self.socks.append(sock)
        try:
            sock.connect(("127.0.0.1", self.s.port))
            sock.sendall(data)
        except OSError:
            pass
        return sock

    def head(self, method, path, *more):
        return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: a", f"Authorization: Bearer {self.api.key}", *more, "", ""]).encode()

    def exec(self, command, **options):
        return self.api.exec(self.box, command, **options)

    def background(self, argv):
        return self.exec(argv, background=True)["id"]

    def deaf_viewers(self):
        t = self.api.call("POST", self.path("/terminals"), {"argv": ["yes", "A" * 100]})["id"]
        self.socks += [WebSocket(self.api, self.path(f"/terminals/{t}/attach")) for _ in range(60)]
        self.wait()

    def pings(self):
        t = self.api.call("POST", self.path("/terminals"), {"argv": ["sleep", "7777"]})["id"]
        views = [WebSocket(self.api, self.path(f"/terminals/{t}/attach")) for _ in range(10)]
        self.socks += views
        for v in views:
            v.sock.setblocking(False)
        self.pour([v.sock for v in views], (b"\x89\x80" + bytes(4)) * 10000)

    def fat_lists(self):
        for i in range(16):
            self.exec(["/bin/true", *["\x01" * 20000] * 6], id=f"fat{i}")  # as JSON six times as much
        while time.monotonic() < self.end:
            for _ in range(20):
                self.connect(self.head("GET", self.path("/execs?limit=1000")))
            time.sleep(0.3)

    def unread_output(self):
        ident = self.background(["yes", "B" * 200])
        for _ in range(400):
            self.connect(self.head("GET", self.path(f"/execs/{ident}/output?follow=1&stream=stdout"), "Accept: text/event-stream"))
        self.wait()

    def many_waits(self):
        ident = self.background(["sleep", "7777"])
        for i in range(1000):
            self.connect(self.head("GET", self.path(f"/execs/{ident}/wait?for=log&pattern=never{i}")))
        self.wait()

    def big_json(self):
        bodies = [json.dumps({"argv": ["a"], "env": [0] * 300000}), "[" * 900000, '{"argv":[' + '"",' * 200000 + '""]}',
                  json.dumps({f"k{i}": i for i in range(60000)})]
        while time.monotonic() < self.end:
            for body in bodies:
                self.connect(self.head("POST", self.path("/exec"), "Content-Type: application/json", f"Content-Length: {len(body)}")
                             + body.encode())

    def floods(self):
        """Of the guest: datagrams to whatever address, and questions for names."""
        self.exec(["python3", "-c", FLOOD, str(LAST)], timeout_ms=60000)

    def uploads(self):
        head = self.head("PUT", self.path("/files?path=/tmp/upload"), f"Content-Length: {100 * MIB}")
        self.pour([self.connect(head) for _ in range(100)], bytes(65536))

    def storm(self):
        while time.monotonic() < self.end:
            for i in range(100):
                sock = self.connect([b"", b"GET /v1/sandboxes HTTP/1.1\r\nX: " + b"y" * 8000, self.head("GET", "/v1/sandboxes")][i % 3])
                if i % 2:
                    sock.close()

    def watches(self):
        for _ in range(60):
            self.connect(self.head("GET", self.path("/files/watch?path=/tmp&recursive=1"), "Accept: text/event-stream"))
        self.exec(f"end=$(($(date +%s) + {LAST:.0f})); while [ $(date +%s) -lt $end ]; do i=0; while [ $i -lt 200 ]; do "
                  ": > /tmp/f$i; rm /tmp/f$i; i=$((i + 1)); done; done", timeout_ms=60000)

    def event_streams(self):
        for _ in range(1000):
            self.connect(self.head("GET", "/v1/events"))
        while time.monotonic() < self.end:
            self.api.call("PATCH", self.path(""), {"labels": {"a": "b" * 60}})

    def wait(self):
        time.sleep(max(0, self.end - time.monotonic()))

    def pour(self, socks, data):
        for sock in socks:
            sock.setblocking(False)
        while time.monotonic() < self.end:
            sent = 0
            for sock in socks:
                try:
                    sent += sock.send(data)
                except OSError:
                    pass  # it is full, or was closed
            if not sent:
                time.sleep(0.02)


FLOOD = """
import os, socket, sys, time
end = time.time() + float(sys.argv[1])
for child in range(4):
    if os.fork() == 0:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setblocking(False)
        question = b"\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\x20%032x\\7example\\3com\\0\\0\\1\\0\\1"
        n = 0
        while time.time() < end:
            n += 1
            try:
                if child % 2:
                    s.sendto(question % n, ("100.64.0.1", 53))
                else:
                    s.sendto(bytes(1400), ("8.8.%d.%d" % (n >> 8 & 255, n & 255), 1 + n % 65535))
            except OSError:
                pass
        os._exit(0)
for child in range(4):
    os.wait()
"""

# What it is, how, and how much more than before a daemon may have at most, in MiB. Those that take most come last: what was
# freed may stay with the process, and would hide what comes after it.
ABUSES = [
    ("60 viewers that do not read", Abuse.deaf_viewers, {"berthd": 192}),
    ("pings on 10 sockets", Abuse.pings, {"berthd": 96}),
    ("1,000 waits", Abuse.many_waits, {"berthd": 96}),
    ("datagrams and questions", Abuse.floods, {"berth-egress": 64}),
    ("a storm of connections", Abuse.storm, {"berthd": 128}),
    ("60 watches that are not read", Abuse.watches, {"berthd": 128}),
    ("1,000 event streams", Abuse.event_streams, {"berthd": 128}),
    ("100 uploads", Abuse.uploads, {"berthd": 256}),
    ("big JSON", Abuse.big_json, {"berthd": 320}),
    ("400 followers that do not read", Abuse.unread_output, {"berthd": 320}),
    ("fat lists that are not read", Abuse.fat_lists, {"berthd": 448}),
]
OTHERWISE = 32  # MiB, of a daemon that an abuse is not meant for


def own_memory(pid):
    """In bytes, without what is shared with the program's file; 0 if it is gone."""
    try:
        return int(re.search(r"^RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1]) << 10
    except (FileNotFoundError, TypeError):
        return 0


class Watch(threading.Thread):
    """The most that each process has, looked at often."""

    def __init__(self, pids):
        super().__init__(daemon=True)
        self.pids, self.over = pids, threading.Event()
        self.before = self.most = {d: own_memory(p) for d, p in pids.items()}

    def run(self):
        while not self.over.wait(0.03):
            self.most = {d: max(self.most[d], own_memory(p)) for d, p in self.pids.items()}

    def stop(self):
        self.over.set()
        self.join()


@limit(240)
@only("crun")
def test_memory_is_bounded_under_every_abuse(s):
    image = images.have(s, "python3")
    key = s.api.call("POST", "/v1/keys", {"name": "mallory", "role": "user", "owner": "mallory"})
    api = Api(s.port, key["key"])
    too_much, began = [], time.monotonic()
    print(f"      {'abuse':32} {'daemon':14} {'before':>7} {'most':>7} {'after':>7}  MiB", flush=True)
    for name, do, limits in ABUSES:
        pids = {d: s.pid(d) for d in DAEMONS}
        abuse = Abuse(s, api, api.create(image, memory_mb=512, pids=300))
        watch = Watch(pids)
        watch.start()
        abuse.end = time.monotonic() + LAST
        try:
            do(abuse)
            assert s.api.get("/v1/health")["status"] == "ok", name
        finally:
            for sock in abuse.socks:
                sock.close()
            watch.stop()
        assert api.delete(abuse.box)["state"] == "gone", name
        assert pids == {d: s.pid(d) for d in DAEMONS}, f"{name}: a daemon died"
        for d in DAEMONS:
            before, most, after = (n / MIB for n in (watch.before[d], watch.most[d], own_memory(pids[d])))
            print(f"      {name:32} {d:14} {before:7.1f} {most:7.1f} {after:7.1f}", flush=True)
            if most - before > limits.get(d, OTHERWISE):
                too_much.append(f"{name}: {d} {before:.0f} -> {most:.0f} MiB, and {limits.get(d, OTHERWISE)} more are allowed")
    print(f"      all of it in {time.monotonic() - began:.0f} s", flush=True)
    s.api.call("DELETE", "/v1/keys/" + key["id"])
    assert not too_much, "\n".join(too_much)
