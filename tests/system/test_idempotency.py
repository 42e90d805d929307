"""Idempotency-Key: a create that comes again, at once, later, or after a kill -9, has happened once."""
import os
import random
import signal
import threading
import time
import uuid

from client import Api
from marks import limit
from server import wait_until
from test_failure import nothing_in_the_image
from test_killed import delete_all, exec_again, host_is_empty
from test_lifecycle import together

BODY = b'{"image":"base","memory_mb":128}'


def create(s, key, body=BODY, api=None):
    """(status, body, was it a repetition?)"""
    status, data, headers = (api or s.api).request(
        "POST", "/v1/sandboxes", body, {"Content-Type": "application/json", "Idempotency-Key": key})
    return status, data, headers.get("Idempotency-Replayed") == "true"


def delete(s, ident, key):
    status, data, headers = s.api.request("DELETE", "/v1/sandboxes/" + ident, None, {"Idempotency-Key": key})
    return status, data, headers.get("Idempotency-Replayed") == "true"


def new_key():
    return str(uuid.uuid4())


def on_host(s):
    return sorted(n.split(".")[0] for n in os.listdir(s.dir + "/node/alloc") if n.startswith("sb_"))


@limit(120)
def test_a_hundred_at_once_are_one_sandbox_and_a_hundred_equal_answers(s):
    for count in (50, 100):
        key = new_key()
        got = together(count, lambda i: create(s, key))
        assert all(isinstance(g, tuple) and g[0] == 201 for g in got), [g for g in got if g[0] != 201][:3]
        assert all(g[1] == got[0][1] for g in got), got
        assert sorted(g[2] for g in got) == [False] + [True] * (count - 1), got
        made = got[0][1]["id"]
        assert [b["id"] for b in s.api.sandboxes()] == [made] == on_host(s)
        assert s.api.exec(made, "echo one").out == b"one\n"
        assert s.api.delete(made)["state"] == "gone"


def test_who_found_one_hears_so_again(s):
    body, key = b'{"image":"base","memory_mb":128,"name":"found-before"}', new_key()
    made, first, later = create(s, new_key(), body), create(s, key, body), create(s, key, body)
    assert (made[0], first[0], later[0]) == (201, 200, 200), (made, first, later)
    assert first[1] == later[1] and (first[2], later[2]) == (False, True), (first, later)
    delete_all(s)


def test_later_is_the_same_answer(s):
    key = new_key()
    first, later = create(s, key), create(s, key)
    assert first[0] == later[0] == 201 and first[1] == later[1] and (first[2], later[2]) == (False, True), later
    assert s.api.get("/v1/sandboxes/" + first[1]["id"]) == first[1]
    assert create(s, new_key())[1]["id"] != first[1]["id"]
    delete_all(s)


def test_without_a_key_every_create_is_another_one(s):
    assert s.api.create() != s.api.create()
    assert s.api.request("POST", "/v1/sandboxes", BODY)[2].get("Idempotency-Replayed") is None
    delete_all(s)


def test_the_same_key_with_another_body_or_verb_is_409(s):
    key = new_key()
    made = create(s, key)[1]["id"]
    for body in (b'{"image":"base","memory_mb":256}', b'{ "image":"base","memory_mb":128}'):
        status, data, replayed = create(s, key, body)
        assert (status, data["code"], replayed) == (409, "conflict", False) and "another body" in data["message"], data
    status, data, _ = delete(s, made, key)
    assert status == 409 and "another request" in data["message"], data
    assert [b["id"] for b in s.api.sandboxes()] == [made]
    delete_all(s)


def test_the_whole_target_is_the_request(s):
    key, pad = new_key(), "/v1/sandboxes?" + "&" * 400
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    answers = [s.api.request("POST", pad + end, BODY, headers) for end in ("", "&", "")]
    assert [a[0] for a in answers] == [201, 409, 201], answers
    assert answers[0][1] == answers[2][1] and answers[2][2].get("Idempotency-Replayed") == "true", answers
    delete_all(s)


def test_keys_that_are_none_are_400(s):
    for key in ("", "k" * 129, "caf\xe9", "a\tb", "\x7f"):
        assert create(s, key)[0] == 400, key
        assert delete(s, "sb_c1_00000000000000000000", key)[0] == 400, key
    for key in ("k" * 128, "!", "a key's ~ \"words\"; --"):
        assert create(s, key)[0] == 201, key
    delete_all(s)


