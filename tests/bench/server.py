"""A `berth dev` of our own in a temporary directory, and a plain client for it."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time

IDLE = 5
APPLETS = "sh true sleep cat cp rm echo dd".split()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def make_image(path, extra):
    """A tar of a busybox root, with `extra` programs in /bin."""
    with tarfile.open(path, "w") as tar:
        for name in ("bin", "dev", "etc", "proc", "sys", "tmp", "root"):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        for program in ["/usr/bin/busybox", *extra]:
            info = tar.gettarinfo(program, "bin/" + os.path.basename(program))
            info.mode, info.uid, info.gid = 0o755, 0, 0
            with open(program, "rb") as f:
                tar.addfile(info, f)
        for name in APPLETS:
            info = tarfile.TarInfo("bin/" + name)
            info.type, info.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(info)


class Client:
    """One keep-alive connection. Answers (status, body); hides nothing in between."""

    def __init__(self, server):
        self.head = f"Host: bench\r\nAuthorization: Bearer {server.key}\r\n"
        self.port = server.port
        self.dial()

    def dial(self):
        self.sock = socket.create_connection(("127.0.0.1", self.port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.used = time.monotonic()

    def ask(self, method, path, body=None):
        if time.monotonic() - self.used > IDLE:  # berthd closes what is idle for long
            self.sock.close()
            self.dial()
        self.used = time.monotonic()
        data = json.dumps(body).encode() if body is not None else b""
        kind = "Content-Type: application/json\r\n" if data else ""
        self.sock.sendall(f"{method} {path} HTTP/1.1\r\n{self.head}{kind}"
                          f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
        got = b""
        while b"\r\n\r\n" not in got:
            part = self.sock.recv(65536)
            if not part:
                raise RuntimeError("berthd closed the connection")
            got += part
        head, _, rest = got.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(rest) < length:
            rest += self.sock.recv(65536)
        return int(head.split()[1]), rest

    def expect(self, status, method, path, body=None):
        got, text = self.ask(method, path, body)
        if got != status:
            raise RuntimeError(f"{method} {path}: {got} {text.decode()}")
        return json.loads(text)

    def create(self, **options):
        return self.expect(201, "POST", "/v1/sandboxes", {"image": "bench", **options})["id"]

    def run(self, box, *argv):
        got = self.expect(200, "POST", f"/v1/sandboxes/{box}/exec", {"argv": list(argv)})
        if got["exit_code"] != 0:
            raise RuntimeError(f"{argv}: {got}")

    def delete(self, box):
        self.expect(200, "DELETE", f"/v1/sandboxes/{box}")

    def close(self):
        self.sock.close()


class Server:
    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.base = tempfile.mkdtemp(prefix="berth-bench-")
        os.chmod(self.base, 0o755)
        self.dir = self.base + "/dev"
        self.port = free_port()
        self.process = None

    def start(self):
        berth = self.build + "/src/cli/berth"
        with open(self.base + "/dev.log", "w") as log:
            self.process = subprocess.Popen(
                [berth, "dev", "--dir", self.dir, "--listen", f"127.0.0.1:{self.port}"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        self.await_up()
        with open(self.dir + "/env") as f:
            env = dict(line[7:].strip().split("=", 1) for line in f if line.startswith("export "))
        self.key = env["BERTH_API_KEY"].strip("'")
        tar = self.base + "/rootfs.tar"
        make_image(tar, [self.build + "/tests/pattern"])
        subprocess.run([berth, "image", "import", "bench", tar], check=True,
                       env={**os.environ, "BERTH_API_KEY": self.key,
                            "BERTH_URL": f"http://127.0.0.1:{self.port}"},
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def await_up(self):
        for _ in range(600):
            with open(self.base + "/dev.log") as f:
                text = f.read()
            if "Berth is up" in text:
                return
            if self.process.poll() is not None:
                raise RuntimeError("berth dev ended:\n" + text)
            time.sleep(0.1)
        raise RuntimeError("berth dev does not come up")

    def client(self):
        return Client(self)

    def pid(self, name):
        with open(f"{self.dir}/run/{name}.pid") as f:
            return int(f.read().split()[0])

    def instance(self):
        with open(self.dir + "/node.conf") as f:
            return f.read().split("instance = ")[1].split()[0]

    def sql(self, query):
        with open(self.dir + "/berthd.conf") as f:
            user = f.read().split(" user=")[1].split()[0]
        return subprocess.run(
            ["setpriv", f"--reuid={user}", "--clear-groups", "psql", "-h", self.dir + "/run/pg",
             "-U", user, "-d", "postgres", "-Atc", query],
            check=True, capture_output=True, text=True, cwd="/").stdout.strip()

    def stop(self):
        """Ends berth dev and removes its directory; says so if it did not go well."""
        ok = True
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(120)
            except subprocess.TimeoutExpired:
                print(f"bench: berth dev (pid {self.process.pid}) does not end", flush=True)
                return False
        if self.process and self.process.returncode != 0:
            with open(self.base + "/dev.log") as f:
                print("bench: berth dev failed:\n" + f.read()[-2000:], flush=True)
            ok = False
        left = self.leftovers()
        if left:
            print("bench: left behind:\n" + left, flush=True)
            return False
        shutil.rmtree(self.base)
        return ok

    def leftovers(self):
        if not os.path.exists(self.dir + "/node.conf"):
            return ""
        tool = os.path.dirname(__file__) + "/../../tools/leftovers"
        return subprocess.run([tool, "--dir", self.dir, "--instance", self.instance()],
                              capture_output=True, text=True).stdout
