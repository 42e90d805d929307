"""Which sandbox is meant: ids, identity keys, names, labels; and one of each, whoever asks at the same time."""
import hashlib
import os
import signal
import subprocess
import threading
import time
import uuid

from client import Api, ApiError
from marks import limit
from server import free_port, wait_until
from test_killed import delete_all
from test_lifecycle import together

RUNTIMES = ("crun",)  # records, not engines
SMALL = {"image": "base", "memory_mb": 64, "disk_mb": 64}


def post(api, body, key=None):
    """(status, body)"""
    return api.request("POST", "/v1/sandboxes", body, {"Idempotency-Key": key} if key else None)[:2]


def who(**parts):
    return {**SMALL, "identity": parts}


def fails(status, call, *args, **more):
    try:
        call(*args, **more)
    except ApiError as e:
        assert e.status == status, e
        return e.body
    raise AssertionError(f"not refused: {args}")


def on_host(s):
    return sorted(n.split(".")[0] for n in os.listdir(s.dir + "/node/alloc") if n.startswith("sb_"))


def second_berthd(s):
    """Another berthd on the same database and the same berth-node: (process, Api)."""
    port = free_port()
    conf = f"{s.dir}/second-{port}.conf"
    with open(s.dir + "/berthd.conf") as f:
        lines = [x for x in f.read().splitlines() if not x.startswith("listen")]
    with open(conf, "w") as f:
        f.write("\n".join([*lines, f"listen = 127.0.0.1:{port}"]) + "\n")
    os.chmod(conf, 0o644)
    first = s.pid("berthd")
    status = dict(x.split(":\t", 1) for x in open(f"/proc/{first}/status").read().splitlines() if ":\t" in x)
    uid, gid = int(status["Uid"].split()[0]), int(status["Gid"].split()[0])
    groups = [int(g) for g in status.get("Groups", "").split()]
    log = open(f"{s.dir}/second-{port}.log", "ab")
    p = subprocess.Popen([os.readlink(f"/proc/{first}/exe"), "--config", conf], stdout=log, stderr=log,
                         user=uid, group=gid, extra_groups=groups)
    api = Api(port, s.key)

    def up():
        assert p.poll() is None, open(f"{s.dir}/second-{port}.log").read()[-800:]
        try:
            return Api(port, None, 5).request("GET", "/v1/health")[0] == 200
        except OSError:
            return False
    wait_until(up, 40, "the second berthd")
    return p, api


def test_a_session_has_one_sandbox_of_its_own(s):
    status, made = post(s.api, who(org="acme", user="ann", session="s1"))
    assert status == 201 and made["isolation"] == "per_session" and made["profile"] == "small", made
    assert made["identity_key"] == "ses-" + hashlib.sha256(b"s1").hexdigest()[:48], made
    assert post(s.api, who(org="acme", user="ann", session="s1")) == (200, made)
    assert post(s.api, who(org="acme", user="ann", session="s2"))[1]["id"] != made["id"]
    for address in (made["id"], made["identity_key"]):
        assert s.api.get("/v1/sandboxes/" + address)["id"] == made["id"]
        assert s.api.exec(address, "echo hi").out == b"hi\n"
    assert s.api.delete(made["identity_key"])["id"] == made["id"]
    fails(404, s.api.get, "/v1/sandboxes/" + made["identity_key"])
    assert post(s.api, who(org="acme", user="ann", session="s1"))[0] == 201
    delete_all(s)


def test_a_name_is_an_address_and_its_owners(s):
    status, made = post(s.api, {**SMALL, "name": "web.1"})
    assert (status, made["name"]) == (201, "web.1")
    assert post(s.api, {**SMALL, "name": "web.1"}) == (200, made)
    assert s.api.exec("web.1", "echo hi").out == b"hi\n"
    bob = Api(s.port, s.api.call("POST", "/v1/keys", {"name": "bob-of-names"})["key"])
    fails(404, bob.get, "/v1/sandboxes/web.1")
    fails(404, bob.exec, "web.1", "true")
    his = post(bob, {**SMALL, "name": "web.1"})
    assert his[0] == 201 and his[1]["id"] != made["id"]
    assert s.api.get("/v1/sandboxes/web.1")["id"] == made["id"]  # an admin's own goes first
    for bad in ("-a", "a-", "a b", "www", "x" * 64, "sb_c1_00000000000000000000", "a__b", "ses-" + "0" * 48):
        fails(400, s.api.call, "POST", "/v1/sandboxes", {**SMALL, "name": bad})
    fails(400, s.api.get, "/v1/sandboxes/a%20b")
    fails(400, s.api.call, "POST", "/v1/sandboxes", {**who(session="s"), "name": "n"})
    delete_all(s)


