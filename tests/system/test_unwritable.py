"""A PostgreSQL that answers and takes no writes: told, nothing new is begun, what runs goes on and is written down later."""
import contextlib
import os
import signal
import threading
import time

from client import Api
from marks import limit, only
from server import wait_until
from test_check import sql
from test_journal import begin, wait_end


def log(s):
    with open(s.dir + "/log/berthd.log", errors="replace") as f:
        return f.read()


def health(s, key=None):
    return Api(s.port, key).request("GET", "/v1/health")[:2]


def critical(s, why):
    status, said = health(s)
    return (status, said["status"], said["database"]) == (503, "critical", "unwritable") and why in said["reason"]


def refused(s, why, method, path, body=None):
    status, said, _ = s.api.request(method, path, body)
    assert (status, said.get("reason")) == (503, "store_unwritable"), (status, said)
    assert why in said["message"] and "PostgreSQL" in said["remediation"], said


def refused_by_schema(s, method, path, body=None):
    status, said, _ = s.api.request(method, path, body)
    assert (status, said.get("reason")) == (503, "store_unwritable") and "schema 9000" in said["message"], (status, said)
    assert "Install" in said["remediation"], said


@contextlib.contextmanager
def read_only(s):
    sql(s, "ALTER SYSTEM SET default_transaction_read_only = on")
    sql(s, "SELECT pg_reload_conf()")
    try:
        wait_until(lambda: critical(s, "it is read-only"), 60, "told by health")
        yield
    finally:
        sql(s, "ALTER SYSTEM RESET default_transaction_read_only")
        sql(s, "SELECT pg_reload_conf()")


@limit(240)
@only("crun")
def test_a_read_only_database_is_told_and_nothing_is_begun_or_lost(s):
    dying = s.api.create()
    with s.box() as b:
        ident = begin(s, b.id, "sleep 12; echo end; exit 3")["id"]
        held = s.api.connect()  # a command whose answer is awaited all the time
        held.request("POST", f"/v1/sandboxes/{b.id}/exec", headers=s.api.headers(),
                     body='{"command": "sleep 15; echo told"}')
        with read_only(s):
            there = sorted(os.listdir(s.dir + "/node/alloc"))
            refused(s, "it is read-only", "POST", "/v1/sandboxes", {"image": "base"})
            refused(s, "it is read-only", "DELETE", f"/v1/sandboxes/{b.id}")
            refused(s, "it is read-only", "POST", f"/v1/sandboxes/{b.id}/sleep")
            os.kill(s.init_pid(b.id), 0)
            assert sorted(os.listdir(s.dir + "/node/alloc")) == there  # nothing was made, nothing removed
            os.kill(s.init_pid(dying), signal.SIGKILL)
            assert b"told" in held.getresponse().read()
            assert critical(s, "it is read-only")
        s.wait_healthy()
        end = wait_end(s, b.id, ident)
        assert (end["kind"], end["exit_code"]) == ("exited", 3), end
        wait_until(lambda: s.api.get("/v1/sandboxes/" + dying)["state"] == "failed", 60, "seen dead")
        with s.box() as c:
            assert c.sh("echo new") == "new\n"
    s.api.delete(dying)


@contextlib.contextmanager
def full_disk(s, events):
    """As PostgreSQL says it of a file that it cannot make longer, to the writes of one table only."""
    sql(s, f"""CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
        CREATE TRIGGER full_disk BEFORE {events} FOR EACH ROW EXECUTE FUNCTION full_disk()""")
    try:
        yield
    finally:
        sql(s, "DROP FUNCTION full_disk CASCADE")


@limit(180)
@only("crun")
def test_a_full_disk_is_told_before_anything_else_is_written(s):
    with full_disk(s, "UPDATE ON host"):
        wait_until(lambda: critical(s, "its disk is full"), 60, "told by health")
    s.wait_healthy()


@limit(240)
@only("crun")
def test_a_full_disk_that_only_some_writes_meet_is_told_too(s):
    """The probe's write still has room in its page; those to records of sandboxes do not."""
    dying = s.api.create()
    with s.box() as b:
        with full_disk(s, "INSERT OR UPDATE ON sandbox"):
            there = sorted(os.listdir(s.dir + "/node/alloc"))
            refused(s, "its disk is full", "POST", "/v1/sandboxes", {"image": "base"})
            assert critical(s, "its disk is full"), health(s)
            refused(s, "its disk is full", "DELETE", f"/v1/sandboxes/{b.id}")
            assert sorted(os.listdir(s.dir + "/node/alloc")) == there
            before = log(s).count("its disk is full")
            os.kill(s.init_pid(dying), signal.SIGKILL)
            wait_until(lambda: log(s).count("its disk is full") > before, 60, "its end could not be written down")
            before = log(s).count(dying)
            time.sleep(12)  # not looked at twice a second all the time, in vain
            assert log(s).count(dying) - before <= 6, log(s)[-4000:]
            assert b.sh("echo goes on") == "goes on\n"
        s.wait_healthy()
        wait_until(lambda: s.api.get("/v1/sandboxes/" + dying)["state"] == "failed", 60, "seen dead")
    s.api.delete(dying)


@limit(180)
@only("crun")
def test_a_lock_that_the_probe_waits_for_is_no_database_without_writes(s):
    held = threading.Thread(target=sql, args=(s, "BEGIN; LOCK TABLE host IN SHARE MODE; SELECT pg_sleep(20); COMMIT"))
    held.start()
    try:
        words = set()
        while held.is_alive():
            words.add(health(s)[1]["database"])
            time.sleep(0.2)
    finally:
        held.join()
    assert "unwritable" not in words and "nothing can be written down" not in log(s).split("takes writes again")[-1], words


@limit(180)
@only("crun")
def test_a_schema_that_a_newer_berthd_made_is_read_and_not_written_to(s):
    """The older one runs on, as in an upgrade host by host: it acts on nothing that it may misread."""
    later = "BEGIN; {}; NOTIFY berth_migrated; COMMIT"
    with s.box() as b:
        sql(s, later.format("INSERT INTO migration (number, name) VALUES (9000, '9000-later')"))
        try:
            wait_until(lambda: critical(s, "the database has schema 9000"), 60, "told by health")
            refused_by_schema(s, "POST", "/v1/sandboxes", {"image": "base"})
            refused_by_schema(s, "DELETE", f"/v1/sandboxes/{b.id}")
            assert b.sh("echo goes on") == "goes on\n" and s.api.get(f"/v1/sandboxes/{b.id}")["state"] == "ready"
        finally:
            sql(s, later.format("DELETE FROM migration WHERE number = 9000"))
        s.wait_healthy()
        with s.box() as c:
            assert c.sh("echo new") == "new\n"


def test_health_tells_disk_loops_and_clock(s):
    def measured():
        status, said = health(s, s.key)
        return status == 200 and said["clock"] != "unknown" and said
    said = wait_until(measured, 30, "all of it measured")
    assert (said["status"], said["state_disk"], said["clock"]) == ("ok", "ok", "ok") and "reason" not in said, said
    room = os.statvfs(s.dir + "/state/journal")
    assert 0 < said["state_disk_free"] <= room.f_blocks * room.f_frsize, said
    assert said["loop_lag_ms"] >= 0 and abs(said["clock_skew_ms"]) < 60_000, said
    strangers = health(s)[1]
    assert not {"state_disk_free", "loop_lag_ms", "clock_skew_ms", "engines"} & set(strangers), strangers
