"""Where new sandboxes go."""
import http.client
import os
import tempfile
import threading
import time

from cell import PORT, error_of
from client import Api, ApiError
from marks import limit
from server import wait_until

CELL = {"hosts": 3}


def hosts_of(c):
    return [host for _, host, _, _ in c.rows()]


def test_new_ones_go_to_all_hosts(c):
    """As soon as this host knows the others: the list of peers is read from time to time, and hosts are drawn."""
    def spread():
        for _ in range(6):
            c.hosts[0].api.create(memory_mb=64)
        count = {h.name: hosts_of(c).count(h.name) for h in c.hosts}
        assert sum(count.values()) <= 120, count
        return all(n >= 2 for n in count.values())
    wait_until(spread, 60, "two on each")
    for b in c.hosts[1].api.sandboxes():
        assert c.hosts[2].api.exec(b["id"], ["true"]).exit_code == 0


def test_a_full_host_is_passed_over(c):
    """Whoever is full says so and writes nothing, and the next one is asked."""
    for h in c.hosts:
        h.configure(sandboxes_max=1)
        h.restart("berthd")
    try:
        for _ in c.hosts:
            c.hosts[0].api.create()
        assert sorted(hosts_of(c)) == ["h1", "h2", "h3"]
        status, code, message = error_of(c.hosts[0].api.request("POST", "/v1/sandboxes", {"image": "base"}))
        assert (status, code) == (503, "busy") and "its limit is 1" in message, message
        assert len(c.rows()) == 3
    finally:
        for h in c.hosts:
            del h.settings["sandboxes_max"]
            h.configure()
            h.restart("berthd")


def test_a_host_where_fewer_files_may_be_open_is_passed_over(c):
    """Its own word for it is a trigger's here: berth-node runs as root, and may raise its limit."""
    sql = c.postgres[0].sql
    sql("CREATE FUNCTION few_files() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN NEW.open_files = 1000; RETURN NEW; END $$")
    sql("CREATE TRIGGER few_files BEFORE UPDATE ON host FOR EACH ROW WHEN (NEW.id <> 'h3') "
        "EXECUTE FUNCTION few_files()")
    try:
        wait_until(lambda: sql("SELECT count(*) FROM host WHERE open_files = 1000") == [["2"]], 30, "two hosts with few files")
        made = [c.hosts[0].api.create(open_files=2000) for _ in range(6)]
        assert hosts_of(c) == ["h3"] * 6, hosts_of(c)
        status, code, message = error_of(c.hosts[0].api.request(
            "POST", "/v1/sandboxes", {"image": "base", "open_files": 2000, "host": "h1"}))
        assert (status, code) == (400, "invalid") and "open_files" in message, message
        for ident in made:
            c.hosts[0].api.delete(ident)
    finally:
        sql("DROP FUNCTION few_files() CASCADE")


def test_a_wish_for_a_host_is_kept(c):
    for h in c.hosts:
        ident = c.hosts[0].api.create(host=h.name)
        assert h.pids(ident)
    status, code, message = error_of(c.hosts[0].api.request("POST", "/v1/sandboxes", {"image": "base", "host": "h9"}))
    assert (status, code) == (404, "not_found") and "h9" in message, message


def test_only_hosts_that_have_the_image_are_asked(c):
    c.import_image("rare", hosts=[c.hosts[2]])
    c.primary.sql("DELETE FROM image_copy WHERE host <> 'h3'")
    try:
        for h in c.hosts:
            assert c.hosts[2].pids(h.api.create("rare"))
        c.primary.sql("DELETE FROM image_copy")
        assert error_of(c.hosts[0].api.request("POST", "/v1/sandboxes", {"image": "rare"}))[0] == 503
        assert error_of(c.hosts[0].api.request("POST", "/v1/sandboxes", {"image": "none"}))[0] == 404
    finally:
        c.primary.sql("INSERT INTO image_copy SELECT DISTINCT digest, h.id FROM image, host h")


