"""The database, restored from a backup that is older than the host: nothing is removed unasked, nothing is told that is not so."""
import os
import pathlib
import signal
import subprocess

from client import ApiError
from marks import limit
from server import wait_until
from test_check import check, kinds, sql

DEV_ENV = {"BERTH_TIMER_DIVISOR": "20"}
SLEEPER = {"command": "sleep 1000"}


def database(s):
    conf = pathlib.Path(s.dir, "berthd.conf").read_text()
    info = next(line.split("=", 1)[1].strip() for line in conf.split("\n") if line.startswith("database"))
    return info, next(word.split("=")[1] for word in info.split() if word.startswith("user="))


def run(s, *argv, **more):
    info, user = database(s)
    return subprocess.run([*argv, "-d", info], check=True, user=user, cwd="/", capture_output=True, **more).stdout


def dump(s):
    return run(s, "pg_dump", "-Fc")


def restore(s, backup):
    """As docs/restore.md says: berthd is down, berth-node and the sandboxes are not."""
    pid = s.pid("berthd")
    os.kill(pid, signal.SIGSTOP)  # `berth dev` would start another one at once
    sql(s, "CREATE TABLE later (sandbox_id text REFERENCES sandbox)")  # as of a migration that the dump does not know
    try:
        info, user = database(s)
        name = sql(s, "SELECT current_database()").strip()
        subprocess.run(["psql", "-q", "-d", info + " dbname=template1", "-c", f"DROP DATABASE {name} WITH (FORCE)",
                        "-c", f"CREATE DATABASE {name}"], check=True, user=user, cwd="/")
        run(s, "pg_restore", "--single-transaction", "--exit-on-error", input=backup)
    finally:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: s.pid("berthd") not in (0, pid), 60, "another berthd")
    s.wait_healthy()


def put(s, box):
    return s.api.call("PUT", f"/v1/sandboxes/{box}/wrappers/main", SLEEPER)


def sleeps(s, box):
    return s.api.exec(box, "pidof sleep | wc -w").out.strip()


def refused(call):
    try:
        raise AssertionError(call())
    except ApiError as e:
        return e


def end_wrapper(s, box):
    s.api.call("POST", f"/v1/sandboxes/{box}/wrappers/main/stop", {"reason": "user-interrupt"})
    wait_until(lambda: s.api.get(f"/v1/sandboxes/{box}/wrappers/main")["state"] == "none", 60, "the wrapper ended")


@limit(300)
def test_a_database_older_than_the_host(s):
    stays, asleep, gone, gone_asleep = (s.api.create(memory_mb=128, disk_mb=64) for _ in range(4))
    assert put(s, stays)["generation"] == 1
    for box in (asleep, gone_asleep):
        s.api.call("POST", f"/v1/sandboxes/{box}/sleep")
    s.api.exec(stays, "echo before > /root/file")
    backup = dump(s)

    s.api.exec(stays, "echo after > /root/file")
    for generation in (2, 3):
        end_wrapper(s, stays)
        assert put(s, stays)["generation"] == generation
    assert s.api.exec(asleep, "echo woken > /root/file").exit_code == 0
    for box in (gone, gone_asleep):
        s.deleted(box)
    new = s.api.create(memory_mb=128, disk_mb=64)
    s.api.exec(new, "echo new > /root/file")
    init = s.init_pid(new)

    restore(s, backup)
    # What was there before and still is can be used, with what was done to it since.
    assert s.api.exec(stays, "cat /root/file").out == b"after\n"
    # What was deleted since is told as lost: its files, too. It says so at the first look.
    for box in (gone, gone_asleep):
        wait_until(lambda: s.api.get("/v1/sandboxes/" + box)["state"] == "failed", 30, "the record says that it is lost")
        lost = s.api.get("/v1/sandboxes/" + box)["last_failure"]
        assert not lost["files_kept"] and lost["lost"] == "everything", lost
        assert "nothing of it was kept" in refused(lambda: s.api.exec(box, "true")).body["message"]
    # What slept then has no processes now, and all of its files.
    wait_until(lambda: not s.cgroup_pids(asleep), 60, "what should sleep does")
    assert s.api.exec(asleep, "cat /root/file").out == b"woken\n"
    # What was made since has no record: it is told, and left alone.
    answer = check(s, "--repair")[1]
    assert set(kinds(answer)) - {(stays, "unleased")} == {(new, "orphan")}, answer  # its lease may be at the wrapper already
    assert s.init_runs(new, init)
    assert refused(lambda: s.api.delete(new)).status == 404

    # A wrapper that the lease does not know is ended before another starts, and no generation comes twice.
    wait_until(lambda: s.api.request("PUT", f"/v1/sandboxes/{stays}/wrappers/main", SLEEPER)[0] == 201, 120, "a new wrapper")
    w = s.api.get(f"/v1/sandboxes/{stays}/wrappers/main")
    count = wait_until(lambda: (n := sleeps(s, stays)) != b"0" and n, 30, "it sleeps")  # it was a shell before
    assert w["generation"] == 4 and count == b"1", (w, count)

    # The ways out: what is lost is deleted with a receipt, what has no record is abandoned.
    for box in (gone, gone_asleep, stays, asleep):
        s.deleted(box)
    assert s.berth("check", "--abandon", new)[0] in (0, 1)  # 1: not in the first attempt
    wait_until(lambda: s.api.get("/v1/sandboxes/" + new)["state"] == "gone", 60, "abandoned")
    assert check(s)[0] == 0, check(s)
