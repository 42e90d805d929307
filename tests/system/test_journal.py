"""The journal of an exec: byte for byte what the command said, whatever happens to whom."""
import base64
import http.client
import json
import os
import pathlib
import signal
import threading
import time

import nodeproto
from client import ApiError
from marks import SLOW, limit, only
from server import leftovers, wait_until
from test_admission import settings

ROUNDS, LINES = 12, 3000
NOISE = (f"r=0; while [ $r -lt {ROUNDS} ]; do seq 1 {LINES} | sed \"s/^/$TAG $r /\"; seq 1 200 | sed \"s/^/$TAG e$r /\" >&2; "
         "sleep 0.2; r=$((r + 1)); done; exit $CODE")


def noise(tag):
    out = "".join(f"{tag} {r} {n}\n" for r in range(ROUNDS) for n in range(1, LINES + 1))
    err = "".join(f"{tag} e{r} {n}\n" for r in range(ROUNDS) for n in range(1, 201))
    return out.encode(), err.encode()


def path(box, ident="", more=""):
    return f"/v1/sandboxes/{box}/execs" + (f"/{ident}" if ident else "") + more


def begin(s, box, command, **options):
    return s.api.call("POST", f"/v1/sandboxes/{box}/exec", {"command": command, "background": True, **options})


def piece(data):
    return base64.b64decode(data["data_base64"]) if "data_base64" in data else data["data"].encode()


def follow(s, box, ident, start=0, more="&follow=1"):
    """(stdout, stderr, exit, gap, last position) from a position on; reconnects as a client would."""
    out, gap, at = {"stdout": [], "stderr": []}, 0, start
    until = time.monotonic() + 200 * SLOW  # a berthd that is away refuses ten times a second
    while time.monotonic() < until:
        try:
            for name, data in s.api.events("GET", path(box, ident, f"/output?from={at}{more}")):
                if name in out:
                    raw = piece(data)
                    assert data["position"] == at, (data["position"], at)
                    out[name].append(raw)
                    at += len(raw)
                elif name == "gap":
                    gap, at = gap + data["bytes"], at + data["bytes"]
                elif name == "exit":
                    return b"".join(out["stdout"]), b"".join(out["stderr"]), data, gap, at
        except (OSError, http.client.HTTPException):
            pass
        except ApiError as e:
            assert e.status in (0, 503), e
        time.sleep(0.1)
    raise AssertionError(f"{ident} did not end")


def get(s, box, ident):
    return s.api.get(path(box, ident))


def wait_end(s, box, ident, seconds=40):
    def ended():
        try:
            e = get(s, box, ident)
            return e if e["state"] == "ended" else None
        except (OSError, http.client.HTTPException):
            return None
        except ApiError as e:  # of more clients than KEY_LOOKUPS_MAX at once a berthd that has just begun refuses some
            assert e.status == 503, e
            return None
    return wait_until(ended, seconds, f"the end of {ident}")


def in_parallel(jobs):
    errors = []

    def one(job):
        try:
            job()
        except BaseException as e:  # noqa: BLE001 - raised below
            errors.append(e)
    threads = [threading.Thread(target=one, args=(j,)) for j in jobs]
    [t.start() for t in threads]
    [t.join() for t in threads]
    if errors:
        raise errors[0]


def fifty(s, disturb):
    """50 noisy execs in two sandboxes, half of them followed all the time, while something is done to us."""
    boxes = [s.api.create(pids=2000), s.api.create(pids=2000)]  # on gVisor each thread of the kernel is one
    execs = [(boxes[i % 2], begin(s, boxes[i % 2], NOISE, env={"TAG": f"t{i}", "CODE": str(i)})["id"]) for i in range(50)]

    def check(i):
        if i % 2:
            wait_end(s, *execs[i], seconds=200)
        out, err, end, gap, _ = follow(s, *execs[i])
        want_out, want_err = noise(f"t{i}")
        assert (out, err) == (want_out, want_err), (i, len(out), len(want_out), len(err), len(want_err))
        assert (end["kind"], end["exit_code"], gap) == ("exited", i, 0), end
    in_parallel([lambda i=i: check(i) for i in range(50)] + [disturb])
    for b in boxes:
        s.api.delete(b)
    return execs


@limit(240)
def test_50_noisy_execs_lose_no_byte_to_a_killed_berthd(s):
    def disturb():
        for _ in range(3):
            time.sleep(0.6)
            s.kill("berthd")
            s.wait_healthy()
    execs = fifty(s, disturb)
    out, _, end, _, _ = follow(s, *execs[7], more="")  # after the sandbox is gone, too
    assert out == noise("t7")[0] and end["exit_code"] == 7, end


