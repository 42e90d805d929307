"""berth-node by itself, as berthd would speak to it: no database, no HTTP."""
import os
import struct
import subprocess
import sys
import time

import nodeproto
from marks import limit, only
from nodeproto import PRESENCE, Node, NodeError
from server import leftovers, wait_until

SIZES = {"memory_bytes": 256 << 20, "disk_bytes": 512 << 20, "cpu_milli": 1000, "pids": 64}


def connect(s):
    """As the user the node expects."""
    me = os.geteuid()
    os.seteuid(65534)
    try:
        return Node(s.dir + "/run/node.sock")
    finally:
        os.seteuid(me)


def reached(s):
    try:
        return connect(s)
    except ConnectionRefusedError:
        return None


def image(s, node):
    (found,) = node.call("image", op=2)["parts"]
    return found["digest"]


def make(s, node, name, generation=1):
    target = {"request": "rq_test", "sandbox": name, "generation": generation}
    node.call("create", **target, image=image(s, node), runtime=s.runtime, **SIZES)
    node.call("start", **target)
    return target


def refused(call, *args, **more):
    try:
        raise AssertionError(f"not refused: {call(*args, **more)}")
    except NodeError as e:
        return str(e)


def test_from_create_to_destroy_it_says_what_the_host_sees(s):
    node = connect(s)
    target = {"request": "rq_1", "sandbox": "sb_n1", "generation": 1}
    seen = node.call("observe", **target)
    assert PRESENCE[seen["presence"]] == "absent", seen
    made = node.call("create", **target, image=image(s, node), runtime=s.runtime, **SIZES)
    assert PRESENCE[made["disk"]] == "present" and PRESENCE[made["process"]] == "absent", made
    up = node.call("start", **target)
    assert PRESENCE[up["process"]] == "present" and up["ready"] == 1, up
    end, out, err = nodeproto.run(node.call("connect", **target)["fd"], ["echo", "hi"])
    assert (end["kind"], end["code"], out, err) == ("exited", 0, b"hi\n", b""), (end, out, err)
    usage = node.call("usage", **target)
    assert usage["memory_bytes"] > 0 and usage["pids"] > 0, usage
    stopped = node.call("stop", **target, grace_ms=500)
    assert PRESENCE[stopped["process"]] == "absent" and PRESENCE[stopped["disk"]] == "present", stopped
    gone = node.call("destroy", **target)
    assert {PRESENCE[gone[k]] for k in ("presence", "process", "cgroup", "disk", "runtime", "link")} == {"absent"}, gone
    assert PRESENCE[node.call("destroy", **target)["presence"]] == "absent"  # again, the same


def test_verbs_can_be_repeated(s):
    node = connect(s)
    target = make(s, node, "sb_n2")
    node.call("start", **target)
    again = node.call("create", **target, image=image(s, node), runtime=s.runtime, **SIZES)
    assert PRESENCE[again["process"]] == "present", again
    node.call("destroy", **target)


@only("crun")
def test_what_a_killed_node_left_half_made_is_cleared_by_who_asks_again(s):
    node = connect(s)
    target = make(s, node, "sb_n2h")
    init = s.init_pid("sb_n2h")

    def half_made():
        """As if the engine had come up after berth-node's end: nobody wrote down that it said hello."""
        with open(f"{s.dir}/node/alloc/{s.allocation('sb_n2h')}/record", "r+b") as f:  # the version is last
            f.seek(-4, os.SEEK_END)
            f.write(bytes(4))
        old = s.pid("berth-node")
        s.kill("berth-node")
        wait_until(lambda: s.pid("berth-node") not in (0, old), 30, "berth-node again")
        return wait_until(lambda: reached(s), 30, "berth-node's socket")
    spec = {**target, "image": image(s, node), "runtime": s.runtime, **SIZES}
    node = half_made()
    made = node.call("create", **spec)
    assert (PRESENCE[made["disk"]], PRESENCE[made["process"]]) == ("present", "absent"), made
    assert leftovers.Process(init).dead  # `berth dev` reaps it in its time
    node.call("start", **target)
    node = half_made()
    init = s.init_pid("sb_n2h")
    kept = node.call("create", **spec, keep_disk=1)
    assert (PRESENCE[kept["disk"]], PRESENCE[kept["process"]]) == ("present", "absent"), kept
    assert leftovers.Process(init).dead
    assert node.call("start", **target)["ready"] == 1
    node.call("destroy", **target)


