"""Every sandbox has a network of its own, and its one link leads to the router, where berth-egress listens."""
import array
import collections
import contextlib
import json
import os
import pathlib
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import time

import router
from marks import limit, only
from nodeproto import PRESENCE, Node
from router import inside
from server import wait_until

GATEWAY = "100.64.0.1"


def links(s):
    return set(router.links(s.dir))


def live(s):
    return router.live(s.dir)


def observe(s, ident):
    generation = s.api.get("/v1/sandboxes/" + ident)["generation"]
    return Node(s.dir + "/run/node.sock").call("observe", sandbox=ident, generation=generation)


def address(s, ident):
    return observe(s, ident)["address"]


def link_of(where):
    n = struct.unpack(">I", socket.inet_aton(where))[0] - struct.unpack(">I", socket.inet_aton(GATEWAY))[0] - 1
    return f"s{n}"


class Egress:
    """In berth-egress's place: takes the two sockets, and tells what comes."""

    def __init__(self, s):
        self.link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.link.connect(s.dir + "/run/egress.sock")
        self.link.settimeout(30)
        got = {}
        for _ in range(2):
            data, control, _, _ = self.link.recvmsg(64, socket.CMSG_SPACE(4))
            version, kind = struct.unpack(">II", data)
            assert version == 1
            got[kind] = socket.socket(fileno=array.array("i", control[0][2])[0])
        self.tcp, self.udp = got[1], got[2]

    def accept(self, who, seconds=30):
        """(connection, to) of the next one of theirs; those of earlier tests do not count."""
        end = time.monotonic() + seconds
        while select.select([self.tcp], [], [], max(0, end - time.monotonic()))[0]:
            c, peer = self.tcp.accept()
            c.setblocking(True)
            if peer[0] in who:
                return c, c.getsockname()
            c.close()
        return None

    def datagram(self, who, seconds=30):
        """(data, from, to) of the next one of theirs"""
        end = time.monotonic() + seconds
        while select.select([self.udp], [], [], max(0, end - time.monotonic()))[0]:
            data, control, _, peer = self.udp.recvmsg(2048, 256)
            port, ip = struct.unpack_from("!H4s", next(c for c in control if c[1] == 20)[2], 2)
            if peer[0] in who:
                return data, peer, (socket.inet_ntoa(ip), port)
        return None

    def answer(self, data, peer, speaker):
        info = struct.pack("I4s4s", 0, socket.inet_aton(speaker), bytes(4))
        self.udp.sendmsg([data], [(socket.IPPROTO_IP, 8, info)], 0, peer)

    def close(self):
        for x in (self.link, self.tcp, self.udp):
            x.close()


@contextlib.contextmanager
def egress(s):
    try:
        real = s.pid("berth-egress")
    except OSError:
        real = 0
    e = Egress(s)
    if real:
        os.kill(real, signal.SIGSTOP)  # it would take what is meant for us
    try:
        yield e
    finally:
        e.close()
        if real:
            os.kill(real, signal.SIGCONT)


def in_background(b, command):
    b.exec(f"({command}) >/dev/null 2>&1 &")


def test_a_sandbox_has_one_address_and_one_way_out(s):
    with s.box() as a, s.box() as b:
        mine, other = address(s, a.id), address(s, b.id)
        assert mine != other and mine.startswith("100.64."), (mine, other)
        assert re.findall(r"inet (100[\d.]+)", a.sh("ip addr")) == [mine]
        assert f"default via {GATEWAY}" in a.sh("ip route")
        assert "inet6 fe80" not in a.sh("ip addr")
        assert {(link_of(x), x) for x in (mine, other)} <= live(s)
        assert router.links(s.dir)[link_of(mine)] == s.allocation(a.id)


def test_whatever_it_says_ends_at_berth_egress_with_its_name_on_it(s):
    with egress(s) as e, s.box() as a, s.box() as b:
        mine, other = address(s, a.id), address(s, b.id)
        for to in [("203.0.113.7", 443), ("169.254.169.254", 80), ("10.0.0.1", 22), (other, 4444), (GATEWAY, 53)]:
            in_background(a, f"echo hello | nc -w 5 {to[0]} {to[1]}")
            c, wanted = e.accept([mine])
            assert wanted == to, (wanted, to)
            assert c.recv(100) == b"hello\n"
            c.close()
        in_background(a, "tftp -g -r x 198.51.100.1 443")
        data, _, to = e.datagram([mine])
        assert to == ("198.51.100.1", 443) and b"octet" in data, (to, data)


