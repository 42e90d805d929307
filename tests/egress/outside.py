#!/usr/bin/python3
"""The outside world of a test: a DNS server, HTTP, HTTPS and a plain TCP service on one address.

usage: outside.py ADDRESS ZONE.json CERT.pem SEEN.jsonl

The zone says {name: [addresses]}. What servers see is written down, one JSON object a line.
"""
import html
import http.server
import json
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

ADDRESS, ZONE, CERT, SEEN = sys.argv[1:5]
lock = threading.Lock()


def seen(**what):
    with lock, open(SEEN, "a") as f:
        f.write(json.dumps(what) + "\n")


def dns():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((ADDRESS, 53))
    while True:
        data, peer = s.recvfrom(4096)
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1:at + 1 + data[at]].decode())
            at += 1 + data[at]
        kind = struct.unpack(">H", data[at + 1:at + 3])[0]
        name = ".".join(labels).lower()
        seen(kind="dns", name=name)
        found = json.load(open(ZONE)).get(name, [])
        answers = [b"\xc0\x0c\0\x01\0\x01\0\0\0\x05\0\x04" + socket.inet_aton(a) for a in found if kind == 1]
        flags = 0x8180 if found else 0x8183
        s.sendto(data[:2] + struct.pack(">HHHHH", flags, 1, len(answers), 0, 0) + data[12:at + 5] + b"".join(answers), peer)


WRITERS = {"/v1/json": lambda s: json.dumps({"you_sent": s}).replace("/", "\\/"),  # as PHP does
           "/v1/html": lambda s: html.escape(s).replace("/", "&#x2F;").replace("+", "&#43;"), "/v1/url": urllib.parse.quote_plus,
           "/v1/unicode": lambda s: "".join(f"\\u{ord(c):04x}" for c in s), "/v1/cut": lambda s: s[:-1]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def read_body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):  # a line ends at LF, as with many servers
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline() not in (b"\r\n", b""):  # trailers, and no empty line of LF alone
            pass
        return body

    def git(self, body):
        env = {"GIT_PROJECT_ROOT": "/", "GIT_HTTP_EXPORT_ALL": "1", "REQUEST_METHOD": self.command,
               "PATH_INFO": self.path.split("?")[0].replace("/git", REPOSITORY, 1), "PATH": "/usr/bin:/bin",
               "QUERY_STRING": (self.path.split("?") + [""])[1], "CONTENT_TYPE": self.headers.get("Content-Type", ""),
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        out = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True).stdout
        head, _, rest = out.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        self.send_response(int(dict(fields).get("Status", "200").split()[0]))
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)

    def answer(self):
        body = self.read_body() if self.path != "/v1/unread" and not self.path.startswith("/v1/part") else b""  # its next request, as with any handler that does not read
        tls = isinstance(self.connection, ssl.SSLSocket)
        seen(kind="request", tls=tls, method=self.command, path=self.path, headers=dict(self.headers), body=len(body))
        mine = self.headers.get("Authorization", "") + self.headers.get("X-Api-Key", "")
        text = json.dumps({"path": self.path, "method": self.command, "body": len(body), "you_sent": mine}).encode()
        if self.path == "/v1/notes":
            text = b"cannot parse: " + body
        if self.path in WRITERS:
            text = WRITERS[self.path](mine).encode()
        if self.path.startswith("/git/"):
            return self.git(body)
        if self.path == "/v1/echo":  # another protocol, as it was asked for
            self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
            while data := self.connection.recv(65536) if not self.rfile.peek() else self.rfile.read1():
                self.wfile.write(data)
            self.close_connection = True
            return
        if self.path.startswith("/v1/part"):  # the same, in two parts
            self.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npart one;")
            time.sleep(60 if self.path.endswith("long") else 1.5)
            self.wfile.write(b"part two")
            self.close_connection = True
            return
        if self.path == "/v1/trailer":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-A: 1\r\n\r\n")
            return
        if self.path == "/close":  # an answer that ends with the connection
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(text)
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("X-You-Sent", mine or "nothing")
        if self.path == "/gzip-second":
            self.send_header("Content-Encoding", "identity")
        if self.path.startswith("/gzip"):
            self.send_header("Content-Encoding", "gzip")
        if self.path == "/drip":  # one byte a chunk
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for i in range(len(text)):
                self.wfile.write(b"1\r\n" + text[i:i + 1] + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
            return
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = answer


setattr(Handler, "do_M-SEARCH", Handler.answer)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def get_request(self):
        request = super().get_request()
        seen(kind="accept")
        return request

    def handle_error(self, request, client_address):
        pass


class TlsServer(Server):
    def finish_request(self, request, client_address):
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(CERT)
        with ctx.wrap_socket(request, server_side=True) as tls:
            super().finish_request(tls, client_address)


def echo(port, greet):
    s = socket.create_server((ADDRESS, port))
    while True:
        c, _ = s.accept()
        seen(kind="raw", port=port)

        def serve(c=c):
            with c:
                if greet:
                    c.sendall(b"hello first\n")
                while data := c.recv(65536):
                    c.sendall(data)
        threading.Thread(target=serve, daemon=True).start()


REPOSITORY = sys.argv[5] if len(sys.argv) > 5 else "/nonexistent"
for target, args in ((dns, ()), (echo, (7000, False)), (echo, (7001, True)),
                     (Server((ADDRESS, 80), Handler).serve_forever, ()),
                     (Server((ADDRESS, 8080), Handler).serve_forever, ()),
                     (TlsServer((ADDRESS, 443), Handler).serve_forever, ())):
    threading.Thread(target=target, args=args, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
