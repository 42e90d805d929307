"""Create, list, get, delete: what the records say, who may say it, and the receipt at the end."""
import pathlib
import random
import re
import threading
import time

import yaml

from client import Api, ApiError, parse_events
from marks import limit, only
from server import leftovers, wait_until


def refused(call, *args, **more):
    try:
        got = call(*args, **more)
    except ApiError as e:
        assert e.body["code"] and e.body["message"] and e.body["request_id"].startswith("rq_"), e.body
        return e.status
    raise AssertionError(f"not refused: {got}")


def together(count, work):
    out = [None] * count

    def one(i):
        try:
            out[i] = work(i)
        except Exception as e:  # noqa: BLE001 - the caller looks
            out[i] = e
    threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return out


def test_a_sandbox_is_what_was_asked_for(s):
    made = s.api.call("POST", "/v1/sandboxes", {"image": "base", "memory_mb": 128, "cpu_milli": 500, "pids": 64,
                                                "disk_mb": 100})
    try:
        assert made["state"] == "ready" and made["runtime"] == s.runtime and made["id"].startswith("sb_c1_"), made
        got = s.api.get("/v1/sandboxes/" + made["id"])
        assert got == made, (got, made)
        assert (got["memory_mb"], got["cpu_milli"], got["pids"], got["disk_mb"]) == (128, 500, 64, 100)
        assert [b["id"] for b in s.api.sandboxes()] == [made["id"]]
    finally:
        s.api.delete(made["id"])


def test_deletion_ends_with_a_receipt_and_again_with_the_same(s):
    ident = s.api.create()
    pid = s.init_pid(ident)
    gone = s.api.delete(ident)
    assert gone["state"] == "gone", gone
    receipt = gone["receipt"]
    assert {receipt[k] for k in ("process", "cgroup", "disk", "runtime", "link")} == {"absent"}, receipt
    assert receipt["generation"] == 1 and receipt["host"] and receipt["observed_at"], receipt
    still = ident in leftovers.read(f"/proc/{pid}/cgroup")  # of one that is dead, too, until it is reaped
    assert not still or leftovers.Process(pid).dead
    assert s.api.delete(ident) == gone
    assert s.api.sandboxes() == []
    assert refused(s.api.exec, ident, ["true"]) in (404, 409, 410)


def test_unknown_ids_are_404_and_nonsense_is_refused(s):
    for ident in ("sb_c1_00000000000000000000", "nonsense", "sb_c1_", "%2e%2e", "a" * 300):
        for method in ("GET", "DELETE"):
            assert refused(s.api.call, method, "/v1/sandboxes/" + ident) in (400, 404), ident
        assert refused(s.api.exec, ident, ["true"]) in (400, 404), ident


@only("crun")
def test_what_a_target_says_is_known_or_refused(s):
    """Nothing of a query is left out in silence, and no name in a path reaches the database that is none of its texts."""
    for path, known in (("/v1/sandboxes?limt=5", "after limit selector state"), ("/v1/sandboxes?limit=5&x", "after limit selector state"),
                        ("/v1/sandboxes/none/files?path=/a&paht=/b", "path"), ("/v1/usage?%6cimit=1", "after limit"), ("/v1/keys?a=b", "no query")):
        status, why, _ = s.api.request("GET", path)
        assert (status, why["code"]) == (400, "invalid") and known in why["remediation"], (path, why)
        assert path.split("?")[1].split("&")[-1].split("=")[0] in why["message"], why
    assert s.api.request("GET", "/v1/sandboxes?limit=5&")[0] == 200
    status, why, _ = Api(s.port, "no-key").request("GET", "/v1/keys?a=b")
    assert status == 401, "a stranger is told that first"
    for path in ("/v1/profiles/%ff", "/v1/profiles/a%c3", "/v1/hosts/%ff", "/v1/images/%ff", "/v1/sandboxes/%ff", "/v1/sandboxes/%ff/execs/x",
                 "/v1/sandboxes/sb_c1_00000000000000000000/execs/%ff", "/v1/secrets/%ff", "/v1/policies/%ff", "/v1/keys/%ff"):
        for method in ("GET", "DELETE"):
            status, why, _ = s.api.request(method, path)
            assert status == 405 or (status, why["message"]) == (400, "a part of the path is not UTF-8"), (method, path, why)
    for path in ("/v1/sandboxes?selector=%ff", "/v1/sandboxes?after=%ff", "/v1/sandboxes?selector=a=%ff", "/v1/usage?after=%ff"):
        status, why, _ = s.api.request("GET", path)
        assert status == 400 and "database" not in str(why), (path, why)


