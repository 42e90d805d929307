"""An upgrade host by host: an older berthd and a newer one share a database for a while."""
import signal
import time

from marks import limit
from server import signal_all, wait_until

CELL = {"hosts": 2}


def health(h):
    return h.api.request("GET", "/v1/health")[1]


def upgrade(c, h):
    """As a package does it: the program is another, then berthd is restarted."""
    h.berthd.command[0] = str(c.build / "tests/berthd-next")
    h.restart("berthd")


def refused(answer):
    status, said, _ = answer
    assert (status, said.get("reason")) == (503, "store_unwritable") and "schema 9000" in said["message"], (status, said)
    assert "Install" in said["remediation"], said


def records(c, host):
    """Everything that a program writes of its sandboxes, but when it was last used: that is of the newest schema, too."""
    return c.primary.sql(f"""SELECT s.id, state, version, generation, deadline_at, stop_attempt, made_by,
        (SELECT count(*) FROM sandbox_event e WHERE e.sandbox_id = s.id) FROM sandbox s WHERE host = '{host}' ORDER BY id""")


def goes_on_unwritten(c, older, newer, kept, dying):
    """What the older one does meanwhile, and what is made on the newer one."""
    said = health(older)
    assert said["status"] == "critical" and "schema 9000" in said["reason"], said
    before, pids = records(c, "h1"), older.pids(kept)
    assert older.api.get(f"/v1/sandboxes/{kept}")["state"] == "ready"
    assert older.api.exec(kept, ["echo", "older"]).out == b"older\n"
    refused(older.api.request("POST", "/v1/sandboxes", {"image": "base", "host": "h1"}))
    refused(older.api.request("DELETE", f"/v1/sandboxes/{kept}"))
    refused(older.api.request("POST", f"/v1/sandboxes/{kept}/sleep"))
    refused(newer.api.request("DELETE", f"/v1/sandboxes/{kept}"))  # its host is asked, whichever was called
    signal_all(older.pids(dying), signal.SIGKILL)
    made = [newer.api.create() for _ in range(4)]  # asked to make it, the older one says no, and the newer one does
    assert newer.api.exec(made[0], ["echo", "new"]).out == b"new\n"
    time.sleep(6)  # leases of 3 s, and more than one
    assert records(c, "h1") == before and set(pids) <= set(older.pids(kept))
    return made


@limit(300)
def test_an_older_berthd_reads_and_writes_nothing_until_it_is_upgraded_too(c):
    older, newer = c.hosts
    kept, dying = older.api.create(host="h1"), older.api.create(host="h1")
    moved = newer.api.create(host="h2")
    slow = {"command": "mkfifo /root/go; read x < /root/go; echo end; exit 3", "background": True}
    command = f"/v1/sandboxes/{kept}/execs/" + older.api.call("POST", f"/v1/sandboxes/{kept}/exec", slow)["id"]
    epoch, pids = c.primary.sql("SELECT epoch FROM host WHERE id = 'h1'"), older.pids(kept)
    upgrade(c, newer)
    try:
        assert newer.api.exec(moved, ["echo", "newer"]).out == b"newer\n"
        wait_until(lambda: health(older)["database"] == "unwritable", 60, "the older one says so")
        made = goes_on_unwritten(c, older, newer, kept, dying)
    finally:
        upgrade(c, older)
    # It works again, and has missed nothing.
    wait_until(lambda: older.api.get(f"/v1/sandboxes/{dying}")["state"] == "failed", 60, "its end is written down")
    assert older.api.exec(kept, "echo > /root/go").exit_code == 0
    wait_until(lambda: older.api.get(command)["state"] == "ended", 60, "the end of the command that was begun before")
    end = older.api.get(command)
    assert (end["kind"], end["exit_code"]) == ("exited", 3) and set(pids) & set(older.pids(kept)), end
    assert c.primary.sql("SELECT epoch FROM host WHERE id = 'h1' AND lost_at IS NULL") == epoch
    fresh = older.api.create(host="h1")
    made_by = dict(c.primary.sql("SELECT id, made_by FROM sandbox"))
    assert made_by == {kept: "before", dying: "before", moved: "before", fresh: "next"} | dict.fromkeys(made, "next"), made_by
    assert older.api.delete(kept)["state"] == "gone"
