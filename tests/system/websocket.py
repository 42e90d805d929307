"""A small WebSocket client (RFC 6455), enough to talk to a terminal."""
import base64
import json
import os
import socket
import struct


class Closed(Exception):
    pass


class WebSocket:
    def __init__(self, api, path, timeout=60):
        self.sock = socket.create_connection((api.address, api.port), timeout=timeout)
        self.data, self.texts, self.code = b"", [], None
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock.sendall((f"GET {path} HTTP/1.1\r\nHost: berth\r\nAuthorization: Bearer {api.key}\r\nConnection: Upgrade\r\n"
                           f"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.data:
            more = self.sock.recv(65536)
            if not more:
                raise Closed("before the handshake")
            self.data += more
        head, self.data = self.data.split(b"\r\n\r\n", 1)
        self.status = int(head.split()[1])
        self.head = head.decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def close(self):
        self.sock.close()

    def send(self, payload, opcode=2):
        mask, n = os.urandom(4), len(payload)
        head = bytes([0x80 | opcode]) + (bytes([0x80 | n]) if n < 126 else b"\xfe" + struct.pack(">H", n) if n < 65536
                                         else b"\xff" + struct.pack(">Q", n))
        self.sock.sendall(head + mask + bytes(b ^ mask[i & 3] for i, b in enumerate(payload)))

    def say(self, **word):
        self.send(json.dumps(word).encode(), 1)

    def need(self, n):
        while len(self.data) < n:
            more = self.sock.recv(1 << 20)
            if not more:
                raise Closed("without a closing frame")
            self.data += more

    def receive(self):
        """(opcode, payload) of the next frame; pings are answered."""
        while True:
            self.need(2)
            first, n, at = self.data[0], self.data[1], 2
            assert not n & 0x80 and first & 0x80 and not first & 0x70
            if n == 126:
                self.need(4)
                n, at = struct.unpack(">H", self.data[2:4])[0], 4
            elif n == 127:
                self.need(10)
                n, at = struct.unpack(">Q", self.data[2:10])[0], 10
            self.need(at + n)
            payload, self.data = self.data[at:at + n], self.data[at + n:]
            if first & 15 == 9:
                self.send(payload, 10)
                continue
            return first & 15, payload

    def until(self, wanted):
        """Bytes that came, up to and with `wanted` (bytes), or until a text of that type (str). None: until it closes."""
        seen = b""
        while True:
            opcode, payload = self.receive()
            if opcode == 8:
                self.code = struct.unpack(">H", payload[:2])[0] if payload else 1005
                if wanted is None:
                    return seen
                raise Closed(f"{self.code}, after {seen!r}")
            if opcode == 1:
                self.texts.append(json.loads(payload))
                if isinstance(wanted, str) and self.texts[-1]["type"] == wanted:
                    return seen
            if opcode == 2:
                seen += payload
                if isinstance(wanted, bytes) and wanted in seen:
                    return seen