def test_a_stale_generation_is_refused_and_touches_nothing(s):
    node = connect(s)
    target = make(s, node, "sb_n3", generation=5)
    stale = {**target, "generation": 4}
    for verb in ("start", "connect", "stop", "usage"):
        assert "generation" in refused(node.call, verb, **stale), verb
    assert "generation" in refused(node.call, "create", **stale, image=image(s, node), runtime=s.runtime, **SIZES)
    try:
        node.call("destroy", **stale)
    except NodeError:
        pass
    assert node.call("observe", **target)["ready"] == 1
    node.call("destroy", **target)


def test_a_later_generation_takes_the_place_of_an_earlier_one(s):
    node = connect(s)
    old = make(s, node, "sb_n5", generation=2)
    old = make(s, node, "sb_n5", generation=3)
    node.send("destroy", **old)  # also while it is being destroyed
    new = make(s, connect(s), "sb_n5", generation=4)
    assert PRESENCE[node.call("observe", **old)["presence"]] == "absent"
    assert node.call("observe", **new)["ready"] == 1
    assert "generation" in refused(node.call, "create", **old, image=image(s, node), runtime=s.runtime, **SIZES)
    node.call("destroy", **new)


def test_who_saw_an_earlier_life_end_does_not_stop_this_one(s):
    node = connect(s)
    target = make(s, node, "sb_n4")
    first = node.call("stop", **target)
    assert first["ended"] == 1 and first["life"] > 0, first
    node.call("create", **target, image=image(s, node), runtime=s.runtime, keep_disk=1, **SIZES)
    second = node.call("start", **target)
    assert second["life"] > first["life"] and not second["ended"], (first, second)
    assert "again" in refused(node.call, "stop", **target, life=first["life"])
    assert node.call("observe", **target)["ready"] == 1
    assert PRESENCE[node.call("stop", **target, life=second["life"])["process"]] == "absent"
    node.call("destroy", **target)


def test_nonsense_is_refused_and_harms_nobody(s):
    node = connect(s)
    digest = image(s, node)
    for name in ("", "../x", "a/b", "a.b", "A", "x" * 63 + "/", "_x"):
        refused(node.call, "create", request="r", sandbox=name, generation=1, image=digest, runtime=s.runtime, **SIZES)
    refused(node.call, "create", request="r", sandbox="sb_x", generation=0, image=digest, runtime=s.runtime, **SIZES)
    refused(node.call, "create", request="r", sandbox="sb_x", generation=1, image="sha256:" + "0" * 64,
            runtime=s.runtime, **SIZES)
    refused(node.call, "create", request="r", sandbox="sb_x", generation=1, image="../../etc", runtime=s.runtime, **SIZES)
    refused(node.call, "create", request="r", sandbox="sb_x", generation=1, image=digest, runtime="sh", **SIZES)
    for packet in (b"", b"\0", b"\1\2", struct.pack(">BBBQ", nodeproto.VERSION, 99, 0, 1), struct.pack(">BBBQ", 9, 2, 0, 1),
                   struct.pack(">BBBQ", nodeproto.VERSION, 2, 0, 1) + b"\xff" * 500, struct.pack(">BBBQ", nodeproto.VERSION, 2, 2, 1), os.urandom(3000)):
        with connect(s).sock as sock:
            sock.send(packet)
            sock.settimeout(2)
            try:
                sock.recv(65536)
            except OSError:
                pass
    assert node.call("capacity")["sandboxes"] == 0
    assert not [f for f in s.leftovers() if f["kind"] == "record"], s.leftovers()


@limit(90)
def test_after_kill_9_the_inventory_has_what_runs(s):
    node = connect(s)
    targets = [make(s, node, f"sb_k{i}") for i in range(3)]
    old = s.pid("berth-node")
    s.kill("berth-node")
    wait_until(lambda: s.pid("berth-node") not in (old, 0) and s.healthy(), 30, "berth-node again")
    node = connect(s)
    found = {o["sandbox"]: o for o in node.call("inventory")["parts"]}
    # berthd has no records of these and may already be removing them: what is listed must be true.
    for t in targets:
        if t["sandbox"] in found:
            assert found[t["sandbox"]]["generation"] == 1
            assert PRESENCE[found[t["sandbox"]]["process"]] in ("present", "absent")
    for t in targets:
        gone = node.call("destroy", **t)
        assert PRESENCE[gone["presence"]] == "absent", gone
    assert not [f for f in s.leftovers() if f["kind"] in ("record", "subvolume")], s.leftovers()


