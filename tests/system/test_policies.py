"""Policies: decided once, before the first use, and never again."""
import glob
import threading
import uuid

from client import Api
from marks import limit
from test_admission import settings
from test_check import sql
from test_identity import SMALL, fails, post, who
from test_killed import delete_all

RUNTIMES = ("crun",)


def add(s, **row):
    return s.api.call("POST", "/v1/policies", row)["id"]


def clear(s):
    for p in s.api.get("/v1/policies")["policies"]:
        s.api.call("DELETE", f"/v1/policies/{p['id']}")


def cgroup_memory(s, ident):
    """The limit as the kernel has it, in MB."""
    name = s.allocation(ident)
    for pattern in (f"/sys/fs/cgroup/**/{name}/memory.max", f"/sys/fs/cgroup/**/{name}/memory.limit_in_bytes"):
        for path in glob.glob(pattern, recursive=True):
            return int(open(path).read()) >> 20
    raise AssertionError("no cgroup file of " + name)


@limit(120)
def test_shared_where_a_policy_says_so_and_the_choice_stays(s):
    free = {"image": "base", "disk_mb": 64}
    try:
        add(s, scope="org", subject="b", isolation="shared")
        own = [post(s.api, {**free, "identity": {"org": "a", "user": "u", "session": x}})[1] for x in ("a1", "a2")]
        shared = [post(s.api, {**free, "identity": {"org": "b", "user": "u", "session": x}}) for x in ("b1", "b2")]
        assert own[0]["id"] != own[1]["id"] and own[0]["identity_key"].startswith("ses-")
        assert shared[0][1] == shared[1][1] and [x[0] for x in shared] == [201, 200], shared
        assert shared[0][1]["identity_key"].startswith("org-") and shared[0][1]["isolation"] == "shared"
        assert (own[0]["profile"], shared[0][1]["profile"]) == ("small", "standard")
        assert (cgroup_memory(s, own[0]["id"]), cgroup_memory(s, shared[0][1]["id"])) == (6144, 12288)
        clear(s)
        add(s, scope="global", subject="*", isolation="shared")
        s.kill("berthd")
        s.wait_healthy()
        assert post(s.api, {**free, "identity": {"org": "a", "user": "u", "session": "a1"}}) == (200, own[0])
        s.api.delete(own[0]["id"])
        again = post(s.api, {**free, "identity": {"org": "a", "user": "u", "session": "a1"}})
        assert again[0] == 201 and again[1]["identity_key"] == own[0]["identity_key"]  # never derived again
        new = post(s.api, {**free, "identity": {"user": "v", "session": "v1"}})[1]
        assert new["identity_key"].startswith("usr-"), new  # `*` is also who has no org
    finally:
        clear(s)
        delete_all(s)


def test_a_session_is_of_the_user_it_began_with(s):
    """One key speaks for many users, and their session ids may be the same."""
    try:
        add(s, scope="org", subject="shares", isolation="shared")
        for org in ("alone", "shares"):
            mine = {"org": org, "user": "ann", "session": "chat-" + org}
            made = post(s.api, who(**mine))
            assert made[0] == 201, made
            others = [{**mine, "user": "bob"}, {**mine, "org": "else"}, {**mine, "bot": "b"}, {"session": mine["session"]},
                      {"user": "ann", "session": mine["session"]}]
            for other in others:
                key = str(uuid.uuid4())
                status, why = post(s.api, who(**other), key)
                assert (status, why["code"], why["reason"]) == (409, "conflict", "another_identity"), (other, why)
                assert made[1]["id"] not in str(why) and made[1]["identity_key"] not in str(why) and "ann" not in str(why), why
                assert post(s.api, who(**mine), key) == (200, made[1]), "nothing was done, so the key is free"
        assert len(s.api.get("/v1/sandboxes")["sandboxes"]) == 2
        # As one from before identities were stored: it is not compared.
        sql(s, "UPDATE agent_session SET identified = false, org = '', user_id = '' WHERE session = 'chat-alone'")
        assert post(s.api, who(org="alone", user="bob", session="chat-alone"))[0] == 200
    finally:
        clear(s)
        delete_all(s)


def test_a_refused_create_decides_nothing(s):
    """What is decided for a session is written with its sandbox, or not at all."""
    mine = who(org="refused", user="ann", session="refused")
    try:
        add(s, scope="org", subject="refused", runtime="crun")
        for body in ({"image": "nosuch"}, {"runtime": "runsc"}, {"memory_mb": 1 << 30}, {"profile": "nosuch"}):
            status, why = post(s.api, mine | body)
            assert status >= 400, (body, why)
            assert not sql(s, "SELECT 1 FROM agent_session WHERE session = 'refused'"), (body, why)
        clear(s)
        add(s, scope="org", subject="refused", isolation="shared")
        assert post(s.api, mine)[1]["isolation"] == "shared", "by the policy of its first use"
        assert sql(s, "SELECT 1 FROM agent_session WHERE session = 'refused'")
    finally:
        clear(s)
        delete_all(s)


