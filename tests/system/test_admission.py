"""Who gets a sandbox at all: caps of an owner, room on the host; and nothing is destroyed to make room."""
import json
import os
import pathlib
import re
import signal
import time
import uuid

from marks import limit
from server import wait_until
from test_check import sql
from test_identity import SMALL, fails, post, who
from test_killed import delete_all
from test_lifecycle import together

RUNTIMES = ("crun",)


def settings(s, **values):
    """Change berthd's settings, and have it read them."""
    path = s.dir + "/berthd.conf"
    with open(path) as f:
        lines = [x for x in f.read().splitlines() if x.split(" ")[0] not in values]
    with open(path, "w") as f:
        f.write("\n".join([*lines, *(f"{k} = {v}" for k, v in values.items() if v is not None)]) + "\n")
    s.kill("berthd")
    s.wait_healthy()


@limit(120)
def test_a_user_and_an_org_have_a_cap_and_others_have_not(s):
    settings(s, cap_personal=2, cap_organisation=3)
    try:
        got = together(6, lambda i: post(s.api, who(user="ann", session=f"a{i}")))
        made = [g[1] for g in got if g[0] == 201]
        assert len(made) == 2 and all(g[0] in (201, 429) for g in got), got
        refused = next(g[1] for g in got if g[0] == 429)
        assert refused["code"] == "limit" and "limit is 2" in refused["message"], refused
        assert post(s.api, who(user="bob", session="b"))[0] == 201  # not his cap
        for i in range(3):
            assert post(s.api, who(org="acme", user="ann", session=f"o{i}"))[0] == 201
        assert post(s.api, who(org="acme", user="eve", session="o9"))[0] == 429  # the org's
        s.api.create(**{k: v for k, v in SMALL.items() if k != "image"})  # who has no identity has no cap
        key = made[0]["identity_key"]
        mine = next(i for i in range(6) if got[i][0] == 201 and got[i][1]["identity_key"] == key)
        assert post(s.api, who(user="ann", session=f"a{mine}"))[0] == 200  # itself does not count twice
        s.api.delete(key)
        assert post(s.api, who(user="ann", session="later"))[0] == 201  # given back with the tombstone
        assert post(s.api, who(user="ann", session="later2"))[0] == 429
    finally:
        delete_all(s)
        settings(s, cap_personal=None, cap_organisation=None)


def test_a_draining_host_takes_nothing_new_and_a_host_that_is_not_there_is_named(s):
    host = s.api.get("/v1/hosts")["hosts"][0]["id"]
    there = post(s.api, {**SMALL, "name": "there", "host": host})
    assert there[0] == 201 and there[1]["host"] == host, there
    try:
        code, _, err = s.berth("host", "drain", host)
        assert code == 0, err
        key = str(uuid.uuid4())
        status, why = post(s.api, {**SMALL, "name": "new"}, key)
        assert (status, why["code"], why["reason"]) == (503, "busy", "host_draining"), why
        assert f"host {host} is draining" in why["message"] and "undrain" in why["remediation"], why
        assert s.api.get("/v1/hosts/" + host)["state"] == "draining"
        # What it has is used as before: found, woken, and given more.
        assert post(s.api, {**SMALL, "name": "there"}) == (200, there[1])
        s.api.call("POST", "/v1/sandboxes/there/sleep")
        assert s.api.exec("there", "echo up").out == b"up\n"
        assert s.api.call("PATCH", "/v1/sandboxes/there", {"memory_mb": 96})["memory_mb"] == 96
        assert s.berth("host", "undrain", host)[0] == 0
        assert post(s.api, {**SMALL, "name": "new"}, key)[0] == 201, "nothing was done, so the key is free"
        why = fails(404, s.api.call, "POST", "/v1/sandboxes", {**SMALL, "host": "elsewhere"})
        assert "no host elsewhere" in why["message"], why
    finally:
        s.api.call("POST", f"/v1/hosts/{host}/undrain")
        delete_all(s)


def refusal(s, **more):
    """What a full host says, and when to ask again."""
    status, answer, head = s.api.request("POST", "/v1/sandboxes", {**SMALL, **more})
    assert status == 503, (status, answer)
    return answer["message"], int(head["retry-after"])


def leftovers_are_removed_before_it_says_so(s, box):
    """One of three is erased behind berthd's back, so that it is there and no record wants it."""
    sql(s, f"""WITH gone AS (DELETE FROM sandbox WHERE id = '{box}' RETURNING *)
               INSERT INTO tombstone (id, owner, host, generation, receipt)
               SELECT id, owner, host, generation, '{{}}' FROM gone""")
    assert post(s.api, SMALL)[0] == 201
    message, _ = refusal(s)
    assert "1 were removed, 0 are still there" in message and "limit is 3" in message, message
    assert "0 were removed, 0 are still there" in refusal(s)[0]
    lines = [json.loads(x) for x in pathlib.Path(s.dir, "log/berthd.log").read_text().splitlines() if x.startswith("{")]
    assert ("1", "0") in [(x["cleaned"], x["skipped"]) for x in lines if x["msg"] == "leftovers were looked for"]