def test_bad_requests_say_what_is_wrong(s):
    for body in ({}, {"image": ""}, {"image": "nosuch"}, {"image": 7}, {"image": "base", "memory_mb": 1},
                 {"image": "base", "memory_mb": "512"}, {"image": "base", "runtime": "docker"},
                 {"image": "base", "pids": -1}, {"image": "../../etc"}, [], "x"):
        assert refused(s.api.call, "POST", "/v1/sandboxes", body) in (400, 404, 422), body
    status, body, _ = s.api.request("POST", "/v1/sandboxes", b"{\"image\":", {"Content-Type": "application/json"})
    assert status == 400 and body["code"], body
    with s.box() as b:
        for body in ({}, {"argv": []}, {"argv": "ls"}, {"argv": ["a"], "command": "b"}, {"argv": ["true"], "timeout_ms": -1},
                     {"argv": ["true"], "cwd": 5}, {"argv": ["x\0y"]}, {"command": "true", "env": ["A=b"]}):
            assert refused(s.api.call, "POST", f"/v1/sandboxes/{b.id}/exec", body) in (400, 422), body
    assert s.api.sandboxes() == []


@limit(120)
def test_twenty_at_once_are_twenty(s):
    made = together(20, lambda i: s.api.create())
    assert all(isinstance(m, str) for m in made) and len(set(made)) == 20, made
    out = together(20, lambda i: s.api.exec(made[i], f"echo {i}").out)
    assert out == [f"{i}\n".encode() for i in range(20)], out
    pages, after = [], ""
    while True:
        page = s.api.get(f"/v1/sandboxes?limit=7&after={after}")
        pages.append([b["id"] for b in page["sandboxes"]])
        after = page["next"]
        if not after:
            break
    assert [len(p) for p in pages[:3]] == [7, 7, 6] and sorted(sum(pages, [])) == sorted(made), pages
    gone = together(20, lambda i: s.api.delete(made[i]))
    assert all(g["state"] == "gone" for g in gone), gone
    assert s.api.sandboxes() == []


def test_deleting_one_that_is_being_created_leaves_nothing(s):
    for delay in (0, 0.01, 0.03, 0.06):
        answers = []

        def create():
            try:
                answers.append(s.api.create())
            except ApiError as e:
                answers.append(e)
        t = threading.Thread(target=create)
        t.start()
        end = time.monotonic() + 60
        while not (listed := s.api.sandboxes()) and time.monotonic() < end:
            pass
        time.sleep(delay)
        gone = [s.api.delete(b["id"]) for b in listed]
        t.join()
        assert len(gone) == 1
        wait_until(lambda: s.api.sandboxes() == [], 60, "nothing is left")
        assert s.api.delete(listed[0]["id"])["receipt"]["process"] == "absent"


def children_of_dev(s):
    """What has lost its parent and is not one of the daemons."""
    pid = s.process.pid
    kids = open(f"/proc/{pid}/task/{pid}/children").read().split()
    daemons = {s.pid(d) for d in ("berthd", "berth-node", "berth-egress", "postgres")}
    return {int(k) for k in kids if leftovers.read(f"/proc/{k}/comm") not in ("", "berth-router\n")} - daemons


@limit(240)
def test_creates_cut_at_any_point_leave_no_helper_process(s):
    rng = random.Random(5)
    for _ in range(25 if s.runtime == "crun" else 8):
        threads = [threading.Thread(target=lambda: together(1, lambda i: s.api.create())) for _ in range(3)]
        [t.start() for t in threads]
        time.sleep(rng.uniform(0.002, 0.06))
        for _ in range(2):
            for b in s.api.sandboxes():
                s.api.delete(b["id"])
            [t.join() for t in threads]
    try:
        wait_until(lambda: not children_of_dev(s), 60, "no helper")
    except AssertionError as why:
        raise AssertionError(f"{why}: {[leftovers.read(f'/proc/{p}/cmdline') for p in children_of_dev(s)]}") from None


def test_the_same_one_deleted_by_many_at_once_has_one_receipt(s):
    ident = s.api.create()
    gone = together(8, lambda i: s.api.delete(ident))
    final = s.api.delete(ident)
    for g in gone:
        assert isinstance(g, dict) and g["state"] in ("gone", "deleting"), gone
        assert g["state"] != "gone" or g == final, (g, final)


def test_another_owners_sandbox_is_not_there(s):
    key = s.api.call("POST", "/v1/keys", {"name": "second", "role": "user"})
    assert key["key"].startswith("berth_") and key["role"] == "user"
    other = Api(s.port, key["key"])
    with s.box() as b:
        for call in (lambda: other.get("/v1/sandboxes/" + b.id), lambda: other.delete(b.id),
                     lambda: other.exec(b.id, ["true"]), lambda: other.run_frames(b.id, ["true"])):
            try:
                raise AssertionError(call())
            except ApiError as e:
                # Over an upgraded connection the same error comes as a frame.
                assert e.status == 404 or e.status == 0 and "no" in str(e.body), e
        assert other.sandboxes() == []
        mine = other.create()
        assert [x["id"] for x in other.sandboxes()] == [mine]
        assert other.exec(mine, ["echo", "x"]).out == b"x\n"
        assert other.delete(mine)["state"] == "gone"
        assert b.exec(["echo", "on"]).out == b"on\n"
    s.api.call("DELETE", "/v1/keys/" + key["id"])
    assert refused(other.get, "/v1/sandboxes") == 401


