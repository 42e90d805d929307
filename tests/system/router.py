"""A server's router, looked at from the host (src/node/router.h)."""
import fcntl
import re
import struct
import subprocess


def holder(directory):
    """The process that holds it; 0 if there is none."""
    with open(directory + "/node/router", "r+b") as f:
        lock = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack("hhqqi", fcntl.fcntl(f, fcntl.F_GETLK, lock))
    return 0 if kind == fcntl.F_UNLCK else pid


def inside(pid, *argv):
    """Run it in that process's network."""
    return subprocess.run(["nsenter", "-t", str(pid), "-n", *argv], text=True, capture_output=True, check=True).stdout


def links(directory):
    """{link: whose it is, or None if nobody's yet}"""
    shown = inside(holder(directory), "ip", "-d", "link")
    found = (re.match(r"(s\d+)@", one) and (re.match(r"(s\d+)", one)[1], re.search(r"^    alias (\S+)", one, re.M))
             for one in re.split(r"^\d+: ", shown, flags=re.M))
    return {name: alias and alias[1] for name, alias in filter(None, found)}


def live(directory):
    """{(link, address)} of all that may speak."""
    shown = inside(holder(directory), "nft", "list", "set", "inet", "berth", "live")
    return set(re.findall(r'"(s\d+)" \. ([\d.]+)', shown))
