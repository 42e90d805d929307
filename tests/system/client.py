"""What a client of berthd needs: requests, event streams, the upgraded connection."""
import base64
import http.client
import json
import socket
import urllib.parse

import nodeproto
from marks import SLOW


class ApiError(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status} {body}")
        self.status, self.body = status, body
        self.code = body.get("code") if isinstance(body, dict) else None


class Api:
    """One key at one server. Every call has a connection of its own, so threads may share it."""

    def __init__(self, port, key, timeout=90 * SLOW, address="127.0.0.1"):
        self.port, self.key, self.timeout, self.address = port, key, timeout, address

    def connect(self):
        return http.client.HTTPConnection(self.address, self.port, timeout=self.timeout)

    def headers(self, more=None):
        auth = {"Authorization": "Bearer " + self.key} if self.key else {}
        return {**auth, **(more or {})}

    def request(self, method, path, body=None, headers=None):
        """(status, decoded body, headers)"""
        conn = self.connect()
        if body is not None and not isinstance(body, (bytes, str)) and not hasattr(body, "read"):
            body, headers = json.dumps(body), {"Content-Type": "application/json", **(headers or {})}
        try:
            conn.request(method, path, body, self.headers(headers))
            r = conn.getresponse()
            data = r.read()
            is_json = "json" in (r.headers.get("Content-Type") or "")
            return r.status, json.loads(data) if is_json else data, r.headers
        finally:
            conn.close()

    def call(self, method, path, body=None, headers=None):
        status, data, _ = self.request(method, path, body, headers)
        if status >= 400:
            raise ApiError(status, data)
        return data

    def get(self, path):
        return self.call("GET", path)

    def create(self, image="base", **options):
        return self.call("POST", "/v1/sandboxes", {"image": image, **options})["id"]

    def delete(self, ident):
        return self.call("DELETE", "/v1/sandboxes/" + ident)

    def exec(self, ident, argv, **options):
        what = {"command": argv} if isinstance(argv, str) else {"argv": argv}
        return Result(self.call("POST", f"/v1/sandboxes/{ident}/exec", {**what, **options}))

    def sandboxes(self):
        found, after = [], ""
        while True:
            page = self.get("/v1/sandboxes?limit=100" + ("&after=" + after if after else ""))
            found, after = found + page["sandboxes"], page["next"]
            if not after:
                return found

    def events(self, method, path, body=None):
        """Yield (name, decoded data) of an event stream until it ends."""
        conn = self.connect()
        try:
            conn.request(method, path, None if body is None else json.dumps(body),
                         self.headers({"Accept": "text/event-stream", "Content-Type": "application/json"}))
            r = conn.getresponse()
            if r.status >= 400:
                raise ApiError(r.status, json.loads(r.read()))
            assert r.headers["Content-Type"].startswith("text/event-stream"), r.headers
            yield from parse_events(r)
        finally:
            conn.close()

    def upgrade(self, ident):
        """A socket that speaks frames: the caller sends exec_frame() first."""
        sock = socket.create_connection((self.address, self.port), timeout=self.timeout)
        sock.sendall((f"POST /v1/sandboxes/{ident}/exec HTTP/1.1\r\nHost: berth\r\nAuthorization: Bearer {self.key}\r\n"
                      "Connection: Upgrade\r\nUpgrade: berth-exec\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            more = sock.recv(1)
            if not more:
                raise ApiError(0, "closed before an answer: " + head.decode())
            head += more
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise ApiError(int(head.split()[1]), head.decode())
        return sock

    def run_frames(self, ident, argv, stdin=None, **options):
        """(exit record, stdout, stderr) over an upgraded connection."""
        with self.upgrade(ident) as sock:
            sock.sendall(nodeproto.exec_frame(argv, stdin=stdin is not None, **options))
            if stdin is not None:
                for at in range(0, len(stdin), 1 << 16):
                    sock.sendall(nodeproto.frame("stdin", stdin[at:at + (1 << 16)]))
                sock.sendall(nodeproto.frame("stdin_end"))
            return collect(sock)


def collect(sock):
    out = {"stdout": b"", "stderr": b""}
    for name, payload in nodeproto.read_frames(sock):
        if name in out:
            out[name] += payload
        elif name == "exited":
            return nodeproto.decode_exit(payload), out["stdout"], out["stderr"]
        elif name == "error":
            raise ApiError(0, payload[6:].decode("utf-8", "replace"))
    raise ApiError(0, "closed before the command's end was told")


def parse_events(lines):
    name, data = "message", []
    for line in lines:
        line = line.decode().rstrip("\r\n")
        if not line:
            if data:
                yield name, json.loads("\n".join(data))
            name, data = "message", []
        elif line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))


class Result(dict):
    """An exec's answer, with its streams as bytes."""

    def __getattr__(self, name):
        return self[name]

    def stream(self, name):
        if name + "_base64" in self:
            return base64.b64decode(self[name + "_base64"])
        return self[name].encode()

    @property
    def out(self):
        return self.stream("stdout")

    @property
    def err(self):
        return self.stream("stderr")


def event_bytes(data):
    return base64.b64decode(data["data_base64"]) if "data_base64" in data else data["data"].encode()


def quote(name):
    return urllib.parse.quote(name, safe="")
