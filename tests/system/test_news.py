"""What berth-node tells by itself: it may come late, and what ended may have left something behind."""
import os
import signal
import subprocess
import threading

from client import ApiError
from marks import only
from server import wait_until
from test_check import sql
from test_fence import Stopped
from test_node import SIZES, connect, image

SLEEP = ["sleep", "7777"]


def state(s, ident):
    return s.api.get("/v1/sandboxes/" + ident)["state"]


def join_groups(pid, of):
    """Into every cgroup of the other process."""
    for line in open(f"/proc/{of}/cgroup").read().split():
        controllers, path = line.split(":", 2)[1:]
        tops = [controllers.removeprefix("name=")] if controllers else ["unified", "."]
        for top in tops:
            procs = f"/sys/fs/cgroup/{top}{path}/cgroup.procs"
            if os.path.exists(procs):
                with open(procs, "w") as f:
                    f.write(str(pid))
                break


def test_old_news_do_not_end_a_sandbox_that_was_started_since(s):
    """berthd hears of the first life's end when the second is up."""
    with s.box() as box:
        node = connect(s)
        target = {"request": "t", "sandbox": box.id, "generation": 1}
        with Stopped(s.pid("berthd")):
            os.kill(s.init_pid(box.id), signal.SIGKILL)
            wait_until(lambda: node.call("observe", **target)["ended"], 30, "its end seen")
            node.call("stop", **target)
            node.call("create", **target, image=image(s, node), runtime=s.runtime, keep_disk=1, **SIZES)
            assert node.call("start", **target)["ready"]
        pid = s.init_pid(box.id)
        s.api.create(name="after-the-news")  # berthd is at work again
        assert box.sh("echo here") == "here\n"
        assert (state(s, box.id), s.init_pid(box.id)) == ("ready", pid)
        s.api.delete("after-the-news")


def left_over(s, ident):
    """A process that is in the sandbox's groups and not in its process tree, as an engine may leave one."""
    other = subprocess.Popen(SLEEP)
    join_groups(other.pid, s.init_pid(ident))
    assert other.pid in s.cgroup_pids(ident)
    return other


def test_who_left_a_process_behind_has_ended_all_the_same(s):
    with s.box() as box:
        other = left_over(s, box.id)
        os.kill(s.init_pid(box.id), signal.SIGKILL)
        wait_until(lambda: state(s, box.id) == "failed", 30, "told that it ended")
        assert other.wait(60) == -signal.SIGKILL


def test_an_end_nobody_saw_is_found_also_with_a_process_left_behind(s):
    with s.box() as box:
        other = left_over(s, box.id)
        node = s.pid("berth-node")
        with Stopped(node):
            os.kill(s.init_pid(box.id), signal.SIGKILL)
            os.kill(node, signal.SIGKILL)
        wait_until(lambda: state(s, box.id) == "failed", 30, "told that it ended")
        assert other.wait(60) == -signal.SIGKILL


@only("crun")
def test_what_comes_up_late_is_not_taken_for_a_later_generation(s):
    """While it is built, it is begun anew, as after this host was lost and is back: the record is of generation 2."""
    answers = []

    def create():
        try:
            answers.append(s.api.create(name="late"))
        except ApiError as e:
            answers.append(e)
    with Stopped(s.pid("berth-node")):
        t = threading.Thread(target=create)
        t.start()
        wait_until(lambda: [b["state"] for b in s.api.sandboxes()] == ["creating"], 30, "written")
        sql(s, "UPDATE sandbox SET generation = 2, version = version + 1")
    t.join()
    assert isinstance(answers[0], ApiError) and answers[0].status in (409, 503), answers
    wait_until(lambda: state(s, "late") == "ready", 60, "generation 2 up")
    ident = s.api.get("/v1/sandboxes/late")["id"]
    assert s.allocation(ident) == ident + ".2"
    assert s.api.exec("late", "echo hi").out == b"hi\n"
    s.api.delete("late")


def test_what_is_still_being_created_is_not_ready_yet(s):
    """A 503 that a client may wait for is told apart from all others by its reason."""
    with Stopped(s.pid("berth-node")):
        t = threading.Thread(target=s.api.create, kwargs={"name": "early"})
        t.start()
        wait_until(lambda: [b["state"] for b in s.api.sandboxes()] == ["creating"], 30, "written")
        try:
            s.api.exec("early", "true")
            raise AssertionError("a command ran in what is not there")
        except ApiError as e:
            assert (e.status, e.body["reason"]) == (503, "not_ready"), e.body
            assert "still being created" in e.body["message"], e.body
    t.join()
    s.api.delete("early")
