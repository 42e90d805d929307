"""Wrappers: an agent's process tree under a durable lease; at most one of a name alive, and its end proven."""
import glob
import json
import pathlib
import time

from client import ApiError
from marks import limit, only
from server import wait_until
from test_check import sql
from test_lifecycle import together

DIVISOR = 50  # with 100 a second of a machine that stands still is past most of the times
DEV_ENV = {"BERTH_TIMER_DIVISOR": str(DIVISOR)}
SLEEPER = {"command": "sleep 1000"}
TALKER = {"command": "while :; do echo .; sleep 0.5; done & exec sleep 1000"}  # one that is busy and never silent for long


def make(s, **more):
    return s.api.create(memory_mb=128, disk_mb=64, **more)


def put(s, box, body=SLEEPER, name="main"):
    return s.api.call("PUT", f"/v1/sandboxes/{box}/wrappers/{name}", body)


def get(s, box, name="main"):
    return s.api.get(f"/v1/sandboxes/{box}/wrappers/{name}")


def say(s, box, verb, w, **more):
    body = {"instance": w["instance"], **more} if w else more
    return s.api.call("POST", f"/v1/sandboxes/{box}/wrappers/main/{verb}", body)


def refused(call, status, reason):
    try:
        call()
    except ApiError as e:
        assert (e.status, e.body.get("reason")) == (status, reason), e
        return e.body
    raise AssertionError(f"not refused: {status} {reason}")


def becomes(s, box, **want):
    def there():
        w = get(s, box)
        return w if all(w[k] == v for k, v in want.items()) else None
    return wait_until(there, 30, f"wrapper {want}")


def stopped(s, box):
    """An answer of a stop: at once, or when its alarm has seen to it."""
    return becomes(s, box, state="none", alive="absent")


def late(s, box):
    """Why it was ended, as the receipt keeps it: the step and its limit."""
    r = stopped(s, box)["receipt"]
    return r["reason"], r["last_error"]


def sleeps(s, box):
    """Those that run: what was killed may not be waited for yet."""
    return s.api.exec(box, "ps -o args | grep -c '^[s]leep 1000'").out.split()


def sleeps_become(s, box, n):
    """A sleep is its shell before."""
    def are_there():
        (count,) = map(int, sleeps(s, box))
        assert count <= n, count
        return count == n
    wait_until(are_there, 30, f"{n} of them")


def exec_of(s, box, w):
    return s.api.get(f"/v1/sandboxes/{box}/execs/{w['exec']}")


def exec_ended(s, box, w):
    """The host may see it gone before init has told how it ended."""
    return wait_until(lambda: (x := exec_of(s, box, w))["state"] == "ended" and x, 30, "the record of its end")


def test_the_same_instance_is_given_again_and_shows_its_marks(s):
    box = make(s)
    status, w, _ = s.api.request("PUT", f"/v1/sandboxes/{box}/wrappers/main", SLEEPER)
    assert (status, w["state"], w["alive"], w["generation"]) == (201, "starting", "present", 1), w
    pid = exec_of(s, box, w)["pid"]
    env = s.api.exec(box, f"tr '\\0' '\\n' < /proc/{pid}/environ").out.decode().split("\n")
    assert f"BERTH_WRAPPER_INSTANCE={w['instance']}" in env and "BERTH_WRAPPER_GENERATION=1" in env, env
    status, again, _ = s.api.request("PUT", f"/v1/sandboxes/{box}/wrappers/main", SLEEPER)
    assert (status, again["instance"], again["exec"]) == (200, w["instance"], w["exec"]), again
    refused(lambda: put(s, box, {"command": "sleep 1001"}), 409, "another_command")
    other = put(s, box, SLEEPER, "other")
    assert other["instance"] != w["instance"] and other["alive"] == "present", other
    names = [x["name"] for x in s.api.get(f"/v1/sandboxes/{box}/wrappers")["wrappers"]]
    assert names == ["main", "other"], names
    s.api.delete(box)
    refused(lambda: get(s, box), 404, None)


