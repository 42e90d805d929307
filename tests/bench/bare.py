"""The bare engine beside us: crun with the same configuration, in the same place.

Berth-node's mount namespace is where the pool and, on hybrid hosts, the last
v1 cgroup mount are; we go into a copy of it and back again before the end.
"""
import ctypes
import json
import os
import shutil
import socket
import subprocess

CLONE_NEWNS = 0x00020000
STAGE = "/mnt"  # as berth-node does: a place the guest's root can reach

libc = ctypes.CDLL(None, use_errno=True)


def set_namespace(fd):
    if libc.setns(fd, 0) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def spawn(argv, fds=()):
    """Start with nothing but what the measured thing needs; `fds` become 3, 4, ..."""
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    actions = [(os.POSIX_SPAWN_DUP2, null, i) for i in (0, 1)]
    actions += [(os.POSIX_SPAWN_DUP2, fd, 3 + i) for i, fd in enumerate(fds)]
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
    os.close(null)
    return pid


def run(argv, fds=()):
    pid = spawn(argv, fds)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 0:
        raise RuntimeError(f"{' '.join(argv)}: {status}")


class Bare:
    CRUN = shutil.which("crun")

    def __init__(self, server, box):
        """`box` is a sandbox of ours whose configuration and disk are copied."""
        self.server, self.running = server, []
        self.home = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        self.cwd = os.getcwd()
        theirs = os.open(f"/proc/{server.pid('berth-node')}/ns/mnt", os.O_RDONLY)
        set_namespace(theirs)
        os.close(theirs)
        if libc.unshare(CLONE_NEWNS) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        node = server.dir + "/node"
        with open(f"{node}/alloc/{box}.1/bundle/config.json") as f:
            self.config = json.load(f)
        self.rootfs = node + "/pool/bench-bare"
        subprocess.run(["btrfs", "subvolume", "snapshot", f"{node}/pool/sandboxes/{box}.1",
                        self.rootfs], check=True, stdout=subprocess.DEVNULL)
        self.own(self.config["linux"]["uidMappings"][0]["hostID"])
        self.root = server.base + "/bare"
        os.mkdir(self.root)
        self.stage()

    def stage(self):
        run(["/bin/mount", "--make-rprivate", "/"])
        run(["/bin/mount", "-t", "tmpfs", "-o", "mode=0711", "bench", STAGE])
        os.mkdir(STAGE + "/rootfs")
        run(["/bin/mount", "--bind", self.rootfs, STAGE + "/rootfs"])
        shutil.copy(self.server.build + "/src/init/berth-init", STAGE + "/init")

    def own(self, uid):
        """Ours has an id-mapped mount; a chown beforehand is the cheapest a bare one can have."""
        for top, dirs, files in os.walk(self.rootfs):
            for name in [".", *dirs, *files]:
                os.lchown(os.path.join(top, name), uid, uid)

    def bundle(self, name, args, **without):
        config = json.loads(json.dumps(self.config))
        config["process"]["args"] = args
        config.pop("annotations", None)  # the compiled filter is ours, not what crun users have
        for ns in config["linux"]["namespaces"]:  # its own network, made by crun: it has no slots
            ns.pop("path", None)
        for m in config["mounts"]:
            if m["destination"] == "/sys":
                m.update(type="sysfs", source="sysfs", options=["nosuid", "noexec", "nodev", "ro"])
        config["linux"]["cgroupsPath"] = f"/berth-bench.{os.getpid()}/{name}"
        if without.get("seccomp") is False:
            del config["linux"]["seccomp"]
        path = f"{self.root}/{name}.bundle"
        os.makedirs(path, exist_ok=True)
        with open(path + "/config.json", "w") as f:
            json.dump(config, f)
        return path

    def crun(self, *args):
        return [self.CRUN, "--root=" + self.root + "/state", *args]

    def once(self, path, name):
        run(self.crun("run", "--bundle=" + path, name))

    def start(self, name, args, path=None):
        """Detached; with the listening socket an init of ours expects."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{self.root}/{name}.sock")
        listener.listen()
        path = path or self.bundle(name, args)
        self.running.append(name)
        run(self.crun("run", "--detach", "--preserve-fds=1", "--bundle=" + path, name),
            [listener.fileno()])
        listener.close()

    def execute(self, name, *argv):
        run(self.crun("exec", name, *argv))

    def stop(self, name):
        run(self.crun("delete", "--force", name))
        self.running.remove(name)

    def close(self):
        for name in list(self.running):
            subprocess.run(self.crun("delete", "--force", name), stderr=subprocess.DEVNULL)
        for tree in os.listdir("/sys/fs/cgroup"):
            ours = f"/sys/fs/cgroup/{tree}/berth-bench.{os.getpid()}"
            for path, _, _ in os.walk(ours, topdown=False):
                os.rmdir(path)
        ours = f"/sys/fs/cgroup/berth-bench.{os.getpid()}"
        for path, _, _ in os.walk(ours, topdown=False):
            os.rmdir(path)
        run(["/bin/umount", "-R", STAGE])
        subprocess.run(["btrfs", "subvolume", "delete", self.rootfs], stdout=subprocess.DEVNULL)
        set_namespace(self.home)
        os.close(self.home)
        os.chdir(self.cwd)
