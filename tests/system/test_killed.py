"""kill -9 of the daemons, at rest and at work: sandboxes go on, records and host agree."""
import os
import random
import signal
import threading
import time

from client import ApiError
from marks import limit
from server import leftovers, wait_until
from test_fence import group


def make(s, count):
    boxes, errors = [], []

    def one():
        try:
            boxes.append(s.api.create())
        except Exception as e:  # noqa: BLE001 - reported below
            errors.append(e)
    threads = [threading.Thread(target=one) for _ in range(count)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not errors, errors
    return boxes


def node_log(s):
    return "\n".join(open(f"{s.dir}/log/{d}.log").read()[-4000:] for d in ("berth-node", "berthd"))


def delete_all(s):
    """Every sandbox the API lists; a 202 is asked again."""
    def gone():
        try:
            left = s.api.sandboxes()
            for b in left:
                s.api.delete(b["id"])
            return not left
        except (ApiError, OSError):
            return False
    try:
        wait_until(gone, 40, "all sandboxes deleted")
    except AssertionError as e:
        raise AssertionError(f"{e}: {s.api.sandboxes()}\n{s.leftovers()}\n" + node_log(s))


def exec_again(s, ident, *argv, seconds=20):
    """Right after a restart a call may be refused; it must not lie and must work soon."""
    end = time.monotonic() + seconds
    while True:
        try:
            return s.api.exec(ident, *argv)
        except (ApiError, OSError) as e:
            if time.monotonic() > end or isinstance(e, ApiError) and e.status == 404:
                raise
            time.sleep(0.1)


def survive(s, *daemons):
    boxes = make(s, 10)
    for i, b in enumerate(boxes):
        assert s.api.exec(b, f"echo {i} > /root/n; nohup sleep 8888 >/dev/null 2>&1 &").kind == "exited"
    before = {b: s.init_pid(b) for b in boxes}
    old = [s.pid(d) for d in daemons]
    s.kill(*daemons)
    wait_until(lambda: all(s.pid(d) not in (o, 0) for d, o in zip(daemons, old)), 20, "restarted")
    s.wait_healthy()
    assert {b: s.init_pid(b) for b in boxes} == before
    for pid in before.values():
        os.kill(pid, 0)
    listed = {b["id"]: b["state"] for b in s.api.sandboxes()}
    assert listed == {b: "ready" for b in boxes}, listed
    for i, b in enumerate(boxes):
        r = exec_again(s, b, "cat /root/n")
        assert (r.kind, r.out) == ("exited", f"{i}\n".encode()), r
    for b in boxes:
        gone = s.api.delete(b)
        assert gone["state"] == "gone" and gone["receipt"]["process"] == "absent", gone
    assert s.api.sandboxes() == [] and host_is_empty(s), s.leftovers()


def host_is_empty(s):
    return not [f for f in s.leftovers() if f["kind"] in ("record", "engine record", "subvolume")
                or "/sb_" in f["what"] or f["kind"] == "process" and "/.berth/init" in f["what"]]


def test_ten_sandboxes_outlive_a_killed_berthd(s):
    survive(s, "berthd")


def test_ten_sandboxes_outlive_a_killed_berth_node(s):
    survive(s, "berth-node")


def test_ten_sandboxes_outlive_both_killed_at_once(s):
    survive(s, "berthd", "berth-node")


@limit(120)
def test_ten_sandboxes_outlive_a_killed_berth_dev(s):
    boxes = make(s, 10)
    before = {b: s.init_pid(b) for b in boxes}
    s.process.kill()
    s.process.wait()
    s.start()
    assert {b: s.init_pid(b) for b in boxes} == before
    assert {b["id"]: b["state"] for b in s.api.sandboxes()} == {b: "ready" for b in boxes}
    for b in boxes:
        assert exec_again(s, b, "echo here").out == b"here\n"
    delete_all(s)
    assert host_is_empty(s), s.leftovers()


@limit(60)
def test_a_command_under_way_when_berthd_dies_is_never_told_as_a_success(s):
    b = s.api.create()
    answer = []

    def run():
        try:
            answer.append(dict(s.api.exec(b, "echo up; sleep 60; echo done")))
        except (OSError, ApiError, ValueError) as e:
            answer.append(e)
        except Exception as e:  # noqa: BLE001 - http.client's own
            answer.append(e)
    t = threading.Thread(target=run)
    t.start()
    time.sleep(1)
    s.kill("berthd")
    t.join(20)
    assert answer and isinstance(answer[0], Exception), answer
    s.wait_healthy()
    assert exec_again(s, b, "echo here").out == b"here\n"
    delete_all(s)


def killed_during(s, victims, work, delay):
    """Ten of `work` at once, and a kill in the middle; what each was answered."""
    answers = []

    def one(i):
        try:
            answers.append((i, work(i)))
        except Exception as e:  # noqa: BLE001 - all kinds of broken connections
            answers.append((i, e))
    threads = [threading.Thread(target=one, args=(i,)) for i in range(10)]
    [t.start() for t in threads]
    time.sleep(delay)
    old = {v: s.pid(v) for v in victims}
    s.kill(*victims)
    [t.join() for t in threads]
    # Healthy may still be the answer of the moment before it is noticed.
    wait_until(lambda: all(s.pid(v) not in (old[v], 0) for v in victims), 20, "restarted")
    s.wait_healthy()
    return dict(answers)


def check_consistent(s, acknowledged):
    """All that was acknowledged works; all that is listed is usable or deletable; then nothing is left."""
    for b in acknowledged:
        assert exec_again(s, b, "echo ok").out == b"ok\n"
    for b in s.api.sandboxes():
        if b["state"] == "ready":
            assert exec_again(s, b["id"], "echo ok").out == b"ok\n", b
    delete_all(s)
    wait_until(lambda: host_is_empty(s), 10, "host is empty")


@limit(240)
def test_creates_cut_by_a_killed_berth_node_leave_records_and_host_in_agreement(s):
    rng = random.Random(1)
    for _ in range(4 if s.runtime == "crun" else 2):
        answers = killed_during(s, ["berth-node"], lambda i: s.api.create(), rng.uniform(0.0, 0.25))
        check_consistent(s, [a for a in answers.values() if isinstance(a, str)])


@limit(240)
def test_creates_cut_by_a_killed_berthd_leave_records_and_host_in_agreement(s):
    rng = random.Random(2)
    for _ in range(3 if s.runtime == "crun" else 2):
        answers = killed_during(s, ["berthd"], lambda i: s.api.create(), rng.uniform(0.0, 0.25))
        check_consistent(s, [a for a in answers.values() if isinstance(a, str)])


@limit(240)
def test_creates_cut_by_both_killed_leave_records_and_host_in_agreement(s):
    rng = random.Random(3)
    for _ in range(3 if s.runtime == "crun" else 2):
        answers = killed_during(s, ["berth-node", "berthd"], lambda i: s.api.create(), rng.uniform(0.0, 0.25))
        check_consistent(s, [a for a in answers.values() if isinstance(a, str)])


@limit(180)
def test_deletes_cut_by_a_killed_berth_node_end_with_nothing_left(s):
    rng = random.Random(4)
    for _ in range(2):
        boxes = make(s, 10)
        killed_during(s, ["berth-node"], lambda i: s.api.delete(boxes[i]), rng.uniform(0.0, 0.1))
        delete_all(s)
        for b in boxes:
            assert s.api.delete(b)["receipt"]["disk"] == "absent"
        wait_until(lambda: host_is_empty(s), 10, "host is empty")


def test_a_killed_postgres_comes_back_and_nothing_is_lost(s):
    b, old = s.api.create(), s.pid("postgres")
    s.kill("postgres")
    wait_until(lambda: s.pid("postgres") not in (old, 0), 30, "another postgres")  # its processes answer for a moment

    def works():
        try:
            return s.api.get("/v1/sandboxes/" + b)["state"] == "ready"
        except (ApiError, OSError):
            return False
    wait_until(works, 30, "the record is readable again")
    assert exec_again(s, b, "echo here").out == b"here\n"
    delete_all(s)
    s.wait_healthy()


@limit(120)
def test_a_node_killed_while_what_it_starts_is_frozen_is_followed_by_the_next(s):
    def launching():
        return [d for d in group(s).glob("*.launch") if leftovers.read(str(d / "cgroup.procs"))]
    def begun():
        return leftovers.read(s.dir + "/log/berth-node.log").count('"msg":"berth-node is ready"')
    s.api.delete(s.api.create())  # so that there is a cgroup to freeze
    old, times = s.pid("berth-node"), begun()
    (group(s) / "cgroup.freeze").write_text("1")  # as the fence does
    try:
        t = threading.Thread(target=lambda: s.api.request("POST", "/v1/sandboxes", {"image": "base"}))
        t.start()
        wait_until(launching, 30, "an engine that is frozen as it begins")
        os.kill(old, signal.SIGKILL)
        wait_until(lambda: begun() > times, 20, "another berth-node")
    finally:
        (group(s) / "cgroup.freeze").write_text("0")
    t.join()
    delete_all(s)