@limit(120)
def test_many_who_ask_at_once_get_one(s):
    box = make(s)
    url = f"/v1/sandboxes/{box}/wrappers/main"
    got = together(20, lambda i: s.api.request("PUT", url, SLEEPER)[:2])
    assert sorted(status for status, _ in got) == [200] * 19 + [201], got
    assert len({w["instance"] for _, w in got}) == 1, got
    sleeps_become(s, box, 1)
    s.api.delete(box)


def test_work_keeps_it_and_failed_work_ends_it(s):
    box = make(s)
    w = put(s, box, TALKER)
    assert say(s, box, "accepted", w)["state"] == "busy"
    refused(lambda: say(s, box, "accepted", {"instance": "wi_other"}), 409, "another_instance")
    refused(lambda: say(s, box, "settled", {"instance": ""}, ok=False), 400, None)
    time.sleep(2)  # longer than any look at a busy one
    assert get(s, box)["state"] == "busy"
    assert say(s, box, "settled", w, ok=True)["state"] == "warm"
    again = put(s, box, TALKER)
    assert (again["state"], again["instance"]) == ("starting", w["instance"]), again
    say(s, box, "accepted", w)
    say(s, box, "settled", w, ok=False)
    gone = stopped(s, box)
    assert gone["receipt"]["instance"] == w["instance"] and exec_ended(s, box, w), gone
    assert put(s, box)["generation"] == 2
    s.api.delete(box)


TREE = ("trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 1000' & (sh -c 'sleep 1000 &' &) ; "
        "while :; do sleep 1000; done")


def test_a_stop_ends_the_whole_tree_and_proves_it(s):
    box = make(s)
    w = put(s, box, {"command": TREE})
    wait_until(lambda: sleeps(s, box) == [b"3"], 30, "the tree")
    s.api.call("DELETE", f"/v1/sandboxes/{box}/wrappers/main")
    gone = stopped(s, box)
    assert (gone["receipt"]["instance"], gone["receipt"]["generation"]) == (w["instance"], 1), gone
    assert sleeps(s, box) == [b"0"]
    status, again, _ = s.api.request("DELETE", f"/v1/sandboxes/{box}/wrappers/main")
    assert status in (200, 202) and stopped(s, box), again
    s.api.delete(box)


def test_what_it_leaves_when_it_ends_by_itself_is_ended_too(s):
    box = make(s)
    w = put(s, box, {"command": "setsid sleep 1000 & sleep 1000 & exit 3"})
    becomes(s, box, alive="absent")
    ended = exec_ended(s, box, w)
    assert (ended["kind"], ended["exit_code"]) == ("exited", 3), ended
    assert sleeps(s, box) == [b"0"]
    again = put(s, box, {"command": "sleep 1000"})
    assert again["generation"] == 2 and again["alive"] == "present", again
    s.api.delete(box)


@limit(120)
def test_every_state_has_its_end(s):
    box = make(s)
    w = put(s, box)
    assert say(s, box, "ready", w)["state"] == "ready"
    assert late(s, box) == ("idle-timeout", f"it was ready without work for {60000 // DIVISOR} ms")
    w = put(s, box)
    say(s, box, "settled", w, ok=True)
    assert stopped(s, box)["receipt"]["instance"] == w["instance"]  # kept warm for so long
    w = put(s, box)
    say(s, box, "accepted", w)
    s.api.call("POST", f"/v1/sandboxes/{box}/execs/{w['exec']}/kill", {})
    assert stopped(s, box)["receipt"]["generation"] == 3  # it was busy, and is seen gone
    w = put(s, box)
    assert late(s, box) == ("startup-failed", f"it was not ready after {600000 // DIVISOR} ms")
    assert stopped(s, box)["receipt"]["generation"] == 4
    s.api.delete(box)


def steps(s, box):
    """What happened to its leases, by the log."""
    lines = [json.loads(x) for x in pathlib.Path(s.dir, "log/berthd.log").read_text().splitlines() if x.startswith("{")]
    return [(x["wrapper"], x["event"]) for x in lines if x["msg"] == "wrapper moved" and x["sandbox"] == box]