@limit(120)
def test_a_host_that_is_full_refuses_and_destroys_nothing(s):
    settings(s, sandboxes_max=3)
    try:
        got = together(6, lambda i: post(s.api, SMALL))
        made = [g[1]["id"] for g in got if g[0] == 201]
        assert len(made) == 3 and all(g[0] in (201, 503) for g in got), got
        why = next(g[1] for g in got if g[0] == 503)
        assert why["code"] == "busy" and "no room" in why["message"] and "limit is 3" in why["message"], why
        assert sorted(b["id"] for b in s.api.sandboxes()) == sorted(made)
        for box in made:  # nothing ends by itself: the longest it says
            s.api.call("PATCH", f"/v1/sandboxes/{box}", {"keep_alive": True})
        assert refusal(s)[1] == 300
        s.api.call("PATCH", f"/v1/sandboxes/{made[0]}", {"lifetime_ms": 90000})
        assert 2 <= refusal(s)[1] <= 90, "when the first one is over"
        for box in made:
            assert s.api.exec(box, "echo here").out == b"here\n"
        s.kill("berthd")  # no reservation is lost or left
        s.wait_healthy()
        assert post(s.api, SMALL)[0] == 503
        s.api.delete(made[0])
        assert post(s.api, SMALL)[0] == 201
        leftovers_are_removed_before_it_says_so(s, made[1])
    finally:
        delete_all(s)
        settings(s, sandboxes_max=None)


@limit(120)
def test_promises_are_counted_as_often_as_the_host_may_make_them(s):
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    most = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text()) // 2
    settings(s, overcommit_memory=1, overcommit_pids=1)
    try:
        half = total * 6 // 10
        first = s.api.create(memory_mb=half, disk_mb=64)
        why = fails(503, s.api.call, "POST", "/v1/sandboxes", {**SMALL, "memory_mb": half})
        assert "memory_mb" in why["message"], why
        s.api.delete(first)
        s.api.create(memory_mb=half, disk_mb=64)
        sql(s, f"UPDATE sandbox SET pids = {most - 64}")  # as if it were so many, and not by as many sandboxes
        message, _ = refusal(s, pids=65)
        assert "pids: 65 asked for, 64 of" in message, message
        assert post(s.api, {**SMALL, "pids": 64})[0] == 201
    finally:
        delete_all(s)
        settings(s, overcommit_memory=None, overcommit_pids=None)


def pool_alerts(s):
    return [a for a in s.api.get("/v1/alerts")["alerts"] if a["kind"] == "pool_low"]


@limit(120)
def test_a_low_disk_takes_no_new_ones(s):
    free = s.api.get("/v1/host")["disk_available"] >> 20
    box = s.api.create(disk_mb=512)
    settings(s, disk_keep_mb=free - 100)
    try:
        assert s.api.exec(box, "head -c 200000000 /dev/urandom > /root/big; sync").exit_code == 0
        wait_until(lambda: pool_alerts(s), 30, "an alert")  # of what is measured every second, and decides
        why = fails(503, s.api.call, "POST", "/v1/sandboxes", SMALL)
        assert "MB of disk free, below" in why["message"], why
        assert s.api.exec(box, "ls /root/big").exit_code == 0  # nothing was destroyed for it
        (alert,) = pool_alerts(s)
        assert alert["subject"] == alert["host"] == s.api.get("/v1/host")["host"] and "MB free, below" in alert["message"], alert
        assert s.api.get("/v1/host")["pool"] == "low"
        out = s.berth("doctor")[1].decode()
        assert re.search(r"^fail +pool .*no new sandboxes$", out, re.M), out
        s.api.delete(box)
        wait_until(lambda: post(s.api, SMALL)[0] == 201, 40, "room again")  # btrfs frees it when it likes
        delete_all(s)
        settings(s, disk_keep_mb=None)
        wait_until(lambda: not pool_alerts(s), 30, "the alert has ended")
        assert s.api.get("/v1/host")["pool"] == "ok"
        assert re.search(r"^ok +pool +\S+ GiB of \S+ GiB free$", s.berth("doctor")[1].decode(), re.M)
    finally:
        delete_all(s)
        settings(s, disk_keep_mb=None)


@limit(120)
def test_a_host_short_of_memory_takes_no_new_ones(s):
    """However much may be promised: what is really free decides too."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    box = s.api.create()
    settings(s, memory_keep_mb=total + 1)
    try:
        why = fails(503, s.api.call, "POST", "/v1/sandboxes", SMALL)
        assert "MB of memory free, below" in why["message"], why
        assert s.api.exec(box, "echo here").out == b"here\n"
    finally:
        settings(s, memory_keep_mb=None)
        delete_all(s)
    assert post(s.api, SMALL)[0] == 201
    delete_all(s)


@limit(180)
def test_a_host_that_cannot_be_measured_takes_no_new_ones(s):
    box = s.api.create(**{k: v for k, v in SMALL.items() if k != "image"})
    s.process.send_signal(signal.SIGSTOP)  # it would start berth-node again
    try:
        os.kill(s.pid("berth-node"), signal.SIGKILL)
        wait_until(lambda: not s.healthy(), 60, "berth-node away")
        time.sleep(3)  # it is measured every second, and what was measured just before counts
        why = fails(503, s.api.call, "POST", "/v1/sandboxes", SMALL)
        assert "could not be measured" in why["message"], why
        assert [b["id"] for b in s.api.sandboxes()] == [box], "nothing was written, and nothing destroyed"
    finally:
        s.process.send_signal(signal.SIGCONT)
    wait_until(s.healthy, 60, "healthy again")
    assert s.api.exec(box, "echo here").out == b"here\n"
    delete_all(s)