def example(content):
    return content.get("example") or next((x["value"] for x in content.get("examples", {}).values()), "x")


def every_request_about(ident):
    """Each path of openapi.yaml about a sandbox, with the example of its body."""
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    document = yaml.safe_load(pathlib.Path(__file__, "../../../docs/openapi.yaml").resolve().read_text())
    for path, verbs in document["paths"].items():
        if not path.startswith("/v1/sandboxes/{id}"):
            continue
        where = re.sub(r"{\w+}", "main", path.replace("{id}", ident, 1))
        for verb in set(verbs) & {"get", "put", "post", "patch", "delete"}:
            content = verbs[verb].get("requestBody", {}).get("content", {})
            body = next((example(c) for c in content.values()), None)
            listed = [document["components"]["parameters"][p["$ref"].rsplit("/", 1)[1]] if "$ref" in p else p
                      for p in verbs.get("parameters", []) + verbs[verb].get("parameters", [])]
            names = {p["name"] for p in listed if p["in"] == "query"}
            query = "?" + "&".join(f"{name}={value}" for name, value in (("path", "/etc/passwd"), ("for", "exit")) if name in names)
            yield verb.upper(), where + query, body, upgrade if path.endswith("/attach") else None


@only("crun")
def test_no_path_tells_of_what_is_anothers(s):
    key = s.api.call("POST", "/v1/keys", {"name": "third", "role": "user"})
    other = Api(s.port, key["key"])
    with s.box() as b:
        s.api.call("POST", f"/v1/sandboxes/{b.id}/exec", {"command": "sleep 1000", "id": "main", "background": True})
        s.api.call("PUT", f"/v1/sandboxes/{b.id}/wrappers/main", {"command": "sleep 1000"})
        nothing = "sb_c1_" + "a" * 20
        for method, path, body, headers in every_request_about(b.id):
            status, said, _ = other.request(method, path, body, headers)
            assert status == 404, (method, path, body)
            _, absent, _ = other.request(method, path.replace(b.id, nothing), body, headers)
            if isinstance(said, dict):  # in the same words: they tell nothing, either
                assert said["message"] == absent["message"].replace(nothing, b.id), (method, path, said, absent)
        assert s.api.get(f"/v1/sandboxes/{b.id}/execs/main")["state"] == "running"
    s.api.call("DELETE", "/v1/keys/" + key["id"])


def test_a_users_key_does_not_do_an_admins_work(s):
    key = s.api.call("POST", "/v1/keys", {"name": "plain", "role": "user"})
    user = Api(s.port, key["key"])
    assert refused(user.call, "POST", "/v1/keys", {"name": "x", "role": "admin"}) == 403
    assert refused(user.get, "/v1/keys") == 403
    assert refused(user.call, "DELETE", "/v1/images/base") == 403
    assert refused(user.call, "POST", "/v1/images", {"reference": "localhost:1/x:1"}) == 403
    assert refused(user.call, "PUT", "/v1/images/x", b"x", {"Content-Type": "application/x-tar"}) == 403
    listed = s.api.get("/v1/keys")
    assert "key" not in str([list(k) for k in listed["keys"]]).replace("key_", "") or key["key"] not in str(listed)
    s.api.call("DELETE", "/v1/keys/" + key["id"])


def test_no_key_and_a_wrong_key_are_401(s):
    for api in (Api(s.port, None), Api(s.port, "berth_nonsense"), Api(s.port, s.key + "x"), Api(s.port, s.key[:-1])):
        assert refused(api.get, "/v1/sandboxes") == 401
    assert Api(s.port, None).get("/v1/health")["status"] == "ok"
    status, _, headers = Api(s.port, None).request("GET", "/v1/sandboxes", headers={"X-API-Key": s.key})
    assert status == 200 and headers["X-Request-Id"].startswith("rq_")


def test_state_changes_are_told_to_followers(s):
    follower, seen = s.api.connect(), []
    follower.request("GET", "/v1/events", headers=s.api.headers({"Accept": "text/event-stream"}))
    answer = follower.getresponse()  # it follows from here on
    ident = s.api.create()
    s.api.delete(ident)
    for _, data in parse_events(answer):
        seen.append((data.get("id"), data.get("state")))
        if seen[-1] == (ident, "gone"):
            break
    follower.close()
    states = [state for i, state in seen if i == ident]
    assert states == ["creating", "ready", "deleting", "gone"], seen