@limit(120)
def test_a_stop_ends_its_instance_and_another_one_only_when_that_was_seen(s):
    """The attempt is at the instance that the lease names; one that it does not know is seen then, and the next is at all."""
    box = make(s)
    w, other = put(s, box), put(s, box, {"command": "while :; do echo here; sleep 0.1; done"}, "other")
    s.api.call("POST", f"/v1/sandboxes/{box}/wrappers/other/accepted", {"instance": other["instance"]})  # so no deadline ends it
    s.api.call("POST", f"/v1/sandboxes/{box}/exec", {"id": "wr.main.9.wi_foreign", "background": True, **SLEEPER})
    say(s, box, "stop", None)
    stopped(s, box)
    story = steps(s, box)
    assert story.count(("main", "begin")) >= 2 and ("other", "begin") not in story, story
    first, second = exec_ended(s, box, w), exec_ended(s, box, {"exec": "wr.main.9.wi_foreign"})
    assert first["ended_at"] < second["ended_at"], (first, second)
    now = get(s, box, "other")
    assert (now["instance"], now["alive"]) == (other["instance"], "present"), now
    s.api.delete(box)


def test_a_foreign_one_is_ended_before_another_starts(s):
    box = make(s)
    s.api.call("POST", f"/v1/sandboxes/{box}/exec", {"id": "wr.main.77.wi_foreign", "background": True, **SLEEPER})
    body = refused(lambda: put(s, box), 409, "cleanup_pending")
    assert body["retry_at"], body
    stopped(s, box)
    assert sleeps(s, box) == [b"0"]
    assert put(s, box)["generation"] == 78
    s.api.delete(box)


def test_a_command_that_cannot_start_leaves_no_lease(s):
    box = make(s)
    try:
        put(s, box, {"argv": ["/no/such/program"]})
    except ApiError as e:
        assert e.status == 404, e
    assert get(s, box)["state"] == "none"
    assert put(s, box)["generation"] == 2
    s.api.delete(box)


def test_a_lease_of_another_boot_is_void_at_once(s):
    """The machine is not started again here: the lease is made one of another boot."""
    box = make(s)
    w = put(s, box)
    say(s, box, "accepted", w)
    assert sql(s, "SELECT host <> '' AND length(boot_id) > 30 FROM wrapper").strip() == "t"
    sql(s, f"UPDATE wrapper SET boot_id = repeat('0', 32) WHERE sandbox_id = '{box}'")
    s.kill("berthd")
    s.wait_healthy()
    gone = becomes(s, box, state="none")
    assert gone["receipt"]["seen"] == "its host was started again since", gone
    assert (gone["receipt"]["instance"], gone["receipt"]["evidence"]) == (w["instance"], "host"), gone
    s.api.exec(box, f"kill -9 {exec_of(s, box, w)['pid']}")
    exec_ended(s, box, w)
    assert put(s, box)["generation"] == 2
    assert sql(s, "SELECT count(*) FROM wrapper WHERE boot_id <> repeat('0', 32)").strip() == "1"
    s.api.delete(box)


def test_a_sandbox_that_sleeps_proves_absence_and_sleeps_on(s):
    box = make(s)
    w = put(s, box)
    s.api.call("POST", f"/v1/sandboxes/{box}/sleep")
    assert get(s, box)["alive"] == "absent"
    gone = stopped(s, box)
    assert gone["receipt"]["seen"] == "its sandbox has no processes", gone
    assert s.api.get("/v1/sandboxes/" + box)["state"] == "asleep"
    again = put(s, box)
    assert again["generation"] == 2 and again["instance"] != w["instance"], again
    sleeps_become(s, box, 1)
    s.api.delete(box)


@limit(120)
def test_the_daemons_may_be_killed_meanwhile(s):
    box = make(s)
    w = put(s, box, TALKER)
    say(s, box, "accepted", w)
    s.kill("berthd")
    s.wait_healthy()
    again = put(s, box, TALKER)
    assert (again["instance"], again["state"]) == (w["instance"], "busy"), again
    sleeps_become(s, box, 1)
    s.kill("berth-node", "berthd")
    s.wait_healthy()
    assert get(s, box)["alive"] == "present"
    s.api.call("POST", f"/v1/sandboxes/{box}/wrappers/main/stop", {"reason": "user-interrupt"})
    stopped(s, box)
    s.api.delete(box)


LOST = "sleep 1000 & trap '' HUP; kill -9 $PPID; sleep 1000"


