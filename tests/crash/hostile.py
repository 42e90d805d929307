"""Guests that work against their own end, and what the pool and the host look like before and after them.

Each runs as root in a box with small limits: what it takes is its own share, and the machine is safe from it.
"""
import fcntl
import os
import struct
import subprocess

from world import demand, leftovers, until

LIMITS = {"memory_mb": 64, "cpu_milli": 500, "pids": 64, "disk_mb": 32}
NESTING = "subvolume,subvolume-v2,subvolume-high-bits,snapshot,snapshot-v2"
NESTED_BYTES = 24 << 20
SLACK = 12 << 20     # what a pool's own trees may have grown by; less than any guest here wrote
AT_WORK_SECONDS = 30
SUBVOL_CREATE, SUBVOL_SETFLAGS, READ_ONLY = 0x5000940E, 0x4008941A, 2

# What is left running in the box, and ends with it alone. $1 and $2 are what serves the command that began it, and that
# command: pid 1 would end all of a command whose server stands still, but not what was left by one that came to its end.
STOP = ("while :; do for p in /proc/[0-9]*; do p=${p#/proc/}; "
        "[ $p = $$ ] || [ $p = $1 ] || [ $p = $2 ] || kill -STOP $p; done; done")
# An interactive shell goes on with its next line where a fork is refused: as soon as one is killed, there is another.
FORK = "trap \"\" TERM HUP INT; yes \"sleep 1000 &\" | sh -i"
FILL = ("i=0; while :; do dd if=/dev/zero of=/root/big.$i bs=64k; i=$((i+1)); mkdir -p /root/d$i/d/d/d; touch /root/d$i/f; "
        "done")


def ioctl_below(path, request, argument):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(fd, request, bytearray(argument))
    finally:
        os.close(fd)


def nest(disk):
    """Subvolumes in the disk, one below the other and read-only, as a hole in the filter would let a guest make them."""
    path = disk
    for name in ("one", "two"):
        ioctl_below(path, SUBVOL_CREATE, struct.pack("q4088s", 0, name.encode()))
        path += "/" + name
    with open(path + "/big", "wb") as f:
        f.write(os.urandom(NESTED_BYTES))
        f.flush()
        os.fsync(f.fileno())
    ioctl_below(path, SUBVOL_SETFLAGS, struct.pack("Q", READ_ONLY))


def tries_to_nest(api, ident):
    """Asked of the kernel by the guest itself: each way must be refused."""
    r = api.exec(ident, ["probe", "run", "only=" + NESTING])
    said = r.out.decode()
    demand("through" not in said, f"the guest nests subvolumes: {said}")
    demand(r.kind != "exited" or said.count("held") == NESTING.count(",") + 1, f"the guest did not try all of it: {said}")


def leave(api, ident, script):
    api.exec(ident, f"setsid sh -c '{script}' guest $PPID $$ </dev/null >/dev/null 2>&1 &")


class Look:
    """What of a box can be seen from the host."""

    def __init__(self, pids, disk):
        self.pids, self.disk = pids, disk

    def used(self):
        return sum(os.lstat(os.path.join(top, n)).st_blocks * 512 for top, _, names in os.walk(self.disk + "/root")
                   for n in names)


def begin_nesting(api, ident, look):
    tries_to_nest(api, ident)
    nest(look.disk)
    return lambda: os.path.exists(look.disk + "/one/two/big")


def begin_stopping(api, ident, look):
    leave(api, ident, STOP)
    # Pid 1 lets what serves a command go on again: that a process stands still would be seen for a moment only.
    return lambda: any("kill -STOP $p" in leftovers.read(f"/proc/{p}/cmdline") for p in look.pids())


def begin_forking(api, ident, look):
    leave(api, ident, FORK)
    return lambda: len(look.pids()) > LIMITS["pids"] // 2


def begin_filling(api, ident, look):
    leave(api, ident, FILL)
    return lambda: look.used() > (LIMITS["disk_mb"] << 20) // 2


GUESTS = {
    "nests": begin_nesting,
    "stops": begin_stopping,
    "forks": begin_forking,
    "fills": begin_filling,
}


def at_work(api, ident, names, look):
    """These guests in one box; returns when each can be seen from the host."""
    for name in names:
        seen = GUESTS[name](api, ident, look)
        demand(until(seen, AT_WORK_SECONDS), f"the guest that {name} is not at work in {ident}")


class Pool:
    """A pool as it was; what it was made of must be all there is of it afterwards."""

    def __init__(self, root):
        self.root = root  # a function: the mount is berth-node's own, and another's when that was started again
        self.subvolumes, self.used = self.look()

    def look(self):
        def btrfs(*words):
            return subprocess.run(["btrfs", *words, self.root()], capture_output=True, text=True, check=True).stdout
        btrfs("filesystem", "sync")  # blocks of removed subvolumes are given back after a commit, not before
        have = os.statvfs(self.root())
        subvolumes = {line.split(" path ")[1] for line in btrfs("subvolume", "list").splitlines()}
        return subvolumes, (have.f_blocks - have.f_bfree) * have.f_frsize

    def more(self):
        """What there is now and was not: nothing, or a sentence."""
        try:
            subvolumes, used = self.look()
        except (OSError, subprocess.CalledProcessError) as why:
            return f"the pool cannot be looked at: {why}"
        if subvolumes - self.subvolumes:
            return f"the pool has subvolumes of no sandbox: {sorted(subvolumes - self.subvolumes)}"
        if used > self.used + SLACK:
            return f"the pool holds {(used - self.used) >> 20} MiB more than before"
        return None

    def as_before(self):
        demand(until(lambda: not self.more(), every=0.2), self.more())
