"""A `berth dev` in a directory of its own, and a way to be rid of it whatever happened."""
import ctypes
import importlib.machinery
import importlib.util
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tarfile
import time

from client import Api
from marks import SLOW

TOP = pathlib.Path(__file__).resolve().parents[2]
START_LIMIT, STOP_LIMIT = 60, 60
PATIENCE = 30  # seconds: the least a wait is given


def load_leftovers():
    loader = importlib.machinery.SourceFileLoader("leftovers", str(TOP / "tools/leftovers"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("leftovers", loader))
    loader.exec_module(module)
    return module


leftovers = load_leftovers()


def free_port():
    """None that the kernel gives to connections: another test's could have it before the server has."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", random.randrange(10000, first) if first > 12000 else 0))
                return s.getsockname()[1]
            except OSError:
                pass  # it is in use


def wait_until(true, seconds, what):
    """What comes costs no time, so a wait is never short: this machine stands still for seconds at times."""
    seconds = max(seconds, PATIENCE)
    end = time.monotonic() + seconds * SLOW
    while True:
        found = true()
        if found:
            return found
        assert time.monotonic() < end, f"{what}: not after {seconds} s"
        time.sleep(0.05)


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG: a killed runner leaves nothing either
    os.setsid()


def build_rootfs(path, probe=None):
    """A tar of a small root: busybox with all its applets, and the probe."""
    def entry(name, kind=tarfile.DIRTYPE, mode=0o755, **more):
        info = tarfile.TarInfo(name)
        info.type, info.mode = kind, mode
        for k, v in more.items():
            setattr(info, k, v)
        return info
    with tarfile.open(path, "w") as tar:
        for d in ("bin", "etc", "root", "usr", "var", "home"):
            tar.addfile(entry(d))
        tar.addfile(entry("tmp", mode=0o1777))
        files = {"bin/busybox": "/bin/busybox"} | ({"bin/probe": probe} if probe else {})
        for name, source in files.items():
            with open(source, "rb") as f:
                tar.addfile(entry(name, tarfile.REGTYPE, size=os.path.getsize(source)), f)
        for applet in subprocess.check_output(["/bin/busybox", "--list"], text=True).split():
            if applet != "busybox":
                tar.addfile(entry("bin/" + applet, tarfile.SYMTYPE, linkname="busybox"))


class Server:
    def __init__(self, build, runtime, directory, options=()):
        self.build, self.runtime, self.dir = pathlib.Path(build).resolve(), runtime, str(directory)
        self.options, self.dev_env, self.prefix = list(options), {}, []
        self.port = free_port()
        self.process = None
        self.cli = str(self.build / "src/cli/berth")

    # -- life ---------------------------------------------------------------------------------

    def start(self):
        # It is written at every start, when what an earlier one left was stopped: the old berthd must not count as up.
        pathlib.Path(self.dir, "env").unlink(missing_ok=True)
        log = open(self.dir + ".log", "ab")
        self.process = subprocess.Popen(
            [*self.prefix, self.cli, "dev", "--dir", self.dir, "--listen", f"127.0.0.1:{self.port}", "--runtime", self.runtime,
             "--pool-size", "4g", *self.options],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent,
            env={**os.environ, **self.dev_env})
        log.close()
        wait_until(self.is_up, START_LIMIT, "berth dev up")
        self.env = dict(line.removeprefix("export ").replace("'", "").split("=", 1)
                        for line in pathlib.Path(self.dir, "env").read_text().split("\n") if "=" in line)
        self.key = self.env["BERTH_API_KEY"]
        self.api = Api(self.port, self.key)
        return self

    def is_up(self):
        assert self.process.poll() is None, f"berth dev ended with {self.process.returncode}:\n{self.said()}"
        try:
            return os.path.exists(self.dir + "/env") and Api(self.port, None, 5).request("GET", "/v1/health")[0] == 200
        except (OSError, ValueError):
            return False

    def said(self):
        return pathlib.Path(self.dir + ".log").read_text(errors="replace")[-1500:]

    def stop(self):
        """As Ctrl-C does. The exit status of `berth dev`."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(STOP_LIMIT)

    def illegal_moves(self):
        """What lib/phase logged: a bug, though the daemon goes on."""
        return [line[:300] for log in pathlib.Path(self.dir, "log").glob("*.log")
                for line in log.read_text(errors="replace").splitlines() if "phase: illegal move" in line]

    def leftovers(self):
        return leftovers.find(dirs=[self.dir])

    def sweep(self):
        """Be rid of everything of this server, by force. What could not be removed is returned."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for _ in range(100):
            found = self.leftovers()
            for f in found:
                self.sweep_one(f)
            if not [f for f in found if f["kind"] in ("process", "cgroup", "mount", "loop", "socket")]:
                break
            time.sleep(0.1)
        found = [f for f in self.leftovers() if f["kind"] in ("process", "cgroup", "mount", "loop", "netns", "link")]
        shutil.rmtree(self.dir, ignore_errors=True)
        return found

    def sweep_one(self, found):
        if "pid" in found:
            kill_checked(found["pid"], lambda: found["pid"] in [f.get("pid") for f in self.leftovers()])
        elif found.get("path"):
            try:
                os.rmdir(found["path"])
            except OSError:
                pass  # still busy: the next round
        elif found["kind"] == "cgroup":
            leftovers.remove_hidden(found["what"])
        elif "dev" in found:
            subprocess.run(["losetup", "-d", found["dev"]], stderr=subprocess.DEVNULL)

    # -- looking at it from the host ----------------------------------------------------------

    def pid(self, daemon):
        """0 in the moment between two of them."""
        return int(pathlib.Path(self.dir, "run", daemon + ".pid").read_text() or 0)

    def signal(self, daemon, number):
        """Nobody is there to be told between two of them; to pid 0 it would be this suite. Its pid."""
        pid = self.pid(daemon)
        if pid > 1:
            os.kill(pid, number)
        return pid

    def kill(self, *daemons):
        for pid in [self.pid(d) for d in daemons]:
            assert pid > 1
            os.kill(pid, signal.SIGKILL)

    def tidy(self):
        """After a test that failed: the next one finds no sandbox of it."""
        try:
            self.wait_healthy()
            for b in self.api.sandboxes():
                self.api.delete(b["id"])
        except Exception:  # noqa: BLE001 - it was a failure already
            pass

    def healthy(self):
        try:
            return Api(self.port, None, 5).request("GET", "/v1/health")[0] == 200
        except (OSError, ValueError):
            return False

    def wait_healthy(self):
        wait_until(self.healthy, 40, "the server healthy again")

    def allocation(self, ident):
        """Name of the sandbox's allocation on the host."""
        found = [n for n in os.listdir(self.dir + "/node/alloc") if n.startswith(ident + ".")]
        assert len(found) == 1, found
        return found[0]

    def init_pid(self, ident):
        return int(pathlib.Path(self.dir, "node/alloc", self.allocation(ident), "pid").read_text())

    def instance(self):
        return leftovers.settings(self.dir + "/node.conf")["instance"]

    def cgroup_pids(self, ident):
        """Every host process in the sandbox's cgroup."""
        want = f"/berth.{self.instance()}/{self.allocation(ident)}"
        return [int(p) for p in os.listdir("/proc") if p.isdigit() and want in leftovers.read(f"/proc/{p}/cgroup")
                and not leftovers.Process(int(p)).dead]

    def init_runs(self, ident, pid):
        """The first process is still the same. The whole list is not compared: what served a command ends a moment after its answer."""
        return self.init_pid(ident) == pid and pid in self.cgroup_pids(ident)

    def deleted(self, ident):
        """What is told of it when it is gone: with divided times an attempt may be too short, and another follows."""
        return wait_until(lambda: (told := self.api.delete(ident))["state"] == "gone" and told, 60, "gone")

    # -- the command line ---------------------------------------------------------------------

    def berth(self, *args, stdin=b"", env=None, timeout=60):
        """(exit status, stdout, stderr) of the CLI."""
        r = subprocess.run([self.cli, *args], input=stdin, capture_output=True, timeout=timeout,
                           env={**os.environ, **self.env, **(env or {})})
        return r.returncode, r.stdout, r.stderr

    def box(self, **options):
        return Box(self, **options)


class Box:
    """A sandbox for the length of a `with`."""

    def __init__(self, server, **options):
        self.server, self.api = server, server.api
        self.id = self.api.create(**options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.api.delete(self.id)

    def exec(self, argv, **options):
        return self.api.exec(self.id, argv, **options)

    def sh(self, command, **options):
        """Standard output of a command that must succeed."""
        r = self.exec(command, **options)
        assert (r.kind, r.exit_code) == ("exited", 0), (command, dict(r))
        return r.out.decode()


def signal_all(pids, number):
    """To each that is still there: what a guest runs may end at any time."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def kill_checked(pid, still):
    """SIGKILL to exactly the process that was looked at."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if still():
            signal.pidfd_send_signal(fd, signal.SIGKILL)
    except OSError:
        pass
    finally:
        os.close(fd)