@only("crun")  # with gVisor the host sees no process of a guest
def test_of_one_that_was_lost_the_host_says_that_it_is_gone(s):
    box = make(s)
    w = put(s, box, {"command": LOST})
    becomes(s, box, alive="absent", evidence="host")
    again = put(s, box)
    assert again["generation"] == 2 and again["instance"] != w["instance"], again
    assert (again["alive"], again["evidence"]) == ("present", "host"), again
    sleeps_become(s, box, 1)
    s.api.delete(box)


@only("crun")
def test_a_guest_that_does_not_answer_cannot_keep_it(s):
    """Its supervisor inside is stopped: nothing inside can tell of it, or end it."""
    box = make(s)
    w = put(s, box, {"command": "kill -STOP $PPID; trap '' TERM; (setsid sleep 1000 &); while :; do sleep 1000; done"})
    wait_until(lambda: sleeps(s, box) == [b"2"], 30, "the tree")
    assert (get(s, box)["alive"], get(s, box)["evidence"]) == ("present", "host")
    s.api.call("DELETE", f"/v1/sandboxes/{box}/wrappers/main")
    receipt = stopped(s, box)["receipt"]
    assert (receipt["instance"], receipt["evidence"]) == (w["instance"], "host"), receipt
    assert sleeps(s, box) == [b"0"]
    assert put(s, box)["generation"] == 2
    s.api.delete(box)


def groups(s, box):
    """The cgroups of wrappers in this sandbox, and the number of processes in each."""
    found = glob.glob(f"/sys/fs/cgroup/**/{box.replace('-', '_')}.*/wr.*/cgroup.procs", recursive=True)
    return {p.split("/")[-2]: len(open(p).read().split()) for p in found}


@only("crun")
def test_its_cgroup_comes_and_goes_with_it(s):
    box = make(s)
    w = put(s, box, {"command": "(setsid sleep 1000 &); sleep 1000"})
    wait_until(lambda: groups(s, box).get(w["exec"], 0) >= 2, 30, f"its processes in {w['exec']}: {groups(s, box)}")
    out = s.api.exec(box, "find / -xdev -name cgroup.procs; grep cgroup /proc/mounts; "
                          "mount -t cgroup2 none /mnt 2>&1 && echo mounted").out
    assert b"cgroup.procs" not in out and b"mounted" not in out, out  # there is no way out of it
    s.api.call("DELETE", f"/v1/sandboxes/{box}/wrappers/main")
    stopped(s, box)
    wait_until(lambda: not groups(s, box), 30, f"no group left: {groups(s, box)}")
    again = put(s, box)
    assert list(groups(s, box)) == [again["exec"]]
    s.api.call("POST", f"/v1/sandboxes/{box}/sleep")
    assert not any(groups(s, box).values())
    s.api.call("POST", f"/v1/sandboxes/{box}/wake")
    assert not groups(s, box)
    last = put(s, box)
    assert list(groups(s, box)) == [last["exec"]]
    s.api.delete(box)
    wait_until(lambda: not groups(s, box), 30, f"none deleted: {groups(s, box)}")


def test_the_record_says_on_what_evidence(s):
    box = make(s)
    want = "host" if s.runtime == "crun" else "init"
    assert put(s, box)["evidence"] == want
    s.api.call("DELETE", f"/v1/sandboxes/{box}/wrappers/main")
    assert stopped(s, box)["receipt"]["evidence"] == want
    s.api.delete(box)