@limit(120)
def test_options_that_differ_from_one_that_is_there_are_refused_by_name(s):
    allow = {"mode": "allow", "rules": [{"host": "a.example.com"}, {"host": "b.example.com"}]}
    given = {**SMALL, "runtime": "crun", "name": "as-asked", "labels": {"a": "1", "b": "2"}, "env": {"K": "secret-value"},
             "network": allow, "keep_alive": False, "sleep_after_ms": 7_200_000, "lifetime_ms": 86_400_000, "profile": "small"}
    status, made = post(s.api, given)
    assert status == 201, made
    same = ({}, {"labels": {"b": "2", "a": "1"}}, {"network": {**allow, "rules": allow["rules"][::-1]}},
            {"lifetime_ms": 43_200_000})  # an end is an end: counted from another request
    for more in same:
        assert post(s.api, {**given, **more}) == (200, made), more
    for member in set(given) - {"image", "name"}:
        assert post(s.api, {k: v for k, v in given.items() if k != member}) == (200, made), member
    differ = {"image": ("debian", "image is base, not debian"), "runtime": ("runsc", "runtime is crun, not runsc"),
              "memory_mb": (128, "memory_mb is 64, not 128"), "disk_mb": (65, "disk_mb is 64, not 65"),
              "pids": (99, "not 99"), "profile": ("standard", "profile is small, not standard"),
              "keep_alive": (True, "keep_alive is false, not true"), "sleep_after_ms": (0, "sleep_after_ms is 7200000, not 0"),
              "lifetime_ms": (0, "it has an end"), "labels": ({}, "labels differ"), "env": ({"K": "other"}, "env differs"),
              "network": ({"mode": "none"}, "network differs")}
    for member, (value, says) in differ.items():
        key = str(uuid.uuid4())
        status, why = post(s.api, {**given, member: value}, key)
        assert (status, why["code"], why["reason"]) == (409, "conflict", "options_differ"), (member, why)
        assert says in why["message"] and made["id"] in why["message"] and "another name" in why["remediation"], why
        assert "secret-value" not in why["message"] and ";" not in why["message"], why
        assert post(s.api, given, key) == (200, made), "nothing was done, so the key is free"
    many = post(s.api, {**given, "image": "debian", "memory_mb": 128, "pids": 9, "env": {}, "labels": {}})[1]["message"]
    assert "image is base, not debian;" in many and "memory_mb is 64, not 128;" in many and "and 2 more" in many, many
    assert s.api.get("/v1/sandboxes/as-asked") == made
    s.api.call("PATCH", "/v1/sandboxes/as-asked", {"labels": {}})
    assert post(s.api, {**given, "labels": {}})[0] == 200 and post(s.api, given)[0] == 409
    code, _, err = s.berth("run", "base", "-n", "as-asked", "--", "true")
    assert code == 125 and b"already" in err and b"berth exec as-asked" in err, err
    code, _, err = s.berth("create", "base", "-n", "as-asked", "-m", "128m")
    assert code == 125 and b"memory_mb is 64, not 128" in err, err
    delete_all(s)


def test_options_of_an_identity_are_compared_too_and_a_first_answer_stays(s):
    key, body = str(uuid.uuid4()), who(org="acme", user="ann", session="options")
    first = post(s.api, body, key)
    assert first[0] == 201, first
    s.api.call("PATCH", "/v1/sandboxes/" + first[1]["id"], {"memory_mb": 96})
    again = post(s.api, body, key)
    assert (again[0], again[1]["id"]) == (201, first[1]["id"]), again
    status, why = post(s.api, body)
    assert (status, why["reason"]) == (409, "options_differ") and "memory_mb is 96, not 64" in why["message"], why
    assert post(s.api, {**body, "memory_mb": 96})[0] == 200
    delete_all(s)


