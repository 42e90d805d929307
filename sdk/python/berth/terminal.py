"""A command on a pty. It belongs to no client: it goes on while nobody looks."""
from __future__ import annotations

import base64
import json
import os
import socket
import ssl
import struct
import urllib.parse
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from .client import Berth, random_id
from .errors import ConnectionError, error_from, milliseconds
from .exec import Stream, follow

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Attached:
    """A viewer of a terminal that may type: a WebSocket (RFC 6455). Closing it ends nothing but itself."""

    def __init__(self, client: Berth, path: str) -> None:
        to = urllib.parse.urlsplit(client.url)
        host, secure = to.hostname or "", to.scheme == "https"
        try:
            self._socket = socket.create_connection((host, to.port or (443 if secure else 80)), client.timeout)
            if secure:
                self._socket = ssl.create_default_context().wrap_socket(self._socket, server_hostname=host)
        except OSError as why:
            raise ConnectionError(f"no answer from {client.url}: {why}", code="connection") from why
        self._file = self._socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        head = [f"GET {to.path.rstrip('/')}{path} HTTP/1.1", f"Host: {to.netloc}", "Connection: Upgrade", "Upgrade: websocket",
                "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}"]
        if client.api_key:
            head.append(f"Authorization: Bearer {client.api_key}")
        try:
            self._socket.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self):
        status = int((self._file.readline().split() + [b"0", b"0"])[1])
        headers = {}
        while (line := self._file.readline().strip()):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        if status != 101:
            body = self._file.read(int(headers.get("content-length", "0")))
            raise error_from(json.loads(body) if body[:1] == b"{" else None, status)

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def write(self, keys: Union[str, bytes]) -> None:
        self._send(BINARY, keys.encode() if isinstance(keys, str) else keys)

    def resize(self, cols: int, rows: int) -> None:
        self._send(TEXT, json.dumps({"type": "resize", "cols": cols, "rows": rows}).encode())

    def __iter__(self) -> Stream:
        """("output", bytes) as it shows them, and ("attached"|"gap"|"error"|"exit", dict); the last is exit."""
        while True:
            opcode, payload = self._receive()
            if opcode == BINARY:
                yield "output", payload
            elif opcode == TEXT:
                word = json.loads(payload)
                yield word["type"], word
            elif opcode == PING:
                self._send(PONG, payload)
            elif opcode == CLOSE:
                return

    def _send(self, opcode, payload):
        n, mask = len(payload), os.urandom(4)
        size = bytes([0x80 | n]) if n < 126 else b"\xfe" + struct.pack(">H", n) if n < 65536 else b"\xff" + struct.pack(">Q", n)
        try:
            self._socket.sendall(bytes([0x80 | opcode]) + size + mask + bytes(b ^ mask[i & 3] for i, b in enumerate(payload)))
        except OSError as why:
            raise ConnectionError(f"the terminal's connection broke: {why}", code="connection") from why

    def _take(self, n):
        try:
            data = self._file.read(n)
        except (OSError, ValueError) as why:
            raise ConnectionError(f"the terminal's connection broke: {why}", code="connection") from why
        if len(data) < n:
            raise ConnectionError("the terminal's connection broke", code="connection")
        return data

    def _receive(self) -> Tuple[int, bytes]:
        first, n = self._take(2)
        if n == 126:
            n = struct.unpack(">H", self._take(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", self._take(8))[0]
        return first & 15, self._take(n)


class Terminal:
    def __init__(self, client: Berth, base: str, record: Dict[str, Any]) -> None:
        self._client, self._base, self.record, self.id = client, base, record, record["id"]

    @property
    def _path(self):
        return f"{self._base}/terminals/{self.id}"

    def refresh(self) -> Terminal:
        self.record = self._client.json("GET", self._path)
        return self

    def resize(self, cols: int, rows: int) -> Terminal:
        """What runs in it is told by SIGWINCH."""
        self.record = self._client.json("POST", self._path + "/resize", body={"cols": cols, "rows": rows})
        return self

    def output(self, position: int = 0) -> Stream:
        """("stdout", bytes) it showed and shows, from a position to its end, and at last ("exit", record)."""
        return follow(self._client, self._base, self.id, position)

    def attach(self, position: int = 0) -> Attached:
        """To see it and type into it. What it showed from `position` on comes first."""
        return Attached(self._client, f"{self._path}/attach?from={position}")

    def end(self) -> Terminal:
        """Kill it and all it started, and forget it; the record says how it ended."""
        self.record = self._client.json("DELETE", self._path)
        return self


class Terminals:
    def __init__(self, client: Berth, base: str) -> None:
        self.client, self.base = client, base

    def create(self, argv: Optional[Sequence[str]] = None, cwd: Optional[str] = None, env: Optional[Dict[str, str]] = None,
               cols: int = 80, rows: int = 24, ident: Optional[str] = None, timeout: Optional[float] = None) -> Terminal:
        """Without `argv` bash as at a login, or sh. It is killed after `timeout` seconds: an hour unless said, 0 is never."""
        body: Dict[str, Any] = {"cols": cols, "rows": rows}
        for name, value in (("argv", argv and list(argv)), ("cwd", cwd), ("env", env), ("id", ident)):
            if value is not None:
                body[name] = value
        if timeout is not None:
            body["timeout_ms"] = milliseconds(timeout)
        return Terminal(self.client, self.base, self.client.json("POST", f"{self.base}/terminals", body=body, key=random_id("tm_")))

    def list(self) -> List[Terminal]:
        """Also those that have ended, until they are deleted."""
        return [Terminal(self.client, self.base, t) for t in self.client.json("GET", f"{self.base}/terminals")["terminals"]]

    def get(self, ident: str) -> Terminal:
        return Terminal(self.client, self.base, self.client.json("GET", f"{self.base}/terminals/{urllib.parse.quote(ident, safe='')}"))