def test_an_answer_comes_from_whom_was_asked(s):
    with egress(s) as e, s.box() as a:
        in_background(a, "nslookup -type=a name.example 8.8.8.8 > /tmp/said 2>&1; echo $? > /tmp/done")
        data, peer, to = e.datagram([address(s, a.id)])
        assert to == ("8.8.8.8", 53), to
        record = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04" + socket.inet_aton("198.18.0.9")
        e.answer(data[:2] + b"\x81\x80" + data[4:6] + b"\x00\x01\x00\x00\x00\x00" + data[12:] + record, peer, to[0])
        wait_until(lambda: "198.18.0.9" in a.sh("cat /tmp/said"), 20, "the answer")


def restart_node(s):
    def is_back():
        try:
            return Node(s.dir + "/run/node.sock").call("capacity")
        except OSError:
            return False
    s.kill("berth-node")
    wait_until(is_back, 40, "berth-node back")
    s.wait_healthy()


def pid_in(s, ident):
    return s.cgroup_pids(ident)[0]


@only("crun")
def test_nobody_speaks_for_another(s):
    """With more power than any guest has: an administrator's, in the guest's own network."""
    say = "import socket,sys; u = socket.socket(2, 2); u.bind((sys.argv[1], 0)); u.sendto(b'x', ('9.9.9.9', 99))"
    with egress(s) as e, s.box() as a, s.box() as b:
        mine, other, foreign, pid = address(s, a.id), address(s, b.id), "100.64.99.99", pid_in(s, a.id)
        for source in (other, foreign):
            inside(pid, "ip", "addr", "add", source + "/32", "dev", "eth0")
            inside(pid, sys.executable, "-c", say, source)
        inside(pid, sys.executable, "-c", say, mine)
        assert e.datagram([mine, other, foreign])[1][0] == mine
        assert not e.datagram([other, foreign], 0.5)


@only("crun")
def test_a_flood_of_one_costs_only_itself(s):
    flood = ("import socket,time; u = socket.socket(2, 2); n, end = 0, time.monotonic() + 4\n"
             "while time.monotonic() < end: u.sendto(b'x', ('9.9.9.9', 53)); n += 1\nprint(n)")
    with egress(s) as e, s.box() as a, s.box() as b:
        noisy, quiet = address(s, a.id), address(s, b.id)
        began = time.monotonic()
        argv = ["nsenter", "-t", str(pid_in(s, a.id)), "-n", sys.executable, "-c", flood]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as p:
            in_background(b, "for i in 1 2 3 4 5 6; do nslookup -type=a name.example 8.8.8.8; done")
            came = {noisy: 0, quiet: 0}
            while p.poll() is None or came[quiet] == 0:
                got = e.datagram(came, 10)
                assert got, came
                came[got[1][0]] += 1
            sent = int(p.stdout.read())
        most = 400 + 200 * (time.monotonic() - began)
        assert came[noisy] <= most < sent / 2, (came, sent, most)


UNPRIVILEGED = "import os, socket, struct; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
SEGMENTS = UNPRIVILEGED + """
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(20):
    s.sendmsg([b'x' * 17 * 64], [(socket.IPPROTO_UDP, 103, struct.pack('H', 17))], 0, ('9.9.9.9', 53))
"""
ON_LINK = UNPRIVILEGED + """
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
there = struct.pack('I4s4s', socket.if_nametoindex('eth0'), bytes(4), bytes(4))
for i in range(25):
    s.sendmsg([b'x'], [(socket.IPPROTO_IP, 8, there)], socket.MSG_DONTROUTE, (f'172.30.0.{i + 1}', 9))
"""
CLAIM = """
import socket
s, mac = socket.socket(socket.AF_PACKET, socket.SOCK_RAW), bytes.fromhex('02be27000002')
s.bind(('eth0', 0x806))
for i in range(25):
    s.send(b'\\xff' * 6 + mac + b'\\x08\\x06\\0\\1\\x08\\0\\6\\4\\0\\1' + mac + socket.inet_aton(f'172.30.1.{i + 1}') + bytes(6)
           + socket.inet_aton('100.64.0.1'))
"""


