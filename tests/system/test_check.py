"""berth check: every difference between records and host is told, and repaired only as the records intend."""
import json
import os
import pathlib
import signal
import subprocess

from marks import limit
from server import wait_until

RUNTIMES = ("crun",)  # facts are looked at the same way for both


def check(s, *options):
    code, out, err = s.berth("check", "--json", *options)
    return code, json.loads(out) if out else err


def kinds(answer):
    return sorted((f["what"], f["kind"]) for f in answer["findings"])


def sql(s, text):
    conf = pathlib.Path(s.dir, "berthd.conf").read_text()
    conninfo = next(line.split("=", 1)[1].strip() for line in conf.split("\n") if line.startswith("database"))
    user = next(word.split("=")[1] for word in conninfo.split() if word.startswith("user="))
    return subprocess.run(["psql", "-qAt", conninfo, "-c", text], check=True, capture_output=True, text=True, user=user,
                          cwd="/").stdout


def test_check_finds_nothing_where_all_is_well(s):
    with s.box():
        code, answer = check(s)
        assert (code, answer["ok"], answer["records"], answer["facts"]) == (0, True, 1, 1), answer
        assert len(answer["invariants"]) == 12 and "violated" not in str(answer["invariants"]), answer
        code, out, _ = s.berth("check")
        assert code == 0 and b"0 differences" in out, out
    assert check(s)[0] == 0


def test_check_tells_a_wrapper_that_no_lease_names(s):
    with s.box() as b:
        where = f"/v1/sandboxes/{b.id}"
        s.api.call("PUT", where + "/wrappers/main", {"command": "sleep 1000"})
        code, answer = check(s)
        assert code == 0 and answer["invariants"][0]["state"] == "holds", answer
        s.api.call("POST", where + "/exec", {"command": "sleep 1000", "background": True, "id": "wr.main.9.foreign"})
        code, answer = check(s)
        assert code == 1 and kinds(answer) == [(b.id, "unleased")], answer
        assert answer["invariants"][0]["state"] == "violated" and "wr.main.9.foreign" in answer["findings"][0]["fact"], answer
        s.api.request("PUT", where + "/wrappers/main", {"command": "sleep 1000"})  # 409: all of that name are ended
        wait_until(lambda: check(s)[0] == 0, 30, "nothing unleased")


@limit(90)
def test_check_tells_a_ghost_and_repair_removes_it(s):
    with s.box() as b:
        sql(s, f"""WITH gone AS (DELETE FROM sandbox WHERE id = '{b.id}' RETURNING *)
            INSERT INTO tombstone (id, owner, host, generation, receipt) SELECT id, owner, host, generation,
            '{{"process":"absent","cgroup":"absent","disk":"absent","runtime":"absent"}}' FROM gone""")
        code, answer = check(s)
        assert code == 1 and kinds(answer) == [(b.id, "ghost")], answer
        assert "was deleted, with a receipt" in answer["findings"][0]["sentence"], answer
        code, answer = check(s, "--repair")
        assert code == 0 and len(answer["before"]) == 1, answer
        assert not [f for f in s.leftovers() if b.id in f["what"]]


@limit(90)
def test_check_leaves_alone_what_no_record_names(s):
    with s.box() as b:
        row = sql(s, f"SELECT row_to_json(x) FROM sandbox x WHERE id = '{b.id}'")
        log = sql(s, f"SELECT json_agg(x) FROM sandbox_event x WHERE sandbox_id = '{b.id}'")
        sql(s, f"DELETE FROM sandbox_event WHERE sandbox_id = '{b.id}'; DELETE FROM sandbox WHERE id = '{b.id}'")
        pid = s.init_pid(b.id)
        code, answer = check(s, "--repair")
        assert code == 1 and kinds(answer) == [(b.id, "orphan")], answer
        os.kill(pid, 0)
        sql(s, f"INSERT INTO sandbox SELECT * FROM json_populate_record(null::sandbox, '{row.strip()}')")
        assert kinds(check(s)[1]) == []
        sql(s, f"INSERT INTO sandbox_event SELECT * FROM json_populate_recordset(null::sandbox_event, '{log.strip()}')")


@limit(90)
def test_check_tells_processes_that_should_not_be_there(s):
    with s.box() as b:
        sql(s, f"UPDATE sandbox SET state = 'failed' WHERE id = '{b.id}'")
        code, answer = check(s)
        assert code == 1 and kinds(answer) == [(b.id, "still_running")], answer
        code, answer = check(s, "--repair")
        assert code == 0, answer
        assert s.cgroup_pids(b.id) == []


@limit(90)
def test_check_says_that_it_cannot_see(s):
    pid = s.pid("berth-node")
    with s.box():
        os.kill(pid, signal.SIGSTOP)
        try:
            code, answer = check(s)
            assert code == 2 and b"nothing can be said about this host" in answer, (code, answer)
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_until(lambda: check(s)[0] == 0, 30, "seen again")