@only("crun")
def test_a_second_one_on_the_same_directory_is_refused_and_harms_nothing(s):
    with s.box() as b:
        b.sh("echo kept > /root/f; sleep 1000 >/dev/null 2>&1 &")
        sleeper = wait_until(lambda: [p for p in s.cgroup_pids(b.id) if leftovers.read(f"/proc/{p}/cmdline") == "sleep\0001000\0"], 30, "it sleeps")
        pid, before = s.pid("berth-node"), {s.init_pid(b.id), *sleeper}
        r = subprocess.run([s.build / "src/node/berth-node", "--config", s.dir + "/node.conf"], capture_output=True, text=True, timeout=30)
        assert r.returncode != 0 and f"another berth-node uses {s.dir}/node" in r.stderr and "Stop that one" in r.stderr, r
        assert s.pid("berth-node") == pid and os.path.exists(f"/proc/{pid}"), "the first one is still the one"
        assert before <= set(s.cgroup_pids(b.id)), "what ran runs"
        assert b.sh("cat /root/f") == "kept\n"
        s.api.delete(s.api.create())
        assert connect(s).call("capacity")["sandboxes"] >= 1, "its socket is the first one's"


@only("crun")
@limit(120)
def test_a_long_inventory_is_whole_and_holds_up_nobody(s):
    """Engines' records, as of sandboxes of which nothing else is known."""
    records, names = s.dir + "/node/engine/crun", [f"sb_c1_{i:020d}" for i in range(1000)]
    os.makedirs(records, exist_ok=True)
    lister, other = connect(s), connect(s)

    def holds_up_nobody():
        began, waits = time.monotonic(), []
        asked = lister.send("inventory", request="r")
        first = lister.receive()
        assert first[0] == asked and first[2] == 1, first
        for _ in range(50):
            sent = time.monotonic()
            other.call("capacity")
            waits.append(time.monotonic() - sent)
        found = {first[3]["sandbox"]}
        while (message := lister.receive())[2] == 1:
            found.add(message[3]["sandbox"])
        took = time.monotonic() - began
        print(f"      {len(names)} listed in {took * 1000:.0f} ms; another call waited {max(waits) * 1000:.1f} ms at most",
              flush=True)
        assert message[2] == 2 and found >= set(names), (message, len(found))
        return max(waits) < took / 2
    try:
        for name in names:
            os.mkdir(f"{records}/{name}.1")
        tries = [holds_up_nobody() for _ in range(5)]
        assert sum(tries) >= 3, tries  # a machine that stands still for a moment fails one of them
    finally:
        for name in names:
            try:
                os.rmdir(f"{records}/{name}.1")
            except FileNotFoundError:
                pass


def test_only_berthds_user_is_listened_to(s):
    script = ("import os, socket, sys\nos.setgid(12345); os.setuid(12345)\n"
              "k = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); k.settimeout(3)\n"
              "try:\n k.connect(sys.argv[1]); k.send(bytes.fromhex(sys.argv[2])); data = k.recv(100)\n"
              "except OSError as e:\n data = b''\nprint(len(data))")
    ask = (struct.pack(">BBBQ", nodeproto.VERSION, nodeproto.VERBS.index("capacity"), 0, 1) + b"\0\0").hex()
    out = subprocess.run([sys.executable, "-S", "-c", script, s.dir + "/run/node.sock", ask], capture_output=True,
                         text=True, timeout=20, env={})
    if out.returncode == 0:  # an interpreter in a private home cannot even be started by another user
        assert out.stdout.strip() == "0", out
    os.chmod(s.dir + "/run/node.sock", 0o777)  # even if the file were open to all
    out = subprocess.run([sys.executable, "-S", "-c", script, s.dir + "/run/node.sock", ask], capture_output=True,
                         text=True, timeout=20, env={})
    assert out.returncode == 0 and out.stdout.strip() == "0", out
    assert connect(s).call("capacity")["cpus"] > 0


def test_capacity_is_this_hosts(s):
    got = connect(s).call("capacity")
    assert got["cpus"] == os.cpu_count() and s.runtime in got["runtimes"].split(), got
    assert 0 < got["disk_available"] <= got["disk_total"] and got["memory_total"] > 0, got