@limit(240)
def test_50_running_execs_outlive_both_daemons(s):
    def disturb():
        time.sleep(0.5)
        s.kill("berthd", "berth-node")
        s.wait_healthy()
        time.sleep(0.3)
        for d in ("berthd", "berth-node"):  # as an upgrade does it
            s.signal(d, signal.SIGTERM)
        time.sleep(0.2)
        s.wait_healthy()
    fifty(s, disturb)


def test_an_exec_is_read_from_any_position_by_several_clients(s):
    with s.box() as box:
        ident = begin(s, box.id, "seq 1 50000; seq 1 1000 >&2; sleep 1; seq 1 50000", id="mine.1")["id"]
        assert ident == "mine.1"
        whole = b"".join(b"%d\n" % n for n in range(1, 50001)) * 2
        got = {}

        def one(start):
            got[start] = follow(s, box.id, ident, start)
        in_parallel([lambda a=a: one(a) for a in (0, 1, 4096, 200000, 300001)])
        assert got[0][0] == whole and got[0][2]["kind"] == "exited"
        for start, (out, err, _, _, end) in got.items():
            assert end == len(whole) + got[0][2]["stderr_bytes"]
            assert len(out) + len(err) == end - start and whole.endswith(out), start
        try:
            begin(s, box.id, "true", id="mine.1")
            raise AssertionError("an id was used twice")
        except ApiError as e:
            assert e.status == 409, e


def test_a_slow_client_does_not_slow_another(s):
    with s.box() as box:
        ident = begin(s, box.id, "yes 123456789012345 | head -c 8388608; echo end")["id"]
        slow = s.api.connect()
        slow.request("GET", path(box.id, ident, "/output?follow=1"), headers=s.api.headers({"Accept": "text/event-stream"}))
        slow.getresponse().read(100)  # and no more
        assert wait_end(s, box.id, ident)["stdout_bytes"] == 8388612
        out = follow(s, box.id, ident)[0]
        assert out == b"123456789012345\n" * 524288 + b"end\n"
        slow.close()


@only("crun")
def test_the_same_idempotency_key_is_one_exec(s):
    with s.box() as box:
        def ask(command, key="k1"):
            return s.api.request("POST", f"/v1/sandboxes/{box.id}/exec", {"command": command},
                                 {"Idempotency-Key": key})
        answers = []
        in_parallel([lambda: answers.append(ask("echo x >> /tmp/n; sleep 0.5; cat /tmp/n")) for _ in range(8)])
        assert {a[0] for a in answers} == {200} and len({json.dumps(a[1]) for a in answers}) == 1, answers
        assert answers[0][1]["stdout"] == "x\n"
        assert ask("echo x >> /tmp/n; sleep 0.5; cat /tmp/n")[1] == answers[0][1]
        assert ask("echo other")[0] == 409
        assert ask("echo other", "k2")[1]["stdout"] == "other\n"


