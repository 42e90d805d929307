"""berth check --abandon: the way out for what is on a host and has no record. Only for that, and with proof."""
import json
import os

from client import Api, ApiError
from marks import limit
from server import wait_until
from test_check import check, kinds, sql
from test_deletion import pin

DEV_ENV = {"BERTH_TIMER_DIVISOR": "5"}  # an attempt has 9 s


def orphan(s, log=False):
    """A sandbox with a wrapper in it, and without its row; the leases went with that."""
    ident = s.api.create()
    s.api.call("PUT", f"/v1/sandboxes/{ident}/wrappers/main", {"command": "sleep 1000"})
    if not log:
        sql(s, f"DELETE FROM sandbox_event WHERE sandbox_id = '{ident}'")
    sql(s, f"DELETE FROM sandbox WHERE id = '{ident}'")
    wait_until(lambda: s.api.request("GET", "/v1/sandboxes/" + ident)[0] == 404, 30, "its record is gone")
    return ident


def abandon(s, ident, api=None):
    return (api or s.api).request("POST", "/v1/check/abandon/" + ident)[:2]


def refused(call, *args):
    try:
        raise AssertionError(call(*args))
    except ApiError as e:
        return e.status


@limit(180)
def test_an_orphan_is_removed_with_proof_and_a_record_of_who_asked(s):
    ident = orphan(s)
    init = s.init_pid(ident)
    assert s.init_runs(ident, init) and kinds(check(s)[1]) == [(ident, "orphan")], check(s)
    # It is no deletion to anybody: it was not begun, and nothing was erased.
    assert refused(s.api.delete, ident) == 404 and s.init_runs(ident, init)
    user = s.api.call("POST", "/v1/keys", {"name": "user", "role": "user"})
    assert abandon(s, ident, Api(s.port, user["key"]))[0] == 403 and s.init_runs(ident, init)
    s.api.call("DELETE", "/v1/keys/" + user["id"])
    code, out, err = s.berth("check", "--abandon", ident)
    assert code == 0 and b"is gone from" in out, (code, out, err)
    assert out.splitlines()[1].split()[:1] == [b"was"] and b"process present" in out, out
    code, out, err = s.berth("check", "--abandon", ident)
    assert code == 125 and b"is gone already" in err and f"'berth show {ident}' has the receipt".encode() in err, (code, out, err)
    assert not [f for f in s.leftovers() if ident in f["what"]]
    receipt = s.api.get(f"/v1/sandboxes/{ident}/receipt")["receipt"]
    assert {receipt[k] for k in ("process", "cgroup", "disk", "runtime", "link")} == {"absent"}, receipt
    told = s.api.get(f"/v1/sandboxes/{ident}/events")["events"]
    assert [e["event"] for e in told] == ["abandon", "delete", "removed"], told
    admins = [k["id"] for k in s.api.get("/v1/keys")["keys"] if k["role"] == "admin"]
    assert told[0]["reason"].split()[-1] in admins, (admins, told)
    assert check(s)[0] == 0


@limit(180)
def test_only_what_has_no_record_is_abandoned(s):
    with s.box() as b:
        init = s.init_pid(b.id)
        status, body = abandon(s, b.id)
        assert status == 409 and "has a record" in body["message"], body
        assert s.init_runs(b.id, init)
    status, body = abandon(s, b.id)
    assert status == 409 and "gone" in body["message"], body
    status, body = abandon(s, "sb_c1_" + "0" * 20)
    assert status == 404 and "is on host" in body["message"], body
    assert abandon(s, "no-id")[0] == 400
    code, _, err = s.berth("check", "--repair", "--abandon", b.id)
    assert code == 125 and b"one by one" in err, (code, err)


@limit(240)
def test_what_is_not_proven_gone_stays_pending_across_a_restart(s):
    ident = orphan(s, log=True)
    pin(s, ident, True)
    try:
        code, out, _ = s.berth("check", "--json", "--abandon", ident)
        told = json.loads(out)
        assert code == 1 and told["sandbox"]["state"] == "deleting" and told["sandbox"]["attempts"] >= 1, told
        assert "process present" in told["found"], told
        record = s.api.get("/v1/sandboxes/" + ident)
        assert (record["state"], record["image"]) == ("deleting", ""), record
        assert os.path.isdir(f"/proc/{s.pid('berth-node')}/root{s.dir}/node/pool/sandboxes/{s.allocation(ident)}")
        s.kill("berthd")
        s.wait_healthy()
        assert s.api.get("/v1/sandboxes/" + ident)["state"] == "deleting"
    finally:
        pin(s, ident, False)
    wait_until(lambda: s.api.get("/v1/sandboxes/" + ident)["state"] == "gone", 90, "gone by itself when it can be")
    told = [e["event"] for e in s.api.get(f"/v1/sandboxes/{ident}/events")["events"]]
    assert "create" in told[:1] and "abandon" in told and told[-1] == "removed", told
    assert check(s)[0] == 0
