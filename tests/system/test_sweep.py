"""Sweeps that do not end, and more that is due than is cleaned up: a person is told, and it goes on until all is done."""
import contextlib
import json
import os
import pathlib
import re
import signal
import threading
import time

from marks import limit, only
from server import wait_until
from test_check import sql
from test_deletion import disk, events
from test_failure import stopped_at_the_disk

RUNTIMES = ("crun",)  # no engine is involved
DEV_ENV = {"BERTH_TIMER_DIVISOR": "25"}  # a sweep every 12 s


def alerts(s, kind, query=""):
    return [a for a in s.api.get("/v1/alerts" + query)["alerts"] if a["kind"] == kind]


@contextlib.contextmanager
def stopped_node(s):
    s.signal("berth-node", signal.SIGSTOP)
    try:
        yield
    finally:
        s.signal("berth-node", signal.SIGCONT)


@contextlib.contextmanager
def hidden_node(s):
    """Nothing new reaches berth-node: its socket has another name."""
    path = s.dir + "/run/node.sock"
    os.rename(path, path + ".hidden")
    try:
        yield
    finally:
        os.rename(path + ".hidden", path)


def answers(s):
    try:
        return s.api.request("GET", "/v1/alerts")[0] == 200
    except OSError:
        return False


def overdue(s):
    return s.api.request("GET", "/v1/health")[1]["overdue"]


def add_due(s, like, first, count):
    """Deletions of sandboxes that were never made, due at once."""
    sql(s, f"""INSERT INTO sandbox SELECT (jsonb_populate_record(s, jsonb_build_object('id', 'sb_c1_' || lpad(n::text, 20, '0'),
        'state', 'deleting', 'stop_state', 'needed', 'deadline_at', now(), 'name', '', 'identity_key', ''))).*
        FROM sandbox s, generate_series({first}, {first + count - 1}) n WHERE s.id = '{like}'""")


@limit(240)
@only("crun")
def test_a_sweep_that_does_not_end_is_an_alert_and_those_after_it_are_skipped_and_counted(s):
    assert not alerts(s, "sweep_stalled")
    with s.box(), stopped_node(s):
        def told():
            found = alerts(s, "sweep_stalled")
            return found if found and int(re.search(r"(\d+) were skipped", found[0]["message"])[1]) > 0 else None
        (alert,) = wait_until(told, 120, "an alert that counts")
        assert alert["host"] == "h1" and not alert["sandbox"] and "no sweep has come to an end for" in alert["message"], alert
    wait_until(lambda: not alerts(s, "sweep_stalled"), 60, "ended by the sweep that came to an end")
    assert alerts(s, "sweep_stalled", "?ended=1")


@only("crun")
def test_what_failed_before_it_was_ready_is_destroyed_by_the_next_sweep(s):
    """As a berth-node that was killed during a create left it: the record said `lost: everything`, and its disk was there."""
    with s.box() as box, s.box() as other:
        parts, back = disk(s, box.id), disk(s, other.id)
        failed = "UPDATE sandbox SET state = 'failed', files_kept = false, failed_at = now(), failed_why = '{}' WHERE id = '{}'"
        assert os.path.isdir(parts) and os.path.isdir(back)
        sql(s, failed.format("nothing of it is left on its host", other.id))
        sql(s, failed.format("it did not come up in time", box.id))
        wait_until(lambda: not os.path.exists(parts), 60, "its disk is gone")
        assert s.api.get(f"/v1/sandboxes/{box.id}")["state"] == "failed"  # its owner has to see it
        assert os.path.isdir(back)  # it was seen gone and is there again: not for a sweep to destroy


def delete_slowly(s, ident):
    """Begin to delete it, and stop the process that removes its disk. The pid."""
    return stopped_at_the_disk(s, threading.Thread(target=s.api.delete, args=(ident,)).start)