@limit(120)
@only("crun")
def test_one_without_a_cgroup_that_was_lost_is_unknown_until_its_sandbox_ends(s):
    box = make(s)
    s.api.call("POST", f"/v1/sandboxes/{box}/exec", {"id": "wr.main.1.wi_byhand", "background": True, "command": LOST})
    # pid 1 ends what it had started; but that is the guest's word, and no proof.
    wait_until(lambda: sleeps(s, box) == [b"0"], 30, "the end of what a killed one had started")
    wait_until(lambda: s.api.get(f"/v1/sandboxes/{box}/execs/wr.main.1.wi_byhand")["kind"] == "lost", 30, "lost")
    refused(lambda: put(s, box), 409, "cleanup_pending")
    assert (get(s, box)["alive"], get(s, box)["evidence"]) == ("unknown", "init")
    wait_until(lambda: get(s, box)["attempts"] > 1, 30, "attempts")
    s.api.call("POST", f"/v1/sandboxes/{box}/wrappers/main/stop", {})
    again = [x for x in open(f"{s.dir}/log/berthd.log") if "wrapper stop was asked for again" in x and box in x]
    assert again and "attempts" in again[-1] and "state" in again[-1], again
    refused(lambda: put(s, box), 409, "cleanup_pending")
    becomes(s, box, state="quarantined")
    assert [a["subject"] for a in alerts(s, box)] == ["main"], alerts(s, box)
    refused(lambda: put(s, box), 409, "cleanup_pending")
    s.api.call("POST", f"/v1/sandboxes/{box}/sleep")
    s.api.call("POST", f"/v1/sandboxes/{box}/wake")
    assert put(s, box)["generation"] == 2 and not alerts(s, box)
    s.api.delete(box)


def alerts(s, box):
    return [a for a in s.api.get("/v1/alerts")["alerts"] if (a["sandbox"], a["kind"]) == (box, "wrapper_quarantined")]


DAMAGE = {  # constraints, and what they keep out
    "state": ("state_check", "'redy'"),
    "stop_attempts": ("stop_attempts_check", "-1"),
    "instance": ("instance_check", "repeat('x', 100)"),
}


@limit(120)
@only("crun")
def test_a_lease_that_cannot_be_read_starts_nothing(s):
    for column, (constraint, value) in DAMAGE.items():
        box = make(s)
        put(s, box)
        sql(s, f"ALTER TABLE wrapper DROP CONSTRAINT IF EXISTS wrapper_{constraint}")
        sql(s, f"UPDATE wrapper SET {column} = {value} WHERE sandbox_id = '{box}'")
        refused(lambda: put(s, box), 409, "cleanup_pending")
        assert get(s, box)["state"] == "quarantined", column
        sleeps_become(s, box, 1)
        assert [a["subject"] for a in alerts(s, box)] == ["main"], (column, alerts(s, box))
        s.api.call("DELETE", f"/v1/sandboxes/{box}/wrappers/main")
        stopped(s, box)
        assert not alerts(s, box), column
        assert put(s, box)["generation"] == 2, column
        s.api.delete(box)


def test_work_whose_acceptance_was_not_written_is_not_killed(s):
    box = make(s)
    sql(s, "CREATE FUNCTION no_busy() RETURNS trigger LANGUAGE plpgsql AS "
           "$$ BEGIN RAISE EXCEPTION 'lost'; END $$")
    sql(s, "CREATE TRIGGER no_busy BEFORE UPDATE ON wrapper FOR EACH ROW WHEN (NEW.state = 'busy') "
           "EXECUTE FUNCTION no_busy()")
    try:
        for _ in range(10):
            w = put(s, box)
            say(s, box, "ready", w)  # and now it is ended soon, if it gets no work
            status, answer, _ = s.api.request("POST", f"/v1/sandboxes/{box}/wrappers/main/accepted", {"instance": w["instance"]})
            if status == 500:
                break
            stopped(s, box)  # it came after the deadline
        assert status == 500 and answer.get("reason") is None, answer
    finally:
        sql(s, "DROP FUNCTION no_busy() CASCADE")
    assert becomes(s, box, state="busy")["instance"] == w["instance"]
    assert say(s, box, "settled", w, ok=True)["state"] == "warm"
    s.api.delete(box)


def test_one_that_works_and_says_nothing_is_stopped(s):
    box = make(s)
    w = put(s, box, {"command": "while :; do echo .; sleep 0.2; done"})
    say(s, box, "accepted", w)
    pid = exec_of(s, box, w)["pid"]
    time.sleep(400 / DIVISOR)  # longer than it may be silent
    assert get(s, box)["state"] == "busy"
    s.api.exec(box, f"kill -STOP {pid}")
    wait_until(lambda: get(s, box)["reason"] == "unhealthy-wrapper" or get(s, box)["state"] == "none", 30, "stopped")
    assert stopped(s, box)["receipt"]["instance"] == w["instance"]
    s.api.delete(box)