def test_a_key_is_its_owners(s):
    status, other, _ = s.api.request("POST", "/v1/keys", {"name": "bob", "role": "user"})
    assert status == 201, other
    bob = Api(s.port, other["key"])
    key = new_key()
    mine, his = create(s, key), create(s, key, b'{"image":"base"}', bob)
    assert (mine[0], his[0]) == (201, 201) and mine[1]["id"] != his[1]["id"], (mine, his)
    assert create(s, key, b'{"image":"base"}', bob)[1:] == (his[1], True)
    delete_all(s)


def test_what_was_never_begun_does_not_use_the_key_up(s):
    key = new_key()
    assert create(s, key, b'{"image":"nosuch"}')[0] == 404
    assert create(s, key, b'{"image":"base","memory_mb":1}')[0] == 400
    nowhere = "/v1/sandboxes/sb_c1_00000000000000000000"
    verbs = (("DELETE", "", None), ("POST", "/sleep", None), ("POST", "/wake", None), ("PUT", "/network", {"mode": "none"}),
             ("POST", "/code", {"code": "1", "language": "python"}))
    for method, verb, body in verbs:
        status, answer, _ = s.api.request(method, nowhere + verb, body, {"Idempotency-Key": key})
        assert (status, answer["code"]) == (404, "not_found"), (verb, answer)
    status, _, replayed = create(s, key)
    assert (status, replayed) == (201, False)
    delete_all(s)


def test_after_a_delete_the_key_makes_no_second_one(s):
    key, delete_key = new_key(), new_key()
    made = create(s, key)[1]["id"]
    first = delete(s, made, delete_key)
    assert first[0] == 200 and first[1]["receipt"]["disk"] == "absent" and not first[2], first
    again = delete(s, made, delete_key)
    assert again == (200, first[1], True), again
    assert s.api.delete(made) == first[1]
    assert delete(s, "sb_c1_00000000000000000000", delete_key)[0] == 409
    status, data, replayed = create(s, key)
    assert (status, data["code"], replayed) == (409, "conflict", True), data
    assert made in data["message"] and "gone" in data["message"], data
    assert s.api.sandboxes() == [] and on_host(s) == []


def test_deletes_at_once_with_one_key_are_one_receipt(s):
    made, key = s.api.create(), new_key()
    got = together(20, lambda i: delete(s, made, key))
    wait_until(lambda: delete(s, made, key)[0] == 200, 20, "gone")
    receipts = [g[1] for g in got if g[0] == 200]
    assert all(g[0] in (200, 202) for g in got) and all(r == receipts[0] for r in receipts), got
    assert sum(not g[2] for g in got) == 1, got


def begun(s, key):
    """A create that berth-node, frozen, does not get done: (thread, where its answer will be)."""
    answers = []
    s.signal("berth-node", signal.SIGSTOP)
    t = threading.Thread(target=lambda: answers.append(create(s, key)))
    t.start()
    wait_until(s.api.sandboxes, 10, "the record")
    return t, answers


@limit(90)
def test_who_comes_while_the_first_is_under_way_waits_and_then_is_told_to_come_again(s):
    key, node = new_key(), s.pid("berth-node")
    t, answers = begun(s, key)
    try:
        start = time.monotonic()
        status, data, headers = s.api.request("POST", "/v1/sandboxes", BODY, {"Idempotency-Key": key})
        assert (status, data["code"], headers["Retry-After"]) == (503, "busy", "1"), (status, data)
        assert headers["Idempotency-Replayed"] == "true" and 9 < time.monotonic() - start < 20
        waiting = []
        w = threading.Thread(target=lambda: waiting.append(create(s, key)))
        w.start()
        time.sleep(0.5)
    finally:
        os.kill(node, signal.SIGCONT)
    [x.join() for x in (t, w)]
    assert answers[0][0] == 201 and waiting == [(201, answers[0][1], True)], (answers, waiting)
    assert create(s, key) == waiting[0]
    delete_all(s)


