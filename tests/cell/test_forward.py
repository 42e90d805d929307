"""Any berthd takes any request: what another host must answer is handed on to it."""
import hashlib
import hmac
import http.client
import json
import os
import sys
import threading
import time

from cell import PEER_PORT, PORT, error_of
from client import Api, ApiError, event_bytes
from server import TOP, wait_until
from websocket import WebSocket

sys.path.insert(0, str(TOP / "tests/crash"))
from clock import Clock  # noqa: E402

CELL = {"hosts": 2}


def box_on(c, host):
    """A sandbox of that host, and the API of another one."""
    ident = host.api.create(host=host.name)
    assert dict((i, h) for i, h, _, _ in c.rows())[ident] == host.name
    return ident, next(h for h in c.hosts if h is not host).api


def test_a_command_runs_where_its_sandbox_is(c):
    ident, far = box_on(c, c.hosts[0])
    r = far.exec(ident, ["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (r.kind, r.exit_code, r.out, r.err) == ("exited", 3, b"out\n", b"err\n"), dict(r)
    assert not c.hosts[1].pids(ident)


def test_events_come_as_they_happen(c):
    ident, far = box_on(c, c.hosts[0])
    out = []
    for name, data in far.events("POST", f"/v1/sandboxes/{ident}/exec",
                                 {"command": "echo one; until [ -e /root/heard ]; do sleep 0.1; done; echo two", "timeout_ms": 60000}):
        if name == "stdout":
            out.append(event_bytes(data))
            far.request("PUT", f"/v1/sandboxes/{ident}/files?path=/root/heard", b"")
    assert out == [b"one\n", b"two\n"], "the first line waited for the second"
    assert (name, data["kind"]) == ("exit", "exited"), data


def test_an_upgraded_connection_goes_through(c):
    ident, far = box_on(c, c.hosts[0])
    sent = os.urandom(3 << 20)
    end, out, _ = far.run_frames(ident, ["cat"], stdin=sent)
    assert hashlib.sha256(out).digest() == hashlib.sha256(sent).digest() and end["code"] == 0, end


def test_a_large_output_is_whole(c):
    ident, far = box_on(c, c.hosts[0])
    digest, size = hashlib.sha256(), 0
    for name, data in far.events("POST", f"/v1/sandboxes/{ident}/exec",
                                 {"command": "yes 0123456789abcdef | head -c 20000000"}):
        if name == "stdout":
            digest.update(event_bytes(data))
            size += len(event_bytes(data))
    assert size == 20000000
    assert digest.hexdigest() == hashlib.sha256((b"0123456789abcdef\n" * 1176471)[:20000000]).hexdigest()


def test_a_client_that_leaves_ends_its_command_there(c):
    ident, far = box_on(c, c.hosts[0])
    events = far.events("POST", f"/v1/sandboxes/{ident}/exec", {"command": "echo go; exec sleep 1000"})
    assert next(events)[0] == "started"
    assert next(events)[0] == "stdout"
    before = len(c.hosts[0].pids(ident))
    events.close()
    wait_until(lambda: len(c.hosts[0].pids(ident)) < before, 30, "the command ended")


def test_one_request_has_one_id_on_both_hosts(c):
    ident, far = box_on(c, c.hosts[0])
    _, _, headers = far.request("POST", f"/v1/sandboxes/{ident}/exec", {"argv": ["true"]})
    assert len(headers.get_all("X-Request-Id")) == 1
    name = headers["X-Request-Id"]
    wait_until(lambda: all(f'"{name}"' in h.log() for h in c.hosts), 10, "the id in both logs")


def test_a_clients_trace_id_is_in_the_logs_of_both_hosts(c):
    ident, far = box_on(c, c.hosts[0])
    _, _, headers = far.request("POST", f"/v1/sandboxes/{ident}/exec", {"argv": ["true"]}, {"X-Trace-Id": "tr_twohosts"})
    assert headers.get_all("X-Trace-Id") == ["tr_twohosts"], headers.items()
    name = headers["X-Request-Id"]
    assert name.startswith("tr_twohosts."), name
    wait_until(lambda: all(f'"{name}"' in h.log() for h in c.hosts), 10, "the id in both logs")


def test_a_delete_is_done_where_it_is(c):
    ident, far = box_on(c, c.hosts[0])
    gone = far.delete(ident)
    assert gone["state"] == "gone", gone
    assert not c.hosts[0].allocations()
    assert far.get(f"/v1/sandboxes/{ident}/receipt")["receipt"]


def test_whose_it_is_counts_on_both_hosts(c):
    ident, far = box_on(c, c.hosts[0])
    other = Api(PORT, c.make_key("other", "user"), address=far.address)
    assert error_of(other.request("POST", f"/v1/sandboxes/{ident}/exec", {"argv": ["true"]}))[:2] == (404, "not_found")
    mine = other.create()
    host = dict((i, h) for i, h, _, _ in c.rows())[mine]
    there = next(h for h in c.hosts if h.name != host)
    assert Api(PORT, other.key, address=there.address).exec(mine, ["true"]).exit_code == 0


def test_strangers_cannot_speak_for_others(c):
    ident, far = box_on(c, c.hosts[0])
    forged = {"Berth-Peer": "v2;h2;h1;rq_x;key_x;admin;6669727374;1;1;" + "0" * 64}
    path = f"/v1/sandboxes/{ident}"
    nobody = Api(PORT, None, address=c.hosts[0].address)
    assert nobody.request("DELETE", path, headers=forged)[0] == 403
    assert c.hosts[0].api.request("DELETE", path, headers=forged)[0] == 403, "not even with a good key"
    door = Api(PEER_PORT, None, address=c.hosts[0].address)
    assert door.request("DELETE", path, headers=forged)[0] == 403
    assert door.request("DELETE", path)[0] == 403
    assert Api(PEER_PORT, c.key, address=c.hosts[0].address).request("DELETE", path)[0] == 403
    assert c.hosts[0].api.exec(ident, ["true"]).exit_code == 0
    told_of(c, "forged_pass")


def told_of(c, kind):
    """The operator is told, by any host: before the route is known, so of no sandbox."""
    wait_until(lambda: [i for i in c.hosts[1].api.get("/v1/security")["incidents"] if i["kind"] == kind and i["source"]], 20, kind)


def test_a_host_that_is_down_is_said_to_be(c):
    ident, far = box_on(c, c.hosts[0])
    c.hosts[0].kill("berthd")
    status, code, message = error_of(far.request("POST", f"/v1/sandboxes/{ident}/exec", {"argv": ["true"]}))
    assert (status, code) == (503, "busy") and "h1" in message and "nothing was done" in message, message
    assert far.get(f"/v1/sandboxes/{ident}")["state"] == "ready", "the records can still be read"
    c.hosts[0].start()
    assert far.exec(ident, ["true"]).exit_code == 0


def test_a_delete_waits_for_a_host_that_is_down(c):
    """The wish is written by whoever was asked; nobody but its host says that it is gone."""
    ident, far = box_on(c, c.hosts[0])
    c.hosts[0].kill("berthd")
    status, body, _ = far.request("DELETE", f"/v1/sandboxes/{ident}")
    assert status == 202 and body["state"] == "deleting" and body["next_attempt_at"], (status, body)
    assert far.get(f"/v1/sandboxes/{ident}")["state"] == "deleting"
    assert c.hosts[0].pids(ident), "it is still there, and nobody says otherwise"
    c.hosts[0].start()
    wait_until(lambda: far.get(f"/v1/sandboxes/{ident}")["state"] == "gone", 60, "gone")
    assert not c.hosts[0].allocations()


def test_what_has_moved_is_found_again(c):
    """A memory that is old costs one refusal; a request is never handed on twice."""
    ident, far = box_on(c, c.hosts[0])
    assert far.exec(ident, ["true"]).exit_code == 0, "now h2 remembers where it is"
    c.primary.sql(f"UPDATE sandbox SET host = 'h9' WHERE id = '{ident}'")
    c.hosts[0].restart("berthd")
    for what in ("lives on host h9", "host h9 is not known"):
        status, code, message = error_of(far.request("POST", f"/v1/sandboxes/{ident}/exec", {"argv": ["true"]}))
        assert (status, code) == (503, "busy") and what in message, message
    c.primary.sql(f"UPDATE sandbox SET host = 'h1' WHERE id = '{ident}'")
    wait_until(lambda: far.request("POST", f"/v1/sandboxes/{ident}/exec", {"argv": ["true"]})[0] == 200, 30,
               "it is found again")


def test_files_go_both_ways(c):
    ident, far = box_on(c, c.hosts[0])
    data = os.urandom(5 << 20)
    status, _, _ = far.request("PUT", f"/v1/sandboxes/{ident}/files?path=/root/big", data)
    assert status in (200, 201)
    status, back, headers = far.request("GET", f"/v1/sandboxes/{ident}/files?path=/root/big")
    assert status == 200 and back == data and headers["Content-Length"] == str(len(data)), headers
    status, part, headers = far.request("GET", f"/v1/sandboxes/{ident}/files?path=/root/big", headers={
        "Range": "bytes=1048576-"})
    assert status == 206 and part == data[1 << 20:] and headers["Content-Range"], headers
    status, _, _ = far.request("GET", f"/v1/sandboxes/{ident}/files?path=/none%20such")
    assert status == 404


def test_a_terminal_is_seen_from_another_host(c):
    ident, far = box_on(c, c.hosts[0])
    terminal = far.call("POST", f"/v1/sandboxes/{ident}/terminals", {"argv": ["sh"], "cols": 100, "rows": 30})
    with WebSocket(far, f"/v1/sandboxes/{ident}/terminals/{terminal['id']}/attach") as v:
        assert v.status == 101, v.head
        v.send(b"stty size\n")
        v.until(b"30 100\r\n")
        v.say(type="resize", cols=132, rows=43)
        v.send(b"stty size\n")
        v.until(b"43 132\r\n")
        v.send(b"exit 5\n")
        v.until(None)
        assert v.texts[-1]["type"] == "exit" and v.texts[-1]["exit_code"] == 5 and v.code == 1000, v.texts


def test_a_host_cut_off_in_the_middle_leaves_no_success(c):
    """A stream ends with an error that says what is not known; so does an answer in one piece."""
    ident, far = box_on(c, c.hosts[0])
    got = []
    asker = threading.Thread(target=lambda: got.append(
        far.request("POST", f"/v1/sandboxes/{ident}/exec", {"command": "sleep 1000"})))
    asker.start()
    events = far.events("POST", f"/v1/sandboxes/{ident}/exec", {"command": "echo go; sleep 1000"})
    assert [next(events)[0] for _ in range(2)] == ["started", "stdout"]
    wait_until(lambda: len(c.hosts[0].pids(ident)) > 4, 30, "both commands run")
    c.hosts[0].cut_off()
    rest = list(events)
    assert [name for name, _ in rest] == ["error"], rest
    assert "not known" in rest[0][1]["message"] and rest[0][1]["code"] == "timeout", rest
    asker.join(90)
    status, code, message = error_of(got[0])
    assert (status, code) == (504, "timeout") and "not known" in message, got
    c.hosts[0].join()


def test_a_host_cut_off_in_the_middle_of_a_file_leaves_the_old_one_or_the_new(c):
    ident, far = box_on(c, c.hosts[0])
    where, size = f"/v1/sandboxes/{ident}/files?path=/root/f", 8 << 20
    assert far.request("PUT", where, b"o" * size)[0] == 201
    up, down = far.connect(), far.connect()
    up.putrequest("PUT", where)
    for name, value in far.headers({"Content-Length": str(size)}).items():
        up.putheader(name, value)
    up.endheaders()
    up.send(b"n" * (size // 2))
    down.request("GET", where, headers=far.headers())
    answer = down.getresponse()
    assert answer.status == 200 and answer.read(1000) == b"o" * 1000
    c.hosts[0].cut_off()
    try:
        up.send(b"n" * (size // 2))
        r = up.getresponse()
        assert r.status in (503, 504), (r.status, r.read())
    except (ConnectionError, http.client.HTTPException):
        pass  # it was cut for the client, too: that is no success either
    try:
        assert len(answer.read()) == size - 1000  # what was under way already; all of it, or not whole
    except (ConnectionError, http.client.HTTPException):
        pass
    up.close()
    down.close()
    c.hosts[0].join()
    wait_until(lambda: far.request("GET", where)[0] == 200, 60, "it is reached again")
    assert far.request("GET", where)[1] == b"o" * size


def test_a_full_upload_goes_through(c):
    """A body of a size nobody told before, slower than it could be."""
    ident, far = box_on(c, c.hosts[0])
    conn = http.client.HTTPConnection(far.address, far.port, timeout=60)

    def pieces():
        body = json.dumps({"argv": ["cat"], "stdin": "x" * 500000}).encode()
        for at in range(0, len(body), 100000):
            yield body[at:at + 100000]
            time.sleep(0.05)
    conn.request("POST", f"/v1/sandboxes/{ident}/exec", pieces(), far.headers({"Content-Type": "application/json"}),
                 encode_chunked=True)
    answer = json.loads(conn.getresponse().read())
    assert len(answer["stdout"]) == 500000 and answer["exit_code"] == 0
    conn.close()


def test_an_unknown_sandbox_is_unknown_everywhere(c):
    for h in c.hosts:
        try:
            h.api.exec("sb_c1_" + "0" * 20, ["true"])
            raise AssertionError("it was found")
        except ApiError as e:
            assert e.status == 404, e


def test_a_stranger_learns_nothing_from_a_host_that_is_away(c):
    """Whose sandbox it is is known before anybody asks its host."""
    ident, far = box_on(c, c.hosts[0])
    assert far.exec(ident, ["true"]).exit_code == 0  # from now on the far one remembers where it lives
    stranger = Api(PORT, c.make_key("stranger", "user"), address=far.address)
    c.hosts[0].kill("berthd")
    asked = [stranger.request("POST", f"/v1/sandboxes/{i}/exec", {"argv": ["true"]}) for i in (ident, "sb_c1_" + "0" * 20)]
    c.hosts[0].start()
    assert [(status, body["code"]) for status, body, _ in asked] == [(404, "not_found")] * 2, asked


def cell_now(c):
    return int(c.primary.sql("SELECT (extract(epoch FROM now()) * 1000)::bigint")[0][0])


def written_pass(c, to, method, path, at, nonce):
    """As another host of the cell would write it, for a request to `to`."""
    secret = c.primary.sql("SELECT secret FROM cell")[0][0]
    text = f"v2;h2;{to};rq_by_hand;key_x;admin;6669727374;{at};{nonce}"
    mac = hmac.new(secret.encode(), f"{text}\n{method}\n{path}\n".encode(), hashlib.sha256).hexdigest()
    return {"Berth-Peer": f"{text};{mac}"}


def test_a_pass_is_taken_once_and_for_a_minute(c):
    ident, _ = box_on(c, c.hosts[0])
    door, path = Api(PEER_PORT, None, address=c.hosts[0].address), f"/v1/sandboxes/{ident}"
    seen = written_pass(c, "h1", "GET", path, cell_now(c), 4711)
    assert door.request("GET", path, headers=seen)[0] == 200
    status, code, message = error_of(door.request("GET", path, headers=seen))
    assert (status, code) == (403, "denied") and "used before" in message, message
    for at in (cell_now(c) - 120000, cell_now(c) + 120000):
        status, code, message = error_of(door.request("GET", path, headers=written_pass(c, "h1", "GET", path, at, at)))
        assert (status, code) == (403, "denied") and "another time" in message, message
    told_of(c, "replayed_pass")
    c.hosts[0].kill("berthd")
    c.hosts[0].start()
    status, code, message = error_of(door.request("GET", path, headers=seen))
    assert (status, code) == (503, "busy") and "older than this berthd" in message, message
    assert door.request("GET", path, headers=written_pass(c, "h1", "GET", path, cell_now(c), 4712))[0] == 200


def test_a_revoked_key_is_refused_everywhere_within_seconds(c):
    secret = c.make_key("leaver", "user")
    near, far = (Api(PORT, secret, address=h.address) for h in c.hosts)
    assert near.request("GET", "/v1/sandboxes")[0] == far.request("GET", "/v1/sandboxes")[0] == 200
    ident = next(k["id"] for k in c.hosts[0].api.get("/v1/keys")["keys"] if k["name"] == "leaver")
    c.hosts[0].api.call("DELETE", f"/v1/keys/{ident}")
    assert near.request("GET", "/v1/sandboxes")[0] == 401

    def is_refused():
        try:
            return far.request("GET", "/v1/sandboxes")[0] == 401
        except (http.client.RemoteDisconnected, ConnectionResetError):
            return False  # it was under way as h2 heard of it, and ended as all that the key had open
    wait_until(is_refused, 15, "h2 refuses it, however often it is used")


def test_a_host_whose_wall_clock_jumped_still_serves(c):
    """Passes go by the database's time, on both sides."""
    clock = Clock(c.hosts[1].dir / "clock")
    daemon = c.hosts[1].berthd
    daemon.env.update(clock.env)
    try:
        c.hosts[1].kill("berthd")
        c.hosts[1].start()
        ident, far = box_on(c, c.hosts[0])
        other, back = box_on(c, c.hosts[1])
        for jump in (0, 7200, -7200):
            clock.set(jump)
            time.sleep(2.5)
            assert far.exec(ident, ["true"]).exit_code == 0, "what it writes is taken"
            assert back.exec(other, ["true"]).exit_code == 0, "what it is shown is taken"
    finally:
        for name in clock.env:
            daemon.env.pop(name, None)
        c.hosts[1].kill("berthd")
        c.hosts[1].start()
