"""Sleep: processes end, files stay, any use wakes it; by itself when nobody uses it, unless it is kept alive."""
import os
import pathlib
import signal
import time

from client import ApiError
from marks import limit, only
from server import leftovers, wait_until
from test_killed import delete_all

DIVISOR = 100
DEV_ENV = {"BERTH_TIMER_DIVISOR": str(DIVISOR)}
SMALL = {"image": "base", "memory_mb": 64, "disk_mb": 64}


def post(s, ident, verb):
    return s.api.call("POST", f"/v1/sandboxes/{ident}/{verb}")


def make(s, **more):
    return s.api.call("POST", "/v1/sandboxes", {**SMALL, **more})["id"]


def state(s, ident):
    return s.api.get("/v1/sandboxes/" + ident)["state"]


def becomes(s, ident, want, seconds=30):
    wait_until(lambda: state(s, ident) == want, seconds, f"{ident} {want}")


def happened(s, ident):
    return [e["event"] for e in s.api.get(f"/v1/sandboxes/{ident}/events")["events"]]


@limit(120)
def test_cf_it_sleeps_keeps_its_files_and_wakes_when_used(s):
    box = make(s)
    s.api.exec(box, "echo kept > /root/f; sleep 1000 & trap '' TERM; sleep 1000 & true")
    pids = s.cgroup_pids(box)
    got = post(s, box, "sleep")
    assert got["state"] == "asleep" and got["id"] == box, got
    assert s.cgroup_pids(box) == [] and not [p for p in pids if os.path.exists(f"/proc/{p}/root/root/f")], pids
    assert post(s, box, "sleep")["state"] == "asleep"
    r = s.api.exec(box, "cat /root/f")
    assert (r.kind, r.out) == ("exited", b"kept\n"), dict(r)
    assert state(s, box) == "ready"
    assert s.api.get("/v1/sandboxes/" + box)["generation"] == 1
    post(s, box, "sleep")
    assert post(s, box, "wake")["state"] == "ready" and post(s, box, "wake")["state"] == "ready"
    post(s, box, "sleep")
    assert s.deleted(box)["receipt"]["disk"] == "absent"
    try:
        post(s, box, "wake")
    except ApiError as e:
        assert e.status == 404, e
    else:
        raise AssertionError("woke one that is gone")


@limit(120)
def test_a_command_that_a_sleep_ends_was_killed_and_its_own_signal_is_its_own(s):
    box = s.api.call("POST", "/v1/sandboxes", SMALL)["id"]
    works = [s.api.exec(box, "exec sleep 1000", background=True)["id"] for _ in range(2)]
    assert s.api.exec(box, "kill -15 $$").kind == "signalled"
    s.api.call("POST", f"/v1/sandboxes/{box}/sleep")
    for work in works:
        wait_until(lambda work=work: s.api.get(f"/v1/sandboxes/{box}/execs/{work}")["state"] == "ended", 30, "ended")
        r = s.api.get(f"/v1/sandboxes/{box}/execs/{work}")
        # With gVisor the sandbox may be gone before it is told, and signals have no order.
        seen = [("killed", 15)] if s.runtime == "crun" else [("killed", 15), ("signalled", 15), ("lost", 0)]
        assert (r["kind"], r["signal"]) in seen and r["exit_code"] is None, r
    s.api.delete(box)


def test_both_daemons_may_be_killed_while_it_sleeps(s):
    box = make(s)
    s.api.exec(box, "echo kept > /root/f")
    post(s, box, "sleep")
    s.kill("berth-node", "berthd")
    s.wait_healthy()
    assert state(s, box) == "asleep"
    assert s.api.exec(box, "cat /root/f").out == b"kept\n"
    s.api.delete(box)


@limit(120)
def test_sleep_and_wake_leave_no_open_file_in_berth_node(s):
    box = make(s)

    def files():
        there = f"/proc/{s.pid('berth-node')}/fd/"
        return [leftovers.link(there + n) for n in leftovers.names(there)]

    def cycle():
        post(s, box, "sleep")
        post(s, box, "wake")
        return len(files())
    # 16 slots are kept warm, and made in the background: 9 or more are no batch under way.
    wait_until(lambda: sum(f.startswith("net:") for f in files()) > 9, 60, "slots are warm")
    first = cycle()
    for _ in range(5):
        cycle()
    wait_until(lambda: len(files()) <= first + 1, 30, f"no more than {first} files")
    s.api.delete(box)


def test_many_who_wake_it_at_once_all_get_their_answer(s):
    from test_lifecycle import together
    box = make(s)
    post(s, box, "sleep")
    got = together(20, lambda i: s.api.exec(box, f"echo {i}").out)
    assert got == [f"{i}\n".encode() for i in range(20)], got
    assert happened(s, box).count("up") == 2, happened(s, box)
    s.api.delete(box)


@limit(120)
def test_one_whose_processes_died_can_be_woken(s):
    box = make(s)
    s.api.exec(box, "echo kept > /root/f")
    os.kill(s.init_pid(box), 9)
    becomes(s, box, "failed")
    try:
        s.api.exec(box, "true")
    except ApiError as e:
        assert e.status == 409, e
    assert post(s, box, "wake")["state"] == "ready"
    assert s.api.exec(box, "cat /root/f").out == b"kept\n"
    s.api.delete(box)


