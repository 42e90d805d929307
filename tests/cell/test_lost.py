"""A host that is cut off: frozen in time, thawed in time, or killed and replaced; never two alive."""
import os
import pathlib
import time

import cell
from marks import limit
from server import wait_until

DIVISOR = 5  # a lease of 6 s, frozen 1 s before its end; taken over 2 s after it
MARGIN = 10 / DIVISOR
TICKING = "while :; do echo >> /root/ticks; sleep 0.05; done"
CELL = {"hosts": 3}


class Leased(cell.Cell):
    def settings_of(self, host):
        return {**super().settings_of(host), "timer_divisor": DIVISOR, "lease": "on"}


def make_cell(*args, **more):
    return Leased(*args, **more)


def group_file(h, name):
    for top in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        path = pathlib.Path(top, "berth." + h.instance, name)
        if path.exists():
            return path.read_text()
    return ""


def frozen(h):
    return "frozen 1" in group_file(h, "cgroup.events")


def kept_frozen(h):
    """Nothing has thawed it: the kernel says "frozen 0" of a group as soon as a process in it dies, and lets nothing run."""
    return group_file(h, "cgroup.freeze").strip() == "1"


def ticks(h, ident, generation):
    path = f"/proc/{h.node.pid}/root{h.dir}/node/pool/sandboxes/{ident}.{generation}/root/ticks"
    return os.path.getsize(path) if os.path.exists(path) else 0


def ticked(h, ident):
    """When it last wrote, by the clock of the lease: whoever looks from outside may be late."""
    return os.path.getmtime(f"/proc/{h.node.pid}/root{h.dir}/node/pool/sandboxes/{ident}.1/root/ticks")


def ticking(h, count=1):
    found = [h.api.create(host=h.name) for _ in range(count)]
    for ident in found:
        h.api.exec(ident, TICKING + " > /dev/null 2>&1 &")
        wait_until(lambda: ticks(h, ident, 1) > 2, 30, "ticks")
    return found


def row(c, name):
    """(epoch, lease end, lost at) by the database's clock, which is this machine's."""
    ((epoch, until, lost),) = c.primary.sql("SELECT epoch, extract(epoch FROM lease_until), coalesce(extract(epoch FROM "
                                            f"lost_at), 0) FROM host WHERE id = '{name}'")
    return int(epoch), float(until), float(lost)


class Watch:
    """Looks at every host's kernel until what is waited for is there. Two that run are a violation, and so is a frozen one that
    writes."""

    def __init__(self, c, ident):
        self.c, self.ident = c, ident
        self.stood = {}  # host -> ticks at the first look that found it frozen

    def stands(self, h):
        if h.name not in self.stood and frozen(h):
            self.stood[h.name] = ticks(h, self.ident, 1)
        written = ticks(h, self.ident, 1)
        if not kept_frozen(h):  # asked last: what was written before a thaw that was not seen yet is no violation
            self.stood.pop(h.name, None)
        if h.name not in self.stood:
            return False
        assert written in (0, self.stood[h.name]), f"{self.ident} writes on {h.name}, which is frozen"
        return True

    def running(self):
        return [h.name for h in self.c.hosts if not self.stands(h) and h.pids(self.ident)]

    def until(self, true, seconds, what):
        def look():
            alive = self.running()
            assert len(alive) < 2, f"{self.ident} is alive on {alive}"
            return true()
        wait_until(look, seconds, what)
        return time.time()


@limit(180)
def test_cut_off_for_a_moment_it_is_frozen_and_goes_on(c):
    h1 = c.hosts[0]
    (ident,) = ticking(h1)
    watch, pids, (epoch, _, _) = Watch(c, ident), h1.pids(ident), row(c, "h1")
    h1.cut_off()
    cut = time.time()
    at = watch.until(lambda: frozen(h1), 30, "frozen")
    _, end, _ = row(c, "h1")
    before, last = ticks(h1, ident, 1), ticked(h1, ident)
    h1.join()
    thawed = watch.until(lambda: not frozen(h1), 30, "thawed")
    wait_until(lambda: ticks(h1, ident, 1) > before, 30, "ticks again")
    print(f"      cut at 0, frozen at {at - cut:.2f} s, {end - at:.2f} s before its lease was over, thawed at "
          f"{thawed - cut:.2f} s")
    assert last < end and min(pids) in h1.pids(ident) and row(c, "h1")[0] == epoch
    assert [r for r in c.rows() if r[0] == ident] == [(ident, "h1", 1, "ready")]
    h1.wait_healthy()


