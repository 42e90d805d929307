"""What a sandbox may reach: nothing, unless a policy names it; and every way around that is refused, and said."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import images
import router
from client import Api, ApiError
from marks import limit, only
from server import TOP, die_with_parent, wait_until
from test_check import sql

sys.path.insert(0, str(TOP / "tests/egress"))
import world  # noqa: E402

NAMES = ["api.example.com", "www.example.com", "x.example.net", "evil.example.org"]
RULES = [{"host": "api.example.com", "ports": [80, 443, 7000]}, {"host": "*.example.net"}]
ALLOW = {"mode": "allow", "rules": RULES}
SMALL = {"memory_mb": 64, "disk_mb": 64}
DEV_ENV = {}
outside = None


class Outside(world.Outside):
    """Servers at a public address, in a namespace that ends with the process that holds it."""

    def __init__(self):
        at = os.getpid() % 60 * 4
        here, there, link = f"203.0.113.{at + 1}", f"203.0.113.{at + 2}", f"bt{os.getpid()}"
        self.holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"], preexec_fn=die_with_parent)
        wait_until(lambda: os.readlink(f"/proc/{self.holder.pid}/ns/net") != os.readlink("/proc/self/ns/net"), 10, "a namespace")
        enter = ["nsenter", "-t", str(self.holder.pid), "-n"]
        world.sh("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid))
        world.sh("ip", "addr", "add", here + "/30", "dev", link)
        world.sh("ip", "link", "set", link, "up")
        world.sh(*enter, "ip", "addr", "add", there + "/30", "dev", "eth0")
        world.sh(*enter, "ip", "link", "set", "eth0", "up")
        work = pathlib.Path(tempfile.mkdtemp(prefix="berth-outside-"))
        work.chmod(0o711)
        self.here = here
        zone = {n: [there] for n in NAMES} | {"inner.example.net": ["127.0.0.1"], "meta.example.net": ["169.254.169.254"],
                                              "host.example.net": ["10.0.0.1"], "self.example.net": [here]}
        super().__init__(work, enter, zone, NAMES, there)
        (work / "ca.pem").chmod(0o644)

    def close(self):
        super().close()
        self.holder.kill()
        self.holder.wait()
        shutil.rmtree(self.work, ignore_errors=True)


def set_up():
    global outside
    outside = Outside()
    DEV_ENV.update(BERTH_EGRESS_RESOLVER=outside.address + ":53", BERTH_EGRESS_TRUST=str(outside.work / "ca.pem"))


def tear_down():
    outside.close()


def make(s, network=None, api=None, **more):
    """One that also trusts the CA of the outside's own servers."""
    outside.forget()
    box = (api or s.api).create(images.have(s, "curl"), **SMALL, **more, **({"network": network} if network else {}))
    r = s.api.exec(box, "cat >> /etc/ssl/certs/ca-certificates.crt", stdin=(outside.work / "ca.pem").read_text())
    assert r.exit_code == 0, dict(r)
    return box


def put(s, box, policy, api=None):
    return (api or s.api).call("PUT", f"/v1/sandboxes/{box}/network", policy)


def curl(s, box, url):
    return s.api.exec(box, ["curl", "-sS", "--fail-with-body", "-m", "20", url], timeout_ms=40000)


def meant(s, box, name):
    """The address that means this name, to this box."""
    said = s.api.exec(box, ["nslookup", "-type=a", name]).out.decode()
    return re.findall(r"198\.1[89]\.[0-9.]+", said)[0]


def reaches(s, box, url):
    r = curl(s, box, url)
    assert r.exit_code == 0, dict(r)
    return json.loads(r.out)


def event(s, box, kind, name=None):
    def found():
        return next((e for e in s.api.get(f"/v1/sandboxes/{box}/security")["events"]
                     if e["kind"] == kind and name in (None, e["name"])), None)
    wait_until(found, 30, f"the event {kind} {name}")
    return found()


def user(s, name="somebody"):
    return Api(s.port, s.api.call("POST", "/v1/keys", {"name": name, "role": "user"})["key"])


def ids(s, daemon):
    """(user, groups) of a daemon: all of its user ids are this one."""
    told = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{s.pid(daemon)}/status").read_text().split("\n") if ":\t" in line)
    users, groups = {*told["Uid"].split()}, {*told["Gid"].split(), *told["Groups"].split()}
    assert len(users) == 1, told["Uid"]
    return int(users.pop()), {int(g) for g in groups}