@limit(120)
@only("crun")
def test_w20_who_is_not_used_falls_asleep_and_who_is_busy_or_kept_alive_does_not(s):
    idle, kept, never = make(s, sleep_after_ms=1000), make(s, sleep_after_ms=1000, keep_alive=True), make(s)
    busy = make(s, sleep_after_ms=1000)
    r = s.api.exec(busy, "sleep 4; echo done")
    assert (r.kind, r.out) == ("exited", b"done\n"), dict(r)
    becomes(s, idle, "asleep")
    assert (state(s, kept), state(s, never)) == ("ready", "ready")
    becomes(s, busy, "asleep")
    s.kill("berthd")
    s.wait_healthy()
    time.sleep(1.5)
    assert state(s, kept) == "ready"  # also for the next berthd
    s.api.call("PATCH", "/v1/sandboxes/" + kept, {"keep_alive": False})
    becomes(s, kept, "asleep")
    delete_all(s)


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def holder(s, box):
    """The process of init that looks after the one command in it."""
    stats = {pid: leftovers.read(f"/proc/{pid}/stat")
             for pid in s.cgroup_pids(box) if "sleep" in leftovers.read(f"/proc/{pid}/cmdline")}
    parent = {pid: int(stat.rsplit(")", 1)[1].split()[1]) for pid, stat in stats.items() if stat}
    return next((p for p in parent.values() if p not in parent), None)


@limit(120)
@only("crun")
def test_a_command_ends_at_its_wall_time_and_who_cannot_even_do_that_is_stuck(s):
    # 10 min, divided: 6 s. And as long again until it is stuck: the usual minute would be 0.6 s of a busy machine.
    box = s.api.call("POST", "/v1/sandboxes", {**SMALL, "wall_ms": 600000, "grace_ms": 600000})["id"]
    r = s.api.exec(box, "sleep 1000")
    assert (r.kind, r["limit"]["name"], state(s, box)) == ("timed_out", "wall_ms", "ready"), dict(r)
    began = time.monotonic()
    work = s.api.exec(box, "sleep 1000", background=True)
    serves = wait_until(lambda: holder(s, box), 30, "it sleeps")
    os.kill(parent_of(serves), signal.SIGSTOP)  # pid 1, which only the host can stop: it would let the other go on
    os.kill(serves, signal.SIGSTOP)  # init's process for the command: nothing ends it in time
    r = s.api.get(f"/v1/sandboxes/{box}/execs/{work['id']}/wait?for=exit&timeout_ms=60000")["exec"]
    assert r["kind"] in ("lost", "killed", "signalled") and r["exit_code"] is None, r
    assert time.monotonic() - began > 20 * 60 / DIVISOR - 1
    becomes(s, box, "asleep")
    assert "stuck" in s.api.get("/v1/sandboxes/" + box)["reason"]
    s.api.delete(box)


def gone(s, box):
    return s.api.get("/v1/sandboxes/" + box)["state"] == "gone"


@limit(120)
@only("crun")
def test_who_was_given_a_lifetime_is_deleted_at_its_end_and_nobody_else(s):
    first = s.api.call("POST", "/v1/sandboxes", {**SMALL, "lifetime_ms": 3000})  # the answer tells: later it may be gone
    old, kept, plain = first["id"], make(s, lifetime_ms=3000, keep_alive=True), make(s)
    try:
        assert first["expires_at"] > first["created_at"], first
        assert s.api.get("/v1/sandboxes/" + plain)["expires_at"] == ""
        for box in (old, kept):
            wait_until(lambda box=box: gone(s, box), 60, "deleted at the end of its lifetime")
        assert s.api.get(f"/v1/sandboxes/{old}/receipt")["receipt"]["disk"] == "absent"
        assert state(s, plain) == "ready"
    finally:
        delete_all(s)


@limit(120)
@only("crun")
def test_a_lifetime_is_renewed_ended_and_taken_back(s):
    box = make(s, lifetime_ms=60000)
    try:
        first = s.api.get("/v1/sandboxes/" + box)["expires_at"]
        later = s.api.call("PATCH", "/v1/sandboxes/" + box, {"lifetime_ms": 600000})["expires_at"]
        assert later > first, (first, later)
        assert s.api.call("PATCH", "/v1/sandboxes/" + box, {"labels": {"a": "b"}})["expires_at"] == later
        assert s.api.call("PATCH", "/v1/sandboxes/" + box, {"lifetime_ms": 0})["expires_at"] == ""
        for wrong in (-1, 999, 10 ** 12):
            status, body, _ = s.api.request("PATCH", "/v1/sandboxes/" + box, {"lifetime_ms": wrong})
            assert status == 400 and "lifetime_ms" in body["message"], (wrong, status, body)
        s.api.call("PATCH", "/v1/sandboxes/" + box, {"lifetime_ms": 1000})
        wait_until(lambda: gone(s, box), 60, "deleted at the end of its lifetime")
    finally:
        delete_all(s)


@limit(120)
@only("crun")
def test_an_operator_may_give_a_lifetime_to_all_that_ask_for_none(s):
    from test_admission import settings
    settings(s, max_age_s=600)  # divided: 6 s
    try:
        old, kept, own = make(s), make(s, keep_alive=True), make(s, lifetime_ms=0)
        wait_until(lambda: gone(s, old), 60, "deleted for its age")
        assert (state(s, kept), state(s, own)) == ("ready", "ready")
    finally:
        delete_all(s)
        settings(s, max_age_s=None)