def test_w15_init_killed_in_the_middle_is_lost(s):
    box = s.api.create()
    ident = begin(s, box, "while :; do echo still here; sleep 0.05; done")["id"]
    wait_until(lambda: get(s, box, ident)["stdout_bytes"] > 0, 20, "output")
    os.kill(s.init_pid(box), signal.SIGKILL)
    end = wait_end(s, box, ident)
    assert end["kind"] == "lost" and end["exit_code"] is None, end
    out = follow(s, box, ident)[0]
    assert out and out == b"still here\n" * (len(out) // 11)
    s.api.delete(box)
    assert get(s, box, ident)["kind"] == "lost"


@only("crun")
def test_execs_of_others_are_not_seen(s):
    other = s.api.call("POST", "/v1/keys", {"name": "other", "role": "user"})
    with s.box() as box:
        ident = begin(s, box.id, "echo mine")["id"]
        mine, s.api.key = s.api.key, other["secret"] if "secret" in other else other["key"]
        try:
            for p in ("", "/output"):
                assert s.api.request("GET", path(box.id, ident, p))[0] == 404
            assert s.api.request("DELETE", path(box.id, ident))[0] == 404
            for method in ("GET", "DELETE"):
                assert s.api.request(method, f"/v1/sandboxes/{box.id}/execs")[0] == 404, method
        finally:
            s.api.key = mine


@only("crun")
@limit(120)
def test_ex9_beyond_the_cap_is_a_gap_with_exact_counts_but_not_for_its_client(s):
    size, cap = 300 << 20, 256 << 20
    with s.box() as box:
        with s.api.upgrade(box.id) as sock:
            sock.sendall(nodeproto.exec_frame(["sh", "-c", f"yes 0123456 | head -c {size}"], ident="big"))
            time.sleep(1)  # it does not read: the command waits
            got = 0
            for name, payload in nodeproto.read_frames(sock):
                if name == "stdout":
                    assert payload == (b"0123456\n" * (len(payload) // 8 + 2))[got % 8:got % 8 + len(payload)], got
                    got += len(payload)
                elif name == "exited":
                    break
        assert got == size
        e = wait_end(s, box.id, "big")
        heads = cap // 16  # of the pieces it came in: they count to the cap, too
        assert e["stdout_bytes"] == size and 0 < e["gap_bytes"] <= size - cap + heads, e
        kept = size - e["gap_bytes"]
        out, _, end, gap, last = follow(s, box.id, "big", kept - 100, more="")
        assert out == (b"0123456\n" * 30)[(kept - 100) % 8:][:100] and (gap, last) == (e["gap_bytes"], size)
        assert end["stdout_bytes"] == size


@only("crun")
def test_a_foreground_command_outlives_a_berthd_that_ends(s):
    """Its client lost the connection, but did not want to: only a client that goes away kills."""
    with s.box() as box:
        def ask():
            try:
                s.api.exec(box.id, "echo begun; sleep 3; echo done; exit 4", id="front")
            except (OSError, http.client.HTTPException):
                pass
        client = threading.Thread(target=ask)
        client.start()

        def begun():
            try:
                return get(s, box.id, "front")["stdout_bytes"] > 0
            except ApiError:
                return False
        wait_until(begun, 20, "the command begun")
        s.signal("berthd", signal.SIGTERM)
        client.join()
        s.wait_healthy()
        end = wait_end(s, box.id, "front")
        assert (end["kind"], end["exit_code"]) == ("exited", 4), end
        assert follow(s, box.id, "front")[0] == b"begun\ndone\n"


def copies(s, box, ended, count):
    """Journals aaaaa00001 and on, as if that command had been run so often."""
    (where,) = pathlib.Path(s.dir).glob(f"**/journal/{box}")
    record = (where / ended).read_bytes()
    owner = os.stat(where / ended)
    for i in range(1, count):
        name = f"aaaaa{i:05}"
        (where / name).write_bytes(record.replace(ended.encode(), name.encode()))
        os.chown(where / name, owner.st_uid, owner.st_gid)


@limit(180)
def test_a_filtered_list_looks_at_so_many_and_goes_on_with_the_next_page(s):
    with s.box() as b:
        ended = begin(s, b.id, "true", id="aaaaa00000")["id"]
        wait_end(s, b.id, ended)
        running = begin(s, b.id, "sleep 600", id="zzzzz00000")["id"]
        copies(s, b.id, ended, 2500)
        pages, after = [], ""
        while not pages or after:
            page = s.api.get(f"/v1/sandboxes/{b.id}/execs?state=running&after={after}")
            pages.append([e["id"] for e in page["execs"]])
            after = page["next"]
        assert pages == [[], [running]], pages
        assert len(s.api.get(f"/v1/sandboxes/{b.id}/execs?state=ended&limit=1000")["execs"]) == 1000
        s.api.call("POST", path(b.id, running, "/kill"), {})


@only("crun")
def test_who_forgets_thousands_does_not_have_the_worker_for_that_long(s):
    settings(s, store_workers=1)
    try:
        with s.box() as b:
            for i in range(5):  # this process may stand still for as long as it takes
                ended = begin(s, b.id, "true", id=f"bbbbb0000{i}")["id"]
                wait_end(s, b.id, ended)
                copies(s, b.id, ended, 4000)
                (where,) = pathlib.Path(s.dir).glob(f"**/journal/{b.id}")
                answers, meanwhile = [], 0
                forget = threading.Thread(target=lambda: answers.append(s.api.call("DELETE", path(b.id))))
                forget.start()
                while forget.is_alive():
                    s.api.get("/v1/keys")
                    meanwhile += 0 < len(leftovers.names(str(where))) < 4000
                forget.join()
                assert answers == [{"removed": 4000}], answers
                if meanwhile > 3:
                    break
            assert meanwhile > 3, meanwhile  # of one job: at most the one that was answered as it began
            assert s.api.get(path(b.id))["execs"] == []
    finally:
        settings(s, store_workers=None)