TRIES = """
import socket, sys
def try_it(what, path):
    try:
        if what == "connect":
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(path)
        elif what == "stream":
            socket.socket(socket.AF_UNIX).connect(path)
        else:
            open(path, "rb").close()
        return "done"
    except PermissionError:
        return "refused"
    except IsADirectoryError:
        return "done"
for tried in sys.argv[1:]:
    print(try_it(*tried.split(":")))
"""


def tries(uid, gid, *what):
    done = subprocess.run(["/usr/bin/python3", "-c", TRIES, *what], user=uid, group=gid, extra_groups=[], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(zip(what, done.stdout.split()))


def test_what_reads_strangers_bytes_is_another_user_than_berthd(s):
    wait_until(lambda: s.pid("berthd") and s.pid("berth-egress"), 20, "both")
    (berthd, groups), (egress, own) = ids(s, "berthd"), ids(s, "berth-egress")
    assert len({0, berthd, egress}) == 3 and not groups & own and 0 not in own, (berthd, groups, egress, own)
    gates = [f"connect:{s.dir}/run/node.sock", f"stream:{s.dir}/run/pg/.s.PGSQL.5432", f"open:{s.dir}/state/secret.key",
             f"open:{s.dir}/berthd.conf", f"open:/proc/{s.pid('berthd')}/mem"]
    assert set(tries(berthd, groups.pop(), *gates[:-1]).values()) == {"done"}, "what berthd has"
    assert set(tries(egress, own.pop(), *gates, f"open:{s.dir}/key").values()) == {"refused"}
    policies = f"connect:{s.dir}/run/egress/policy.sock"
    assert tries(65532, 65532, policies) == {policies: "refused"}, "another user does not even reach it"


def test_nothing_leaves_a_sandbox_that_names_nothing(s):
    box = make(s)
    got = s.api.get(f"/v1/sandboxes/{box}/network")
    assert (got["mode"], got["in_force"], got["phase"]) == ("none", True, "bootstrap"), got
    own = s.api.exec(box, "hostname").out.decode().strip()
    assert curl(s, box, f"http://{own}:1/").exit_code == 7, "its own name is known inside, and nothing listens there"
    assert curl(s, box, "http://api.example.com/").exit_code != 0
    e = event(s, box, "name", "api.example.com")
    assert e["sandbox"] == box and e["port"] == 53 and e["rule"] == "no rule", e
    assert own not in [e["name"] for e in s.api.get(f"/v1/sandboxes/{box}/security")["events"]]
    assert not outside.seen(), outside.seen()
    started = s.api.exec(box, "tr '\\0' ' ' < /proc/1/cmdline; test -s /etc/berth/ca.pem && echo trusted").out.decode()
    assert "CERTIFICATE" not in started and started.endswith("trusted\n") and len(started.split()) < 8, started


@limit(120)
def test_allowed_names_work_with_http_and_tls(s):
    box = make(s)
    assert put(s, box, ALLOW)["in_force"], "a change is answered when it is in force"
    assert reaches(s, box, "http://api.example.com/plain")["path"] == "/plain"
    assert reaches(s, box, "http://x.example.net/wild")["path"] == "/wild"
    assert reaches(s, box, "https://api.example.com/tls")["path"] == "/tls"
    assert s.api.exec(box, f"echo raw | nc -w 5 {meant(s, box, 'api.example.com')} 7000").out == b"raw\n"
    wait_until(lambda: s.api.get(f"/v1/sandboxes/{box}/network")["usage"]["requests"] >= 2, 30, "usage")
    put(s, box, {"mode": "allow", "rules": [{"host": "www.example.com"}]})
    assert curl(s, box, "http://api.example.com/").exit_code != 0, "the next connection"
    assert reaches(s, box, "http://www.example.com/")["path"] == "/"


@limit(120)
def test_open_is_every_public_address_and_no_other(s):
    box = make(s, {"mode": "open"})
    got = s.api.get(f"/v1/sandboxes/{box}/network")
    assert (got["mode"], got["in_force"]) == ("open", True) and "rules" not in got, got
    assert s.api.get(f"/v1/sandboxes/{box}")["network"] == {"mode": "open"}
    assert {b["network"]["mode"] for b in s.api.sandboxes() if b["id"] == box} == {"open"}, "in the list, too"
    assert reaches(s, box, "http://evil.example.org/plain")["path"] == "/plain"
    assert reaches(s, box, "https://www.example.com/tls")["path"] == "/tls"
    assert reaches(s, box, f"http://{outside.address}/ip")["path"] == "/ip"
    for url, kind, name in (("http://meta.example.net/", "inner_address", "meta.example.net"),
                            ("http://self.example.net/", "inner_address", "self.example.net"),
                            (f"http://{outside.here}/", "inner_address", outside.here),
                            ("http://169.254.169.254/", "address", "169.254.169.254"),
                            ("http://100.64.0.3/", "address", "100.64.0.3")):
        assert curl(s, box, url).exit_code != 0, url
        event(s, box, kind, name)
    status, out, err = s.berth("show", box)
    assert status == 0 and re.search(rb"^network +open$", out, re.M), (out, err)
    status, out, err = s.berth("network", "set", box)
    assert status == 0 and b"reaches    nothing" in out, (out, err)
    assert curl(s, box, "http://evil.example.org/").exit_code != 0, "the next connection"
    assert s.api.get(f"/v1/sandboxes/{box}")["network"] == {"mode": "none"}
    status, out, err = s.berth("network", "set", "--open", box)
    assert status == 0 and b"everything that is public" in out, (out, err)
    status, out, err = s.berth("network", "set", "--open", box, "api.example.com")
    assert status != 0 and b"cannot both" in err, err


def test_open_is_asked_for_by_that_word(s):
    wget = ("curl", "-sS", "-m", "20", "http://evil.example.org/run")
    status, out, err = s.berth("run", "--network", "open", images.have(s, "curl"), "--", *wget)
    assert status == 0 and json.loads(out)["path"] == "/run", (out, err)
    assert s.berth("run", images.have(s, "curl"), "--", *wget)[0] != 0, "never by default"
    box = s.berth("create", "--network", "allow", "--allow", "api.example.com:80", images.have(s, "curl"))[1].decode().strip()
    assert s.api.get(f"/v1/sandboxes/{box}/network")["rules"] == [{"host": "api.example.com", "ports": [80]}]
    s.api.call("PUT", f"/v1/sandboxes/{box}/network", {"mode": "allow"})
    assert b"reaches    nothing: the list is empty\n" in s.berth("network", "show", box)[1]
    s.api.delete(box)
    for wrong, says in ((("--network", "allow"), b"--allow NAME"), (("--network", "all"), b"mode must be"), (("--network", "open", "--allow", "a.example.com"), b"cannot both")):
        status, out, err = s.berth("run", *wrong, images.have(s, "curl"), "--", "true")
        assert status != 0 and says in err, (wrong, err)
    try:
        s.api.create(images.have(s, "curl"), network={"mode": "open", "rules": [{"host": "a.example.com"}]})
        assert False, "rules in mode open"
    except ApiError as e:
        assert "has no rules" in str(e), e


@limit(180)
def test_every_way_around_is_refused_and_said(s):
    box, other = make(s, ALLOW), make(s, ALLOW)
    address = s.api.exec(box, "ip -4 addr show dev eth0 | sed -n 's/.*inet \\([0-9.]*\\).*/\\1/p'").out.decode().strip()
    neighbour = s.api.exec(other, "ip -4 addr show dev eth0 | sed -n 's/.*inet \\([0-9.]*\\).*/\\1/p'").out.decode().strip()
    assert address and neighbour and address != neighbour, (address, neighbour)
    s.api.exec(other, "nc -l -p 9999 -e cat &", background=True)
    wrong = {outside.address: 80, outside.here: s.port, "169.254.169.254": 80, "10.0.0.1": 80, neighbour: 9999, "100.64.0.1": 80,
             "1.1.1.1": 443, "198.18.3.3": 80}
    for where, port in wrong.items():
        r = s.api.exec(box, f"echo GET / | nc -w 3 {where} {port}", timeout_ms=20000)
        assert not r.out, (where, dict(r))
        event(s, box, "address", where)
    api = meant(s, box, "api.example.com")
    r = s.api.exec(box, f"printf 'GET / HTTP/1.1\\r\\nHost: evil.example.org\\r\\n\\r\\n' | nc -w 3 {api} 80")
    assert b"403" in r.out, dict(r)
    event(s, box, "host", "evil.example.org")
    s.api.exec(box, f"echo {api} evil.example.org >> /etc/hosts")
    assert curl(s, box, "https://evil.example.org/").exit_code != 0
    event(s, box, "sni", "evil.example.org")
    for name in ("inner", "meta", "host", "self"):
        assert curl(s, box, f"http://{name}.example.net/").exit_code != 0
        event(s, box, "inner_address", f"{name}.example.net")
    assert curl(s, box, "http://api.example.com:8080/").exit_code != 0
    event(s, box, "port", "api.example.com")
    s.api.exec(box, f"timeout 3 tftp -g -r x -l /tmp/x {outside.address} 443")  # UDP, as QUIC is
    event(s, box, "udp", outside.address)
    long = ".".join(["a" * 50] * 3) + ".example.net"
    s.api.exec(box, f"nslookup {long}")
    event(s, box, "dns_length")
    assert s.api.exec(box, "ping -c 1 -W 1 1.1.1.1").exit_code != 0
    assert not [r for r in outside.seen() if r["kind"] != "dns"], outside.seen()


def test_a_policy_at_create_is_there_with_the_first_command(s):
    box = make(s, ALLOW)
    assert s.api.get(f"/v1/sandboxes/{box}/network")["in_force"]
    assert reaches(s, box, "http://api.example.com/first")["path"] == "/first"


def test_what_may_be_asked_for(s):
    mine = user(s)
    box = make(s, api=mine)
    for policy, status in (({"mode": "allow", "rules": [{"host": "127.0.0.1"}]}, 403),
                           ({"mode": "allow", "max_requests": -1}, 400), ({"mode": "all"}, 400),
                           ({"mode": "allow", "rules": [{"host": "*.com"}]}, 400)):
        try:
            put(s, box, policy, mine)
        except ApiError as e:
            assert e.status == status, (policy, e)
        else:
            raise AssertionError(f"{policy} was taken")
    try:
        mine.create("base", **SMALL, network={"mode": "allow", "rules": [{"host": "10.0.0.1"}]})
    except ApiError as e:
        assert e.status == 403, e
    assert put(s, box, {"mode": "allow", "rules": [{"host": outside.address, "ports": [80]}]})["in_force"], "an admin may"
    assert reaches(s, box, f"http://{outside.address}/by-address")["path"] == "/by-address"
    try:
        user(s, "another").get(f"/v1/sandboxes/{box}/network")
    except ApiError as e:
        assert e.status == 404, e


def test_bootstrap_then_locked(s):
    mine = user(s, "locker")
    box = make(s, {"mode": "allow", "rules": [{"host": "api.example.com"}], "bootstrap": [{"host": "www.example.com"}]}, mine)
    assert reaches(s, box, "http://www.example.com/")["path"] == "/"
    got = mine.call("POST", f"/v1/sandboxes/{box}/network/lock")
    assert got["phase"] == "locked" and got["in_force"], got
    assert curl(s, box, "http://www.example.com/").exit_code != 0
    assert reaches(s, box, "http://api.example.com/")["path"] == "/"
    try:
        put(s, box, ALLOW, mine)
    except ApiError as e:
        assert e.status == 409, e
    else:
        raise AssertionError("a locked policy was changed")


@limit(180)
def test_it_is_in_force_again_whoever_was_killed(s):
    box = make(s, ALLOW)
    for daemon in ("berth-egress", "berthd", "berth-node"):
        s.kill(daemon)

        def back():
            try:
                return s.api.get(f"/v1/sandboxes/{box}/network")["in_force"] and reaches(s, box, "http://api.example.com/back")
            except (ApiError, AssertionError, OSError):
                return False
        time.sleep(0.5)
        wait_until(back, 60, f"in force after {daemon}")


@limit(120)
def test_asleep_and_awake_it_is_the_same(s):
    box = make(s, ALLOW)
    s.api.call("POST", f"/v1/sandboxes/{box}/sleep")
    got = s.api.get(f"/v1/sandboxes/{box}/network")
    assert not got["in_force"] and "does not run" in got["reason"], got
    assert reaches(s, box, "http://api.example.com/awake")["path"] == "/awake"
    assert s.api.exec(box, 'grep -cw "$(hostname)" /etc/hosts').out == b"1\n", "its own name, once"
    assert s.api.exec(box, "rm /etc/hosts && mkfifo /etc/hosts").exit_code == 0
    s.api.call("POST", f"/v1/sandboxes/{box}/sleep")
    assert s.api.exec(box, ["echo", "up"]).out == b"up\n", "whatever it finds where a file should be"


@limit(120)
def test_a_secret_is_seen_by_the_server_and_by_nobody_inside(s):
    token = "tok-" + os.urandom(12).hex()
    s.api.call("PUT", "/v1/secrets/api-token", {"host": "api.example.com", "header": "Authorization", "value": "Bearer " + token,
                                                "methods": ["GET"], "paths": ["/v1/*"]})
    assert token not in json.dumps(s.api.get("/v1/secrets"))
    box = make(s, ALLOW | {"secrets": ["api-token"]})
    got = reaches(s, box, "https://api.example.com/v1/me")
    assert outside.seen("request")[-1]["headers"]["Authorization"] == "Bearer " + token
    assert got["you_sent"].endswith("*" * len(token)), got
    reaches(s, box, "https://api.example.com/else")
    assert "Authorization" not in outside.seen("request")[-1]["headers"]
    inside = s.api.exec(box, f"grep -rl {token} / --exclude-dir=proc --exclude-dir=sys 2>/dev/null; env; cat /proc/1/environ")
    assert token.encode() not in inside.out, dict(inside)
    logs = "".join(p.read_text(errors="replace") for p in pathlib.Path(s.dir, "log").iterdir())
    assert token not in logs, "in a log"
    assert b"BEGIN CERTIFICATE" in s.api.exec(box, "cat /etc/berth/ca.pem").out
    s.api.call("DELETE", "/v1/secrets/api-token")
    why = 'there is no secret "api-token"'
    wait_until(lambda: s.api.get(f"/v1/sandboxes/{box}/network")["reason"] == why, 60, "the reason")
    assert curl(s, box, "https://api.example.com/v1/me").exit_code != 0
    got = put(s, box, ALLOW | {"secrets": ["api-token"]})
    assert (got["in_force"], got["reason"]) == (False, why), "told to be in force, and nothing passes"
    assert put(s, box, ALLOW)["in_force"] and reaches(s, box, "https://api.example.com/again")["path"] == "/again"


@only("crun")
def test_the_limits_of_a_profile_hold_and_are_changed_live(s):
    box = make(s, ALLOW | {"max_requests": 100}, requests=2)
    for path in ("/1", "/2"):
        assert reaches(s, box, "https://api.example.com" + path)["path"] == path, "requests in TLS are counted, too"
    assert curl(s, box, "https://api.example.com/3").exit_code == 22
    event(s, box, "max_requests")
    told = s.api.get(f"/v1/sandboxes/{box}/network")["version"]
    assert s.api.call("PATCH", "/v1/sandboxes/" + box, {"requests": 3})["limits_in_force"]
    got = s.api.get(f"/v1/sandboxes/{box}/network")
    assert got["version"] > told and got["in_force"], "an older one can no longer take its place"
    assert curl(s, box, "https://api.example.com/4").exit_code == 0, "what is in force is so by now"
    assert curl(s, box, "https://api.example.com/5").exit_code == 22
    wait_until(lambda: s.api.get(f"/v1/sandboxes/{box}/usage")["requests"] == 3, 30, "usage")


@only("crun")
def test_a_command_tells_the_requests_that_were_made_while_it_ran(s):
    """And says that it does not know where it cannot: null, never 0."""
    box = make(s, ALLOW)
    get = "for i in {}; do curl -sS -m 15 -o /dev/null http://api.example.com/$i; done"

    def told(paths):
        """berth-egress has 200 ms to say it; of one that stands still for longer it is not known."""
        r = s.api.exec(box, get.format(paths))
        assert r.exit_code == 0 and r.usage["alone"], dict(r)
        return r if r.usage["requests"] is not None else None
    for paths in ("1 2 3", "", "4"):
        r = wait_until(lambda: told(paths), 60, "a command whose requests are told")
        assert r.usage["requests"] == len(paths.split()), (paths, r.usage)
    assert s.api.get(f"/v1/sandboxes/{box}/execs/{r.id}")["usage"]["requests"] == 1, "its record keeps it"
    assert s.api.exec(make(s), "true").usage["requests"] is None, "no policy: nothing counts"

    def kill_between():
        wait_until(lambda: any(r["path"] == "/5" for r in outside.seen("request")), 30, "a request of the command")
        s.kill("berth-egress")
        s.api.call("PUT", f"/v1/sandboxes/{box}/files?path=/killed", b"")
    killer = threading.Thread(target=kill_between)
    killer.start()
    r = s.api.exec(box, get.format("5") + "; until [ -e /killed ]; do sleep 0.1; done")
    killer.join()
    wait_until(lambda: s.api.get(f"/v1/sandboxes/{box}/network")["in_force"], 30, "a policy in force again")
    assert r.exit_code == 0 and r.usage["requests"] is None, "what one berth-egress counted cannot be compared with another's"
    assert wait_until(lambda: told("6"), 60, "the same of the new one").usage["requests"] == 1


@only("crun")
def test_limits_hold_over_keep_alive(s):
    box = make(s, ALLOW | {"max_requests": 2})
    ask = f"printf 'GET /%s HTTP/1.1\\r\\nHost: api.example.com\\r\\n\\r\\n' 1 2 3 | nc -w 3 {meant(s, box, 'api.example.com')} 80"
    s.api.exec(box, ask)
    event(s, box, "max_requests")
    assert len(outside.seen("request")) <= 2, outside.seen()


@only("crun")
def test_a_refusal_is_an_event_for_whoever_follows(s):
    box = make(s)
    stream = s.api.events("GET", "/v1/events")
    heard = threading.Event()

    def ask():  # again and again: when somebody follows is not told
        while not heard.wait(1):
            curl(s, box, "http://evil.example.org/")
    asker = threading.Thread(target=ask)
    asker.start()
    try:
        data = next(data for name, data in stream if name == "security" and data["sandbox"] == box)
    finally:
        heard.set()
        asker.join()
    assert data["name"] == "evil.example.org", data


@only("crun")
def test_the_command_shows_what_is_enforced_and_says_what_is_wrong(s):
    box = s.api.create("base", **SMALL)
    policy = pathlib.Path(s.dir, "policy.json")
    policy.write_text(json.dumps({"mode": "allow", "rules": [{"host": "api.example.com", "ports": [443, 8443]}], "secrets": ["gone"],
                                  "max_requests": 9}))
    _, out, _ = s.berth("network", "set", box, "--file", str(policy))
    for part in (b"reaches    only what is listed here\n", b"locked     no: this can be changed\n",
                 b'in force   no: there is no secret "gone"', b"allow      api.example.com:443,8443\n", b"secret     gone\n", b"max_requests 9\n"):
        assert part in out, out
    assert s.berth("network", "set", box)[0] == 0
    wait_until(lambda: s.berth("network", "show", box)[1] == b"reaches    nothing\nlocked     no: this can be changed\nin force   yes\n"
               b"used       0 connections, 0 requests, 0 bytes out, 0 bytes in\n", 60, "a policy that allows nothing, in force")
    for wrong, said in (("https://api.example.com", b"without https://"), ("api.example.com/v1", b"without https://"), ("*", b"*.example.com"),
                        ("api.example.com:70000", b"65535")):
        code, _, err = s.berth("network", "set", box, wrong)
        assert code == 125 and said in err, (wrong, err)
    status, answer, _ = s.api.request("PUT", f"/v1/sandboxes/{box}/network", {"mode": "allow", "rules": ["api.example.com"]})
    assert status == 400 and "no object" in answer["message"], answer
    s.api.delete(box)
    code, out, err = s.berth("limits", box)
    assert (code, out) == (125, b"") and b"is gone" in err, (code, out, err)
    code, out, _ = s.berth("usage", box)
    assert code == 0 and b"gone" in out, out


@only("crun")
@limit(240)
def test_what_was_used_and_refused_while_the_database_was_away_is_written_when_it_is_back(s):
    box = make(s, ALLOW)
    s.api.exec(box, "sleep 1; curl -s http://api.example.com/away; nslookup evil.example.org", background=True)
    for _ in range(15):
        with contextlib.suppress(ProcessLookupError, AssertionError):  # in the moment between two of them
            s.kill("postgres")
        time.sleep(0.2)
    wait_until(lambda: outside.seen("request"), 30, "the request")
    wait_until(s.healthy, 120, "the server healthy again")  # who was killed so often is started ever later

    def used():
        try:
            return s.api.get(f"/v1/sandboxes/{box}/usage")["requests"] == 1
        except ApiError:
            return False  # a backend outlives the postgres that was killed last, for a moment
    wait_until(used, 60, "what was used")
    assert event(s, box, "name", "evil.example.org")["count"] >= 1


@only("crun")
@limit(180)
def test_policies_are_read_together_when_berth_egress_is_back(s):
    boxes = [make(s, ALLOW) for _ in range(6)]
    sql(s, "ALTER SYSTEM SET log_statement = 'all'")
    try:
        sql(s, "SELECT pg_reload_conf()")
        wait_until(lambda: sql(s, "SHOW log_statement") == "all\n", 30, "the postmaster, which tells the others, has read it")
        old = s.pid("berth-egress")
        s.kill("berth-egress")
        wait_until(lambda: s.pid("berth-egress") not in (old, 0), 60, "berth-egress again")
        wait_until(lambda: all(s.api.get(f"/v1/sandboxes/{b}/network")["in_force"] for b in boxes), 60, "all told")
    finally:
        sql(s, "ALTER SYSTEM RESET log_statement")
        sql(s, "SELECT pg_reload_conf()")
    said = pathlib.Path(s.dir, "log/postgres.log").read_text(errors="replace")
    together = [sum(b in line for b in boxes) for line in re.findall(r"execute networks-get.*\n.*parameters: (.*)", said)]
    assert max(together) == len(boxes), together
    assert reaches(s, boxes[0], "http://api.example.com/back")["path"] == "/back"


@only("crun")
def test_of_policies_at_once_each_is_told_what_became_of_it(s):
    box, answers = make(s), []

    def one(i):
        answers.append(put(s, box, {"mode": "allow", "rules": [{"host": f"h{i}.example.com"}]}))
    threads = [threading.Thread(target=one, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    last = max(answers, key=lambda a: a["version"])
    got = s.api.get(f"/v1/sandboxes/{box}/network")
    assert got["in_force"] and (got["version"], got["rules"]) == (last["version"], last["rules"]), (got, answers)
    assert {a["reason"] for a in answers} <= {"", "a newer policy has taken its place"}, answers


@only("crun")
@limit(240)
def test_a_command_of_its_own_sandbox_reaches_what_is_allowed(s):
    def told(words, *args):
        """A refusal is on record a moment later, and `berth run` waits for it no longer than half a second: then once more."""
        def ran():
            code, _, err = s.berth("run", *args)
            return (code, err) if words in err else None
        return wait_until(ran, 90, words)
    ask = (images.have(s, "curl"), "--", "curl", "-sS", "-m", "20", "http://api.example.com/run")
    code, out, err = s.berth("run", "--allow", "*.example.net", "--allow", "api.example.com:80", *ask)
    assert code == 0 and json.loads(out)["path"] == "/run", (code, err)
    code, err = told(b"--allow NAME", *ask)
    assert code == 6 and b"resolve" in err and b"berth: the sandbox may not reach api.example.com (" in err, (code, err)
    seven = "for i in 1 2 3 4 5 6 7; do curl -sm 9 http://n$i.example.com; done; exit 3"
    code, err = told(b"and 2 more", images.have(s, "curl"), "--", "sh", "-c", seven)
    assert code == 3 and err.count(b"may not reach") == 5 and b"and 2 more: berth network events sb_" in err, (code, err)
    code, _, err = s.berth("run", images.have(s, "curl"), "--", "sh", "-c", "curl -sm 9 http://n.example.com; exit 0")
    assert (code, err) == (0, b""), (code, err)  # it went well: its own business
    code, _, err = s.berth("run", "--allow", "http://api.example.com", *ask)
    assert code == 125 and b"without https://" in err, (code, err)


@only("crun")
@limit(120)
def test_one_that_lost_its_link_is_not_said_to_be_in_force(s):
    box = make(s, ALLOW)
    s.signal("berth-node", signal.SIGSTOP)  # it would put another in the router's place
    os.kill(router.holder(s.dir), signal.SIGKILL)
    s.kill("berthd", "berth-node", "berth-egress")
    s.wait_healthy()
    wait_until(lambda: "link" in s.api.get(f"/v1/sandboxes/{box}/network")["reason"], 30, "the reason")
    assert not s.api.get(f"/v1/sandboxes/{box}/network")["in_force"]
    assert curl(s, box, "http://api.example.com/").exit_code != 0
    s.api.call("POST", f"/v1/sandboxes/{box}/sleep")
    assert reaches(s, box, "http://api.example.com/linked")["path"] == "/linked"
    assert s.api.get(f"/v1/sandboxes/{box}/network")["in_force"]
