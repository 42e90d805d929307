"""What a sandbox may reach is asked and changed at any host, and goes with it to another one."""
import pathlib
import shutil
import sys
import tempfile

import cell
from marks import limit
from server import TOP, wait_until

sys.path.insert(0, str(TOP / "tests/egress"))
import world  # noqa: E402

PUBLIC = "203.0.113."  # what is private is refused, whoever names it
ALLOW = {"mode": "allow", "rules": [{"host": "api.example.com", "ports": [80]}]}
CELL = {"hosts": 2}


class Connected(cell.Cell):
    """With servers at a public address on the bridge, and a resolver that knows their names."""

    def settings_of(self, host):
        return {**super().settings_of(host), "lease": "on"}

    def egress_settings(self):
        return {"resolver": f"{PUBLIC}1:53"}

    def start(self):
        super().start()
        cell.run("ip", "address", "add", f"{PUBLIC}1/24", "dev", "br0")
        for n, h in enumerate(self.hosts):
            h.inside("ip", "address", "add", f"{PUBLIC}{n + 2}/24", "dev", "eth0")
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="berth-outside-"))
        self.outside = world.Outside(self.work, [], {"api.example.com": [PUBLIC + "1"]}, ["api.example.com"], PUBLIC + "1")
        return self

    def stop(self):
        self.outside.close()
        shutil.rmtree(self.work)
        return super().stop()


def make_cell(*args, **more):
    return Connected(*args, **more)


# A static busybox cannot load what looks names up for its wget; its nslookup asks by itself.
FETCH = r"""
at=$(nslookup -type=a api.example.com | sed -n 's/^Address: *\(198\.[0-9.]*\)$/\1/p')
[ "$at" ] && printf 'GET / HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n' | nc -w 10 $at 80 | grep -q ' 200 '
"""


def reaches(api, ident):
    r = api.exec(ident, FETCH, timeout_ms=30000)
    assert r.exit_code in (0, 1), dict(r)
    return r.exit_code == 0


def network(api, ident):
    return api.get(f"/v1/sandboxes/{ident}/network")


def refused(api, ident):
    return [e["name"] for e in api.get(f"/v1/sandboxes/{ident}/security")["events"]]


@limit(120)
def test_any_host_is_asked_and_told_what_a_sandbox_may_reach(c):
    near, far = (h.api for h in c.hosts)
    ident = near.create(host="h1")
    assert not reaches(far, ident)
    wait_until(lambda: "api.example.com" in refused(far, ident), 30, "the refusal, told by the other host")
    assert far.call("PUT", f"/v1/sandboxes/{ident}/network", ALLOW)["in_force"]
    assert reaches(far, ident)
    wait_until(lambda: network(far, ident) == network(near, ident), 30, "the same from both, when what was used is counted")
    locked = {"mode": "allow", "rules": [], "bootstrap": ALLOW["rules"]}
    far.call("PUT", f"/v1/sandboxes/{ident}/network", locked)
    assert far.call("POST", f"/v1/sandboxes/{ident}/network/lock")["phase"] == "locked"
    assert not reaches(near, ident)


@limit(180)
def test_a_sandbox_of_a_lost_host_has_its_policy_at_the_next_one(c):
    h1, h2 = c.hosts
    ident = h1.api.create(host="h1", network=ALLOW)
    other = h1.api.create(host="h1")
    assert reaches(h1.api, ident)
    h1.cut_off()
    wait_until(lambda: {i: h for i, h, _, s in c.rows() if s == "ready"} == {ident: "h2", other: "h2"}, 90, "both at h2")
    wait_until(lambda: network(h2.api, ident)["in_force"], 30, "its policy in force")
    assert reaches(h2.api, ident) and not reaches(h2.api, other)
    h1.join()