@limit(120)
@only("crun")
def test_a_deletion_that_takes_long_holds_up_no_sweep(s):
    log = pathlib.Path(s.dir, "log/berthd.log")
    late = "the sweep before this one has not finished"
    ident = s.api.create()
    stopped = delete_slowly(s, ident)
    since, told = time.monotonic(), log.read_text().count(late)
    try:
        wait_until(lambda: [e["event"] for e in events(s, ident)].count("begin") > 0, 20, "an attempt of the reconciler")
        time.sleep(max(0, since + 25 - time.monotonic()))  # two sweeps; berth-node gives the process 30 s
        assert events(s, ident)[-1]["to"] == "deleting", events(s, ident)
        assert log.read_text().count(late) == told
    finally:
        os.kill(stopped, signal.SIGCONT)
    wait_until(lambda: s.api.delete(ident)["state"] == "gone", 60, "gone")


@limit(600)
@only("crun")
def test_a_thousand_that_are_due_are_drained_and_a_backlog_that_grows_is_an_alert(s):
    with s.box() as b:
        made = 0
        with stopped_node(s):
            def grown():
                nonlocal made
                add_due(s, b.id, made, 25)  # more than can time out meanwhile
                made += 25
                time.sleep(0.5)
                return alerts(s, "cleanup_backlog")
            (alert,) = wait_until(grown, 120, "an alert")
            assert int(re.match(r"\d+", alert["message"])[0]) > 50 and overdue(s) > 50, alert
        if made < 1000:
            add_due(s, b.id, made, 1000 - made)
            made = 1000
        left = "SELECT count(*) FROM sandbox WHERE id LIKE 'sb_c1_00000%'"
        old = s.pid("berthd")
        s.kill("berthd")  # the next one sees a backlog that gets less, and has to go on with the alert
        wait_until(lambda: s.pid("berthd") not in (old, 0) and answers(s), 60, "berthd again")

        def drained():
            assert alerts(s, "cleanup_backlog") or overdue(s) <= 50
            return int(sql(s, left)) == 0
        wait_until(drained, 240, "all of them gone")
        assert int(sql(s, left.replace("FROM sandbox", "FROM tombstone"))) == made
        wait_until(lambda: not alerts(s, "cleanup_backlog") and overdue(s) == 0, 60, "the alert ended")
        assert b.sh("echo untouched") == "untouched\n"


@limit(360)
@only("crun")
def test_a_record_that_cannot_be_read_stops_neither_its_host_nor_a_list(s):
    with s.box() as b:
        key = "UPDATE sandbox SET identity_key = '{}' WHERE id = '%s'" % b.id
        sql(s, key.format("no key"))
        try:
            (alert,) = wait_until(lambda: alerts(s, "record_unreadable"), 120, "an alert")
            assert alert["host"] == "h1" and b.id in alert["message"] and "identity_key" in alert["message"], alert
            with hidden_node(s):  # a berthd that begins again and cannot look knows no better
                old = s.pid("berthd")
                s.kill("berthd")
                wait_until(lambda: s.pid("berthd") not in (old, 0) and answers(s), 60, "berthd again")
                time.sleep(4)  # it writes its alerts down every 1.5 s
                assert alerts(s, "record_unreadable") == [alert]
            with s.box(sleep_after_ms=1000) as other:  # what is due is still found, after a sweep that saw the row
                wait_until(lambda: s.api.get(f"/v1/sandboxes/{other.id}")["state"] == "asleep", 120, "the other one to fall asleep")
                page = s.api.get("/v1/sandboxes")
                assert [x["id"] for x in page["sandboxes"]] == [other.id] and page["unreadable"] == 1, page
                told = {f["what"]: f for f in json.loads(s.berth("check", "--json")[1])["findings"]}
                assert told["h1"]["kind"] == told[b.id]["kind"] == "unknown" and b.id in told["h1"]["record"], told
                assert b"records that cannot be read are left out" in s.berth("ps")[2]
        finally:
            sql(s, key.format(""))
        wait_until(lambda: not alerts(s, "record_unreadable"), 120, "the alert ended")
        assert s.api.get("/v1/sandboxes")["unreadable"] == 0 and b.sh("echo there") == "there\n"