def packets_from(s, link):
    shown = inside(router.holder(s.dir), "ip", "-j", "-s", "link", "show", "dev", link)
    return json.loads(shown)[0]["stats64"]["rx"]["packets"]


def neighbours(pid, link):
    """{address: state}, of unicast ones"""
    shown = json.loads(inside(pid, "ip", "-j", "neigh", "show", "nud", "all", "dev", link))
    return {n["dst"]: n["state"] for n in shown if not n["dst"].startswith("224.")}


@only("crun")
def test_a_packet_is_one_question_and_no_address_is_asked_for(s):
    """What the router counts is what arrives; and no entry of the host's table of neighbours stays that a guest made."""
    with s.box() as a:
        mine, pid = address(s, a.id), pid_in(s, a.id)
        before = packets_from(s, link_of(mine))
        inside(pid, sys.executable, "-c", SEGMENTS)
        assert packets_from(s, link_of(mine)) - before >= 20 * 64, "several datagrams in one packet"
        inside(pid, sys.executable, "-c", ON_LINK)
        found = neighbours(pid, "eth0")
        assert found.pop(GATEWAY) == ["PERMANENT"], found
        assert all(state == ["NOARP"] for state in found.values()), found  # the first to go where there is need
        inside(pid, sys.executable, "-c", CLAIM)
        found = neighbours(router.holder(s.dir), link_of(mine))
        assert found == {mine: ["PERMANENT"]}, found


@only("crun")
def test_a_flood_of_new_connections_costs_only_itself(s):
    flood = ("import socket,time; n, began = 0, time.monotonic()\n"
             "while time.monotonic() - began < 5 or n < 1500 + 300 * (time.monotonic() - began) and time.monotonic() - began < 40:\n"
             "    c = socket.socket(); c.setblocking(False); c.connect_ex(('9.9.9.9', 9)); n += 1; c.close()\n"
             "print(n)")
    with egress(s) as e, s.box() as a, s.box() as b:
        noisy, quiet, came = address(s, a.id), address(s, b.id), collections.Counter()
        began = time.monotonic()
        argv = ["nsenter", "-t", str(pid_in(s, a.id)), "-n", sys.executable, "-c", flood]
        sent = int(subprocess.run(argv, stdout=subprocess.PIPE, text=True).stdout)
        most = 1000 + 200 * (time.monotonic() - began)
        in_background(b, "nc -w 20 9.9.9.9 9")
        while came[quiet] == 0:
            assert select.select([e.tcp], [], [], 20)[0], (came, sent)
            c, peer = e.tcp.accept()
            came[peer[0]] += 1
            c.close()
        assert came[noisy] <= most < sent, (came, sent, most)


def test_one_that_ended_is_not_let_in_any_more(s):
    with s.box() as b:
        mine = address(s, b.id)
        assert (link_of(mine), mine) in live(s)
        s.api.call("POST", f"/v1/sandboxes/{b.id}/sleep")
        assert (link_of(mine), mine) not in live(s)
        assert b.sh("ip addr | grep -c ' 100.64.'") == "1\n"  # awake again
        assert address(s, b.id) == mine and (link_of(mine), mine) in live(s)
    assert (link_of(mine), mine) not in live(s) and link_of(mine) not in links(s)


def test_a_number_rests_before_it_is_another_s(s):
    seen = []
    for _ in range(6):
        with s.box() as b:
            seen.append(address(s, b.id))
    assert len(set(seen)) == len(seen), seen
    restart_node(s)
    with s.box() as b:
        assert address(s, b.id) not in seen


def test_the_receipt_names_the_link(s):
    ident = s.api.create()
    seen = observe(s, ident)
    assert PRESENCE[seen["link"]] == "present", seen
    link = link_of(seen["address"])
    assert link in links(s)
    assert s.api.delete(ident)["receipt"]["link"] == "absent"
    assert link not in links(s)