def test_a_create_that_failed_fails_again_in_the_same_words(s):
    key = new_key()
    with nothing_in_the_image(s):
        status, data, replayed = create(s, key)
    assert status >= 500 and not replayed and "new one" in data["remediation"], (status, data, replayed)
    for _ in range(3):  # though it could be made now
        assert create(s, key) == (status, data, True), data
    listed = s.api.sandboxes()
    assert [b["state"] for b in listed] == ["failed"] and listed[0]["id"] in data["message"], (listed, data)
    delete_all(s)
    assert create(s, key) == (status, data, True)
    assert s.api.sandboxes() == []
    wait_until(lambda: host_is_empty(s), 10, "host is empty")


def retry_until_answered(s, key, seconds=40):
    """As a client does: no connection, or 503, means again."""
    end = time.monotonic() + seconds
    while True:
        try:
            got = create(s, key)
            if got[0] != 503:
                return got
        except (OSError, ValueError) as e:
            got = e
        except Exception as e:  # noqa: BLE001 - http.client's own
            got = e
        assert time.monotonic() < end, got
        time.sleep(0.05)


def killed_create(s, delay, victims):
    key, answers, clients = new_key(), [], 5
    threads = [threading.Thread(target=lambda: answers.append(retry_until_answered(s, key))) for _ in range(clients)]
    s.wait_healthy()
    old = [s.pid(d) for d in victims]
    [t.start() for t in threads]
    time.sleep(delay)
    s.kill(*victims)
    [t.join() for t in threads]
    wait_until(lambda: all(s.pid(d) not in (o, 0) for d, o in zip(victims, old)), 20, "restarted")
    s.wait_healthy()
    answers.append(retry_until_answered(s, key))
    assert len(answers) == clients + 1, answers
    listed = [b["id"] for b in s.api.sandboxes()]
    assert len(listed) == 1, (delay, s.api.sandboxes(), answers)
    assert on_host(s) == listed, (delay, on_host(s), s.api.sandboxes(), answers)
    return listed[0], answers


@limit(240)
def test_retries_around_a_killed_berthd_find_the_one_sandbox(s):
    rng = random.Random(7)
    for _ in range(10 if s.runtime == "crun" else 5):
        made, answers = killed_create(s, rng.uniform(0.0, 0.15), ["berthd"])
        assert all(a[0] == 201 and a[1]["id"] == made for a in answers), answers
        assert all(a[1] == answers[0][1] for a in answers), answers
        assert exec_again(s, made, "echo ok").out == b"ok\n"
        delete_all(s)
        wait_until(lambda: host_is_empty(s), 10, "host is empty")


@limit(240)
def test_retries_around_a_killed_postgres_find_the_one_sandbox(s):
    rng = random.Random(8)
    for _ in range(3 if s.runtime == "crun" else 1):
        made, answers = killed_create(s, rng.uniform(0.0, 0.1), ["postgres"])
        assert all(a[0] == 201 and a[1] == answers[0][1] for a in answers), answers
        assert exec_again(s, made, "echo ok").out == b"ok\n"
        delete_all(s)
        wait_until(lambda: host_is_empty(s), 10, "host is empty")


def test_a_name_that_was_given_anew_is_another_request(s):
    """The file was told as written, in a sandbox in which it never was."""
    key = {"Idempotency-Key": "by name"}
    write = ("PUT", "/v1/sandboxes/again/files?path=/tmp/f", b"x", key)
    first = s.api.create(name="again")
    assert [s.api.request(*write)[0] for _ in range(2)] == [201, 201]
    s.api.delete(first)
    second = s.api.create(name="again")
    status, body, _ = s.api.request(*write)
    assert (status, body["code"]) == (409, "conflict"), (status, body)
    assert s.api.request(*write[:3], {"Idempotency-Key": "another"})[0] == 201
    s.api.delete(second)


def test_a_key_of_a_command_is_of_its_sandbox_and_its_id(s):
    """As openapi.yaml says: it is looked for there, and nowhere else."""
    with s.box() as one, s.box() as two:
        def run(box, **body):
            status, answer, _ = s.api.request("POST", f"/v1/sandboxes/{box.id}/exec", {"command": "echo x >> /root/runs", **body},
                                              {"Idempotency-Key": "a command's"})
            return status, answer.get("id")
        first = run(one)
        assert first[0] == 200 and run(one) == first and run(one, timeout_ms=50000)[0] == 409
        assert run(two)[0] == 200 and run(one, id="mine")[0] == 200 and run(one, id="mine")[0] == 200
        assert [b.sh("wc -l < /root/runs").strip() for b in (one, two)] == ["2", "1"]