def test_labels_are_found_and_changed(s):
    ids = {}
    for name, labels in (("a", {"repo": "x", "env": "dev"}), ("b", {"repo": "x"}), ("c", {"repo": "y/z"}), ("d", {})):
        ids[post(s.api, {**SMALL, "labels": labels})[1]["id"]] = name

    def find(selector, more=""):
        return "".join(sorted(ids[b["id"]] for b in
                              s.api.get(f"/v1/sandboxes?selector={selector}{more}")["sandboxes"]))
    assert find("repo%3Dx") == "ab" and find("repo") == "abc" and find("repo!%3Dx") == "cd"
    assert find("repo%3Dx,env") == "a" and find("repo%3Dx,env!%3Ddev") == "b" and find("repo%3Dy/z") == "c"
    assert find("repo", "&state=ready") == "abc" and find("repo", "&state=asleep") == ""
    others = "".join(f",other{i}!%3D{'v' * 60}" for i in range(8))  # 500 bytes that change nothing
    assert find("repo%3Dx" + others + ",env!%3Ddev") == "b" and find("repo" + others, "&state=asleep") == ""
    fails(400, find, "repo" + others + ",re%20po")
    fails(400, find, "repo" + others * 4)
    fails(400, find, "re%20po")
    fails(400, find, "a%3Db,a%3Dc")
    b = next(i for i in ids if ids[i] == "b")
    got = s.api.call("PATCH", "/v1/sandboxes/" + b, {"labels": {"env": "prod"}, "env": {"WHO": "me"}})
    assert (got["labels"], got["env"]) == ({"env": "prod"}, {"WHO": "me"})
    assert find("repo%3Dx") == "a" and find("env%3Dprod") == "b"
    assert s.api.exec(b, "echo $WHO").out == b"me\n"
    assert s.api.exec(b, "echo $WHO", env={"WHO": "you"}).out == b"you\n"
    fails(400, s.api.call, "PATCH", "/v1/sandboxes/" + b, {"image": "base"})
    got = s.api.call("PATCH", "/v1/sandboxes/" + b, {"set_env": {"A": "1", "AB": "2"}})
    assert got["env"] == {"WHO": "me", "A": "1", "AB": "2"}, got["env"]
    got = s.api.call("PATCH", "/v1/sandboxes/" + b, {"set_env": {"AB": "3"}, "unset_env": ["A", "NEVER"]})
    assert got["env"] == {"WHO": "me", "AB": "3"}, got["env"]
    fails(400, s.api.call, "PATCH", "/v1/sandboxes/" + b, {"set_env": {"A": "1"}, "env": {}})
    fails(400, s.api.call, "PATCH", "/v1/sandboxes/" + b, {"set_env": {"1A": "1"}})
    fails(400, s.api.call, "PATCH", "/v1/sandboxes/" + b, {"set_env": {f"V{i}": "" for i in range(49)}})  # with its own: 51
    threads = [threading.Thread(target=s.api.call, args=("PATCH", "/v1/sandboxes/" + b, {"set_env": {f"T{i}": "x"}})) for i in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert {"T0", "T1", "T2"} <= set(s.api.get("/v1/sandboxes/" + b)["env"])
    s.kill("berthd")
    s.wait_healthy()
    assert find("env%3Dprod") == "b" and s.api.exec(b, "echo $WHO").out == b"me\n"
    delete_all(s)


@limit(180)
def test_a_hundred_creates_of_one_identity_from_two_berthd_are_one_sandbox(s):
    other, there = second_berthd(s)
    try:
        apis = (s.api, there)
        got = together(100, lambda i: post(apis[i % 2], who(org="o", user="u", session="hundred")))
        assert sorted(g[0] for g in got) == [200] * 99 + [201], [g for g in got if g[0] not in (200, 201)][:3]
        assert all(g[1] == got[0][1] for g in got), got
        assert [b["id"] for b in s.api.sandboxes()] == [got[0][1]["id"]] == on_host(s)
        assert there.exec(got[0][1]["identity_key"], "echo one").out == b"one\n"
        delete_all(s)
        key = str(uuid.uuid4())

        def until_answered(i):
            end = time.monotonic() + 60
            while time.monotonic() < end:
                try:
                    status, body = post(apis[i % 2], who(session="killed"), key)
                    if status in (200, 201):
                        return body
                except OSError:
                    pass
                time.sleep(0.1)
            return None
        killer = threading.Timer(0.05, lambda: s.kill("berthd"))
        killer.start()
        got = together(30, until_answered)
        killer.join()
        s.wait_healthy()
        assert all(g and g["id"] == got[0]["id"] for g in got), got
        assert [b["id"] for b in s.api.sandboxes()] == [got[0]["id"]] == on_host(s)
        assert s.api.exec(got[0]["id"], "echo one").out == b"one\n"
    finally:
        other.send_signal(signal.SIGTERM)
        other.wait(30)
    delete_all(s)