def test_a_runtime_that_a_policy_names_is_not_talked_out_of(s):
    try:
        add(s, scope="user", subject="x", runtime="crun", profile="standard")
        assert post(s.api, who(user="x", session="x1"))[1]["runtime"] == "crun"
        why = fails(403, s.api.call, "POST", "/v1/sandboxes", {**who(user="x", session="x2"), "runtime": "runsc"})
        assert "policy" in why["message"], why
    finally:
        clear(s)
        delete_all(s)


def test_the_servers_engine_is_for_requests_that_name_none_and_a_policy_for_all(s):
    """As docs/operate.md says it of `default_runtime` and of '*'."""
    plain = {"image": "base", "disk_mb": 64}
    settings(s, default_runtime="runsc")
    try:
        assert post(s.api, plain)[1]["runtime"] == "runsc"
        assert post(s.api, {**plain, "runtime": "crun"})[1]["runtime"] == "crun"
        add(s, scope="global", subject="*", runtime="runsc")
        fails(403, s.api.call, "POST", "/v1/sandboxes", {**plain, "runtime": "crun"})
        fails(403, s.api.call, "POST", "/v1/sandboxes", {**who(user="y", session="y1"), "runtime": "crun"})
    finally:
        clear(s)
        delete_all(s)
        settings(s, default_runtime=s.runtime)


def test_rows_that_cannot_be_are_refused_and_the_rest_is_an_admins(s):
    for row in ({"scope": "org"}, {"scope": "org", "subject": "a"}, {"scope": "x", "subject": "a", "isolation": "shared"},
                {"scope": "global", "subject": "a", "isolation": "shared"},
                {"scope": "org", "subject": "a", "isolation": "both"}, {"scope": "org", "subject": "a", "profile": "huge"},
                {"scope": "org", "subject": "a", "runtime": "docker"}):
        fails(400, s.api.call, "POST", "/v1/policies", row)
    fails(404, s.api.call, "DELETE", "/v1/policies/999999")
    fails(400, s.api.call, "DELETE", "/v1/policies/x")
    user = Api(s.port, s.api.call("POST", "/v1/keys", {"name": "no-admin"})["key"])
    fails(403, user.get, "/v1/policies")


def resume_at_once(s, body):
    """Ids of what eight clients got that resumed at the same moment."""
    gate, got = threading.Barrier(8), []

    def one():
        api = Api(s.port, s.key)
        gate.wait()
        got.append(post(api, body))
    threads = [threading.Thread(target=one) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(got) == 8 and {status for status, _ in got} <= {200, 201}, got
    return {box["id"] for _, box in got}


@limit(180)
def test_sessions_from_before_ids_were_stored_are_decided_once_by_the_first(s):
    chosen = "SELECT identity_key FROM agent_session WHERE session = '{}'"
    try:
        for i in range(5):  # of its own: the sandbox is there, what was decided is not
            mine = who(org="acme", user="ann", session=f"own-{i}")
            made = post(s.api, mine)[1]
            sql(s, f"DELETE FROM agent_session WHERE session = 'own-{i}'")
            assert resume_at_once(s, mine) == {made["id"]}
            assert sql(s, chosen.format(f"own-{i}")).split() == [made["identity_key"]]
            s.api.delete(made["id"])
        add(s, scope="org", subject="acme", isolation="shared")
        old = post(s.api, {**SMALL, "name": "older"})[1]["id"]
        sql(s, f"UPDATE sandbox SET identity_key = 'acme__bob', isolation = 'shared', name = '' WHERE id = '{old}'")
        for i in range(5):  # and one that is shared, under its old key
            assert resume_at_once(s, who(org="acme", user="bob", session=f"shared-{i}")) == {old}
            assert len(sql(s, chosen.format(f"shared-{i}")).split()) == 1
        clear(s)  # per session from now on: what was decided stays
        assert resume_at_once(s, who(org="acme", user="bob", session="shared-0")) == {old}
    finally:
        clear(s)
        delete_all(s)


def test_a_key_from_before_keys_were_hashed_still_finds_its_sandbox(s):
    """As an operator would bring it over: the row is there, under its old key."""
    made = post(s.api, {**SMALL, "name": "old-one"})[1]
    sql(s, f"UPDATE sandbox SET identity_key = 'acme__ann', isolation = 'shared', name = '' WHERE id = '{made['id']}'")
    try:
        s.kill("berthd")
        s.wait_healthy()
        assert s.api.exec("acme__ann", "echo old").out == b"old\n"
        assert post(s.api, who(org="acme", user="ann"))[1]["id"] == made["id"]
        assert s.api.get("/v1/sandboxes/acme__ann")["identity_key"] == "acme__ann"  # never rewritten
        fresh = post(s.api, who(org="acme", user="ann", session="of-ann"))[1]["id"]
        assert fresh != made["id"], "a session that nothing is known of is a new one: it is put among no others"
        sql(s, "UPDATE agent_session SET identity_key = 'acme__ann', isolation = 'shared' WHERE session = 'of-ann'")
        assert post(s.api, who(org="acme", user="ann", session="of-ann"))[1]["id"] == made["id"], "brought over with its row"
    finally:
        delete_all(s)