def test_a_host_that_is_down_gets_none(c):
    c.hosts[1].kill("berthd")
    for _ in range(8):
        ident = c.hosts[0].api.create()
        assert not c.hosts[1].pids(ident)
    assert "h2" not in hosts_of(c)


def test_one_key_makes_one_sandbox_from_all_hosts(c):
    """100 at once, and all answers are the same."""
    got = create_all(c, 100, {"image": "base"}, {"Idempotency-Key": "the-one"})
    assert len(got) == 100 and len(set(map(str, got))) == 1 and got[0][0] == 201, set(map(str, got))
    assert len(c.rows()) == 1
    assert sum(len(h.alive()) for h in c.hosts) == 1


def create_all(c, count, body, headers=None, during=None):
    """So many at once, spread over the hosts, each asked again until there is an answer for good."""
    got = []

    def ask(n):
        end = time.monotonic() + 90
        while time.monotonic() < end:
            try:
                status, answer, _ = c.hosts[n % len(c.hosts)].api.request("POST", "/v1/sandboxes", body, headers)
            except (OSError, http.client.HTTPException):
                assert during, "nothing was killed"
                status = 503  # its host was killed under it
            if status not in ((503, 504) if during else (503,)):
                return got.append((status, answer.get("id", answer)))
            time.sleep(0.2)
        got.append("no answer")
    threads = [threading.Thread(target=ask, args=(n,)) for n in range(count)]
    for t in threads:
        t.start()
    if during:
        during()
    for t in threads:
        t.join()
    return got


def test_one_identity_has_one_sandbox_from_all_hosts(c):
    """100 at once, and all answers name the same one."""
    got = create_all(c, 100, {"image": "base", "identity": {"user": "ann", "session": "s1"}})
    assert len({ident for _, ident in got}) == 1 and {s for s, _ in got} <= {200, 201}, set(got)
    assert [s for s, _ in got].count(201) <= 1
    assert len(c.rows()) == 1 and sum(len(h.alive()) for h in c.hosts) == 1


@limit(180)
def test_the_same_with_a_kill_in_the_middle(c):
    body = {"image": "base", "identity": {"user": "bob", "session": "s2"}}

    def kill():
        time.sleep(0.1)
        c.hosts[1].kill("berthd")
        c.hosts[1].start()
    got = create_all(c, 60, body, {"Idempotency-Key": "bob-s2"}, kill)
    assert len({str(ident) for _, ident in got}) == 1 and {s for s, _ in got} <= {200, 201}, set(map(str, got))
    wait_until(lambda: len(c.rows()) == 1 and sum(len(h.alive()) for h in c.hosts) == 1, 60, "one, and nothing that was begun")


def test_what_is_wrong_with_a_request_is_said(c):
    for body in ({}, {"image": "base", "memory_mb": 1}, {"image": "base", "x": 1}):
        assert c.hosts[0].api.request("POST", "/v1/sandboxes", body)[0] == 400, body
    api = Api(PORT, c.key, address=c.hosts[0].address)
    assert api.request("POST", "/v1/sandboxes", "not json")[0] == 400
    try:
        api.create("x" * 300)
        raise AssertionError("taken")
    except ApiError as e:
        assert e.status == 400, e


def test_where_no_host_takes_it_only_one_that_is_there_is_found(c):
    there = c.hosts[0].api.call("POST", "/v1/sandboxes", {"image": "base", "name": "there"})
    for h in c.hosts:
        c.hosts[0].api.call("POST", f"/v1/hosts/{h.name}/drain")
    try:
        for h in c.hosts:
            assert h.api.request("POST", "/v1/sandboxes", {"image": "base", "name": "there"})[:2] == (200, there)
            status, body, headers = h.api.request("POST", "/v1/sandboxes", {"image": "base", "name": "not-there"})
            assert (status, body["code"]) == (503, "busy") and headers["Retry-After"], body
        assert len(c.rows()) == 1
    finally:
        for h in c.hosts:
            c.hosts[0].api.call("POST", f"/v1/hosts/{h.name}/undrain")
    assert c.hosts[1].api.request("POST", "/v1/sandboxes", {"image": "base", "name": "not-there"})[0] == 201