@only("crun")
def test_a_link_that_no_record_names_is_told_and_goes_with_its_sandbox(s):
    ident = s.api.create()
    name = s.allocation(ident)
    s.api.delete(ident)
    pid = router.holder(s.dir)
    for link, whose in (("s59998", name), ("s59999", "sb_c1_nobody.1")):
        inside(pid, "ip", "link", "add", link, "type", "veth", "peer", "name", "x" + link)
        inside(pid, "ip", "link", "set", link, "alias", whose)
    told = {f["what"]: (f["kind"], f["fact"]) for f in s.api.get("/v1/check")["findings"]}
    assert told[ident][0] == "ghost" and "link present" in told[ident][1], told
    assert told["sb_c1_nobody"][0] == "orphan", told
    s.berth("check", "--repair")
    wait_until(lambda: "s59998" not in links(s), 30, "the ghost's link gone")
    inside(pid, "ip", "link", "del", "s59999")


@limit(120)
def test_talk_goes_on_while_berth_node_dies_and_comes_back(s):
    with egress(s) as e, s.box() as b:
        holder, mine = router.holder(s.dir), address(s, b.id)
        in_background(b, "(echo one; sleep 5; echo two) | nc 203.0.113.7 80 > /tmp/heard")
        c, _ = e.accept([mine])
        assert c.recv(100) == b"one\n"
        restart_node(s)
        assert e.link.recv(10) == b""  # so that it knows
        assert router.holder(s.dir) == holder
        c.settimeout(30)
        assert c.recv(100) == b"two\n"
        c.sendall(b"three\n")
        wait_until(lambda: b.sh("cat /tmp/heard") == "three\n", 20, "the answer")
        c.close()
        assert address(s, b.id) == mine
        in_background(b, "echo four | nc -w 5 203.0.113.7 81")
        c, to = e.accept([mine])
        assert to[1] == 81
        c.close()


@limit(120)
@only("crun")
def test_the_router_is_held_again(s):
    """berth-router killed, and then berth-node: nobody is cut off."""
    with egress(s) as e, s.box() as b:
        first, mine = router.holder(s.dir), address(s, b.id)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: router.holder(s.dir) not in (0, first), 30, "another berth-router")
        held, root = router.holder(s.dir), os.readlink("/proc/self/ns/mnt")
        assert os.readlink(f"/proc/{held}/ns/mnt") == root, "it holds berth-node's mounts"
        restart_node(s)
        assert router.holder(s.dir) == held and (link_of(mine), mine) in live(s)
        in_background(b, "echo still | nc -w 5 203.0.113.7 82")
        c, to = e.accept([mine])
        assert to[1] == 82 and c.recv(100) == b"still\n"
        c.close()


@limit(120)
@only("crun")
def test_a_router_that_cannot_start_is_tried_again(s):
    """Its lock cannot be opened for a while: that is logged, and another one comes up by itself afterwards."""
    lock, log = pathlib.Path(s.dir, "node/router"), pathlib.Path(s.dir, "log/berth-node.log")
    first, said = router.holder(s.dir), b"berth-router is not there, and is started again"
    before = log.read_bytes().count(said)
    lock.rename(lock.with_name("away"))
    lock.mkdir()
    try:
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: log.read_bytes().count(said) >= before + 2, 30, "two starts that failed")
    finally:
        lock.rmdir()
        lock.with_name("away").rename(lock)
    wait_until(lambda: router.holder(s.dir) not in (0, first), 30, "another berth-router")


@limit(120)
def test_what_was_made_ahead_goes_with_who_made_it(s):
    """Killed at any time, berth-node leaves no network that no record names."""
    wait_until(lambda: len(links(s)) >= 16, 30, "warm slots")
    before = links(s)
    restart_node(s)
    wait_until(lambda: not links(s) & before, 30, "the old ones gone")
    wait_until(lambda: len(links(s)) >= 16, 30, "new warm slots")
    time.sleep(0.5)
    assert len(links(s)) == 16 and not live(s), (links(s), live(s))
