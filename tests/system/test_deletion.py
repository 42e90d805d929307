"""A deletion that cannot be proven: tried at the decided times, then quarantined, and never forgotten."""
import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import signal
import struct
import threading
import time

from client import Api, ApiError
from marks import limit
from server import leftovers, wait_until

DIVISOR = 10  # an attempt has 4.5 s: of a busy machine, less would be none
DEV_ENV = {"BERTH_TIMER_DIVISOR": str(DIVISOR)}
BACKOFF = [s / DIVISOR for s in (5, 10, 30, 60, 120)]
FIRST_RECHECK, ATTEMPT_LIMIT = 600 / DIVISOR, 45 / DIVISOR
JITTER, SLACK = 1.2, 5  # berthd looks every 2 s / DIVISOR; the rest is a busy machine
SUBVOL_CREATE, SNAP_CREATE, SUBVOL_SETFLAGS, READ_ONLY = 0x5000940E, 0x50009401, 0x4008941A, 2
GETFLAGS, SETFLAGS, IMMUTABLE = 0x80086601, 0x40086602, 0x10


def disk(s, ident):
    """The sandbox's own subvolume, as berth-node sees it."""
    return f"/proc/{s.pid('berth-node')}/root{s.dir}/node/pool/sandboxes/{s.allocation(ident)}"