def test_a_host_without_an_engine_is_passed_over_and_says_so(c):
    """Its berth-node finds every program but one: PATH is a directory of links."""
    lame, names = c.hosts[1], {}
    for directory in reversed(os.environ["PATH"].split(":")):
        if os.path.isdir(directory):
            names.update({n: os.path.join(directory, n) for n in os.listdir(directory)})
    there = lame.api.create(host="h2", runtime="crun")
    with tempfile.TemporaryDirectory() as links:
        os.chmod(links, 0o755)
        for name, path in names.items():
            if name != "crun":
                os.symlink(path, os.path.join(links, name))
        lame.node.env = {"PATH": links}
        lame.restart("node")
        try:
            wait_until(lambda: lame.api.get("/v1/hosts/h2")["capacity"]["runtimes"] == "runsc", 60, "it says so")
            status, said, _ = lame.api.request("GET", "/v1/health")
            assert (status, said["engines"]) == (200, ["runsc"]), said
            status, said, _ = Api(PORT, None, address=lame.address).request("GET", "/v1/health")
            assert status == 200 and "engines" not in said, said
            status, said, _ = Api(PORT, "berth_wrong", address=lame.address).request("GET", "/v1/health")
            assert status == 200 and "engines" not in said, said
            assert c.hosts[0].api.get("/v1/health")["engines"] == ["crun", "runsc"]
            for h in c.hosts:
                for _ in range(3):
                    assert not lame.pids(h.api.create(memory_mb=64, runtime="crun"))
                status, why, _ = h.api.request("POST", "/v1/sandboxes", {"image": "base", "host": "h2", "runtime": "crun"})
                assert (status, why["code"], why["reason"]) == (501, "unsupported", "engine_missing"), why
                assert "host h2 has no crun" in why["message"] and "apt install crun" in why["remediation"], why
            for h in ("h1", "h3"):
                lame.api.call("POST", f"/v1/hosts/{h}/drain")
            status, why, _ = lame.api.request("POST", "/v1/sandboxes", {"image": "base", "name": "nowhere", "runtime": "crun"})
            assert (status, why["reason"]) == (501, "engine_missing"), why
            assert lame.api.exec(there, ["echo", "on"]).out == b"on\n", "what it has goes on"
        finally:
            for h in ("h1", "h3"):
                lame.api.call("POST", f"/v1/hosts/{h}/undrain")
            lame.node.env = {}
            lame.restart("node")
    wait_until(lambda: lame.api.get("/v1/hosts/h2")["capacity"]["runtimes"] == "crun runsc", 60, "it has it again")


def test_a_draining_host_takes_nothing_new(c):
    there = c.hosts[0].api.create(host="h2")
    assert c.hosts[2].api.call("POST", "/v1/hosts/h2/drain")["state"] == "draining"
    for _ in range(8):
        assert not c.hosts[1].pids(c.hosts[1].api.create(memory_mb=64))
    status, why, _ = c.hosts[0].api.request("POST", "/v1/sandboxes", {"image": "base", "host": "h2"})
    assert (status, why.get("reason")) == (503, "host_draining"), why
    assert c.hosts[0].api.exec(there, ["echo", "on"]).out == b"on\n", "what it has goes on"
    states = {h["id"]: (h["state"], h["sandboxes"]) for h in c.hosts[0].api.get("/v1/hosts")["hosts"]}
    assert states["h2"] == ("draining", 1), states
    c.hosts[1].restart("berthd")
    assert c.hosts[0].api.get("/v1/hosts/h2")["draining"], "also after a restart"
    c.hosts[2].api.call("POST", "/v1/hosts/h2/undrain")
    assert c.hosts[1].pids(c.hosts[0].api.create(host="h2"))
    user = Api(PORT, c.make_key("someone", "user"), address=c.hosts[0].address)
    assert user.request("POST", "/v1/hosts/h2/drain")[0] == 403
    assert c.hosts[0].api.request("POST", "/v1/hosts/h9/drain")[0] == 404