@limit(240)
def test_cut_off_for_long_it_is_replaced_and_then_killed(c):
    h1 = c.hosts[0]
    boxes = ticking(h1, 2)
    ident = boxes[0]
    watch, (epoch, _, _) = Watch(c, ident), row(c, "h1")
    h1.cut_off()
    cut = time.time()
    at = watch.until(lambda: frozen(h1), 30, "frozen")
    _, end, _ = row(c, "h1")
    stood, last = ticks(h1, ident, 1), ticked(h1, ident)
    others = [h for h in c.hosts if h is not h1]
    anew = watch.until(lambda: any(h.pids(ident) for h in others), 60, "begun anew")
    _, _, lost = row(c, "h1")
    watch.until(lambda: all(r[3] == "ready" and r[1] != "h1" and r[2] == 2 for r in c.rows()), 60, "ready elsewhere")
    assert ticks(h1, ident, 1) == stood and frozen(h1) and h1.pids(ident)
    new = next(h for h in others if h.pids(ident))
    told = [e["event"] for e in new.api.get(f"/v1/sandboxes/{ident}/events")["events"]]
    assert "replaced" in told, told
    for b in boxes:
        assert others[0].api.exec(b, ["echo", "hi"]).out == b"hi\n"
    h1.join()
    back = time.time()
    killed = watch.until(lambda: not h1.pids(ident), 60, "killed on the host that came back")
    wait_until(lambda: row(c, "h1")[0] > epoch + 1, 60, "registered anew")
    h1.wait_healthy()
    wait_until(lambda: not h1.allocations(), 60, "nothing of it is left")
    assert {r[2:] for r in c.rows()} == {(2, "ready")}, c.rows()  # what died there is no news about these
    print(f"      cut at 0, frozen at {at - cut:.2f} s, lease over at {end - cut:.2f} s, taken at {lost - cut:.2f} s, "
          f"runs anew at {anew - cut:.2f} s; back at {back - cut:.2f} s, killed at {killed - cut:.2f} s")
    assert last < end and lost >= end + MARGIN and anew >= lost


@limit(120)
def test_a_database_clock_that_jumps_takes_no_host_that_lives(c):
    h1 = c.hosts[0]
    (ident,) = ticking(h1)
    epoch, _, _ = row(c, "h1")
    for _ in range(8):  # as if the clock had gone forward by an hour, and again
        c.primary.sql("UPDATE host SET lease_until = lease_until - interval '1 hour' WHERE id = 'h1'")
        time.sleep(1)
    wait_until(lambda: row(c, "h1")[1] > time.time(), 30, "renewed")
    assert row(c, "h1")[0] == epoch and [r for r in c.rows() if r[0] == ident] == [(ident, "h1", 1, "ready")]


@limit(240)
def test_what_was_being_deleted_on_a_lost_host_is_proven_gone_when_it_is_back(c):
    h1, h2 = c.hosts[:2]
    (ident,) = ticking(h1)
    h1.cut_off()
    wait_until(lambda: h2.api.request("DELETE", "/v1/sandboxes/" + ident)[0] == 202, 30, "taken, and not proven")
    wait_until(lambda: frozen(h1), 30, "frozen")
    wait_until(lambda: h2.api.get("/v1/hosts/h1")["state"] == "lost", 60, "taken over")
    time.sleep(1)
    assert [r for r in c.rows() if r[0] == ident] == [(ident, "h1", 1, "deleting")]  # nobody has seen it gone
    h1.join()
    wait_until(lambda: not c.rows(), 60, "gone")
    h1.wait_healthy()
    receipt = h2.api.get(f"/v1/sandboxes/{ident}/receipt")
    assert receipt["state"] == "gone" and receipt["receipt"]["process"] == "absent", receipt


@limit(240)
def test_a_host_that_was_removed_kills_what_it_has_when_it_comes_back(c):
    h1, h2 = c.hosts[:2]
    (ident,) = ticking(h1)
    status, body, _ = h2.api.request("DELETE", "/v1/hosts/h1")
    assert status == 409 and "not lost" in body["message"], body
    h1.cut_off()
    wait_until(lambda: h2.api.request("DELETE", "/v1/sandboxes/" + ident)[0] == 202, 30, "taken, and not proven")
    wait_until(lambda: frozen(h1), 30, "frozen")
    wait_until(lambda: h2.api.get("/v1/hosts/h1")["state"] == "lost", 60, "lost")
    for wish in ("", "?confirm=yes"):
        status, body, _ = h2.api.request("DELETE", "/v1/hosts/h1" + wish)
        assert status == 409 and "not seen to end" in body["message"] and "--powered-off" in body["remediation"], body
    wait_until(lambda: h2.api.request("DELETE", "/v1/hosts/h1?confirm=powered-off")[0] == 200, 60, "removed")
    receipt = h2.api.get(f"/v1/sandboxes/{ident}/receipt")
    assert receipt["receipt"]["process"] == "unknown" and receipt["receipt"]["removed_by"] == "first", receipt
    assert receipt["receipt"]["statement"] == "the host is powered-off" and receipt["receipt"]["removed_at"], receipt
    assert h1.pids(ident) and frozen(h1)
    h1.join()
    wait_until(lambda: not h1.pids(ident), 60, "killed")
    assert h2.api.get("/v1/hosts/h1")["state"] == "gone"
    h1.restart()  # begun again, with an empty house, it is a new host
    assert h2.api.get("/v1/hosts/h1")["state"] == "live"