@contextlib.contextmanager
def opened(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def pin(s, ident, on):
    """Nothing removes a directory that is immutable. No guest can make one so."""
    with opened(disk(s, ident)) as fd:
        flags = bytearray(8)
        fcntl.ioctl(fd, GETFLAGS, flags)
        now = struct.unpack("q", flags)[0]
        fcntl.ioctl(fd, SETFLAGS, struct.pack("q", now | IMMUTABLE if on else now & ~IMMUTABLE))


def make_subvolume(path, name, of=None):
    """What a guest did by itself before there was a list of ioctl requests; now the host does it for the test."""
    with opened(path) as fd, opened(of or path) as source:
        fcntl.ioctl(fd, SNAP_CREATE if of else SUBVOL_CREATE, bytearray(struct.pack("q4088s", source, name.encode())))


def make_read_only(path):
    with opened(path) as fd:
        fcntl.ioctl(fd, SUBVOL_SETFLAGS, struct.pack("Q", READ_ONLY))


@contextlib.contextmanager
def held(s):
    """A sandbox whose disk cannot be removed."""
    ident = s.api.create()
    pin(s, ident, True)
    let_go = []

    def release():
        if not let_go:
            pin(s, ident, False)
            let_go.append(True)
    try:
        yield ident, release
    finally:
        release()
        wait_until(lambda: s.api.delete(ident)["state"] == "gone", 30, "gone when let go")


def test_a_disk_with_subvolumes_inside_is_deleted(s):
    """Nested, deeper than a path can be long, a snapshot of itself, read-only with others inside: all go, with a receipt."""
    ident = s.api.create()
    path = disk(s, ident)
    for name in ("one", "one/two", "one/two/three"):
        make_subvolume(os.path.dirname(f"{path}/{name}"), os.path.basename(name))
    pathlib.Path(path, "one/two/three/file").write_bytes(os.urandom(1 << 20))
    make_read_only(f"{path}/one/two")
    make_read_only(f"{path}/one")
    make_subvolume(path, "copy", of=path)
    here = os.open(path, os.O_RDONLY)
    for _ in range(40):
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    make_subvolume(f"/proc/self/fd/{here}", "deep")
    os.close(here)
    assert s.deleted(ident)["receipt"]
    assert "unknown" not in [e["event"] for e in events(s, ident)], events(s, ident)  # no attempt failed
    assert not os.path.exists(path)
    assert s.api.sandboxes() == []


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def events(s, ident):
    return s.api.get(f"/v1/sandboxes/{ident}/events")["events"]


def attempts(story):
    return [e for e in story if e["event"] in ("delete", "begin")]


def five_failed(story):
    return story[-1]["event"] == "unknown" and len(attempts(story)) == 5


def quarantined(s, ident):
    wait_until(lambda: events(s, ident)[-1]["event"] == "quarantined", 90, "quarantined")
    return events(s, ident)


def refused(call, *args):
    try:
        raise AssertionError(call(*args))
    except ApiError as e:
        assert (e.status, e.code) == (404, "not_found"), e
        return e.body["message"]


def alerts(s, ident):
    lines = [json.loads(x) for x in pathlib.Path(s.dir, "log/berthd.log").read_text().splitlines() if x.startswith("{")]
    return [x for x in lines if x["level"] == "error" and x["msg"] == "alert raised" and x["sandbox"] == ident]


def stored(s, ident, query=""):
    """The one alert of this sandbox that is stored."""
    (alert,) = [a for a in s.api.get("/v1/alerts" + query)["alerts"] if a["sandbox"] == ident]
    return alert


def check_ladder(story):
    """Six attempts, each with an id of its own, each so long after what the one before saw."""
    begun = attempts(story)
    assert [e["event"] for e in begun] == ["delete"] + ["begin"] * 5, story
    assert len({e["attempt"] for e in begun}) == 6, story
    for delay, (i, e) in zip(BACKOFF, [(i, e) for i, e in enumerate(story) if e["event"] == "begin"]):
        before = story[i - 1]
        assert before["event"] == "unknown" and "not proven gone yet" in before["reason"], story
        waited = when(e["at"]) - when(before["at"])
        assert delay - 0.005 <= waited <= delay * JITTER + SLACK, (delay, waited, story)
    assert story[-1]["event"] == "quarantined" and story[-1]["attempt"] == begun[-1]["attempt"], story


@limit(240)
def test_it_is_tried_six_times_and_then_quarantined_until_somebody_helps(s):
    with held(s) as (ident, release):
        first = s.api.delete(ident)
        assert (first["state"], first["attempts"], first["quarantined"]) == ("deleting", 1, False), first
        assert "not proven gone yet" in first["reason"] and first["next_attempt_at"], first
        for _ in range(10):
            assert s.api.delete(ident)["state"] == "deleting"  # and no sooner: check_ladder()
        wait_until(lambda: five_failed(events(s, ident)), 60, "five attempts failed")
        before = s.api.delete(ident)
        assert before["attempts"] == 5, before
        assert "tried next at " + before["next_attempt_at"] in refused(s.api.get, f"/v1/sandboxes/{ident}/receipt")
        old = s.pid("berthd")
        s.kill("berthd")
        wait_until(lambda: s.pid("berthd") not in (old, 0), 20, "berthd again")
        s.wait_healthy()
        after = s.api.delete(ident)
        in_time = time.time() < when(before["next_attempt_at"])  # a slow machine restarts into the sixth
        assert after == before or not in_time, f"neither a restart nor asking again changes when: {before} {after}"
        check_ladder(quarantined(s, ident))
        wait_until(lambda: alerts(s, ident), 30, "a line in the log")  # it follows what is written down
        assert [x["kind"] for x in alerts(s, ident)] == ["deletion_quarantined"]
        alert = stored(s, ident)
        assert (alert["level"], alert["kind"], alert["ended_at"]) == ("critical", "deletion_quarantined", ""), alert
        assert "not proven gone yet" in alert["message"], alert
        assert "quarantined" in refused(s.api.get, f"/v1/sandboxes/{ident}/receipt")
        again = s.api.delete(ident)
        assert again["quarantined"] and when(again["next_attempt_at"]) > when(before["next_attempt_at"]), again
        assert len(attempts(events(s, ident))) == 7, "by hand, one more and not six"
        release()
        gone = s.deleted(ident)
        assert gone["receipt"]["disk"] == "absent", gone
        assert s.api.get(f"/v1/sandboxes/{ident}/receipt") == gone
        assert not [a for a in s.api.get("/v1/alerts")["alerts"] if a["sandbox"] == ident], "it has ended"
        assert stored(s, ident, "?ended=1")["ended_at"] >= alert["raised_at"]
        story = events(s, ident)
        assert [e["seq"] for e in story] == list(range(1, len(story) + 1)), story
        assert [e["event"] for e in story[:3]] == ["create", "up", "delete"], story
        assert (story[-1]["event"], story[-1]["to"]) == ("removed", "gone"), story
    assert s.api.sandboxes() == []
    assert not [f for f in leftovers.find(dirs=[s.dir]) if ident in f["what"]]


@limit(300)
def test_what_is_quarantined_is_looked_at_and_not_touched(s):
    with held(s) as (ident, release):
        s.api.delete(ident)
        story = quarantined(s, ident)
        release()
        wait_until(lambda: events(s, ident)[-1]["event"] == "present", FIRST_RECHECK * JITTER + 10, "a look")
        look = events(s, ident)[-2]
        assert look["event"] == "recheck", look
        waited = when(look["at"]) - when(story[-1]["at"])
        assert FIRST_RECHECK - 0.005 <= waited <= FIRST_RECHECK * JITTER + SLACK, waited
        assert s.allocation(ident)  # it could be removed by now, and is not
        s.deleted(ident)


@limit(120)
def test_an_answer_that_comes_too_late_does_not_count(s):
    ident = s.api.create()
    node, answer = s.pid("berth-node"), []
    os.kill(node, signal.SIGSTOP)
    try:
        t = threading.Thread(target=lambda: answer.append(s.api.delete(ident)))
        t.start()
        wait_until(lambda: events(s, ident)[-1]["event"] == "expired", ATTEMPT_LIMIT + 5, "given up")
    finally:
        os.kill(node, signal.SIGCONT)
    t.join()
    wait_until(lambda: events(s, ident)[-1]["to"] == "gone", 20, "a later attempt proves it")
    story = events(s, ident)
    begun, end = attempts(story), story[-1]
    assert len(begun) >= 2 and end["attempt"] == begun[-1]["attempt"] != begun[0]["attempt"], story
    assert answer[0]["state"] == "deleting", answer
    waited = when(story[3]["at"]) - when(begun[0]["at"])
    assert ATTEMPT_LIMIT - 0.005 <= waited <= ATTEMPT_LIMIT + SLACK, story
    s.deleted(ident)


def test_the_story_is_its_owners(s):
    key = s.api.call("POST", "/v1/keys", {"name": "reader", "role": "user"})
    other = Api(s.port, key["key"])
    with s.box() as b:
        assert [e["to"] for e in events(s, b.id)] == ["creating", "ready"]
        assert [e["seq"] for e in s.api.get(f"/v1/sandboxes/{b.id}/events?after=1")["events"]] == [2]
        assert "ready" in refused(s.api.get, f"/v1/sandboxes/{b.id}/receipt")
        for what in ("events", "receipt"):
            refused(other.get, f"/v1/sandboxes/{b.id}/{what}")
    for what in ("events", "receipt"):
        refused(other.get, f"/v1/sandboxes/{b.id}/{what}")
    s.deleted(b.id)
    story = [e["to"] for e in events(s, b.id)]
    assert story[:3] + story[-1:] == ["creating", "ready", "deleting", "gone"] and set(story[3:-1]) <= {"deleting"}, story
    s.api.call("DELETE", "/v1/keys/" + key["id"])
