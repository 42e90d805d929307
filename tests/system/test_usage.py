"""What was used is counted by the kernel, kept when the sandbox is gone, and adds up to what the host says."""
import datetime
import threading

from marks import limit, only
from server import wait_until

BURN = "t=$(cut -d. -f1 /proc/uptime); while [ $(($(cut -d. -f1 /proc/uptime) - t)) -lt %d ]; do :; done"


def usage(s, ident):
    return s.api.get(f"/v1/sandboxes/{ident}/usage")


def host_ms(s):
    return s.api.get("/v1/host")["sandboxes_cpu_ms"]


def burnt(s, box, seconds):
    r = box.exec(BURN % seconds if s.runtime == "crun" else "while :; do :; done", timeout_ms=seconds * 1000 + 500)
    assert r["usage"]["cpu_ms"] > 0, dict(r)
    return r["usage"]["cpu_ms"]


@limit(120)
def test_sandboxes_add_up_to_the_host(s):
    before, host = s.api.get("/v1/usage")["totals"]["cpu_ms"], host_ms(s)
    kept, gone, slept = s.box(), s.box(), s.box()
    for b in (kept, gone, slept):
        burnt(s, b, 2)
    s.api.delete(gone.id)
    s.api.call("POST", f"/v1/sandboxes/{slept.id}/sleep")
    first = usage(s, slept.id)["cpu_ms"]
    burnt(s, slept, 2)  # wakes it: another cgroup
    assert usage(s, slept.id)["cpu_ms"] > first + 10, (first, usage(s, slept.id))
    usage(s, kept.id)
    total, of_host = s.api.get("/v1/usage")["totals"]["cpu_ms"] - before, host_ms(s) - host
    print(f"# sandboxes {total} ms, host {of_host} ms, {100 * (total - of_host) / of_host:+.2f} %", flush=True)
    assert of_host > 300 and abs(total - of_host) <= 0.05 * of_host, (total, of_host)
    for b in (kept, slept):
        s.api.delete(b.id)
    after = usage(s, gone.id)
    assert after["gone"] and after["cpu_ms"] > 100 and after["memory_peak_bytes"] > 0, after
    assert gone.id in [u["sandbox"] for u in s.api.get("/v1/usage?limit=999")["usage"]]


@limit(150)
def test_a_command_has_its_own(s):
    with s.box() as b:
        idle = b.exec("sleep 1")["usage"]
        busy = b.exec("while :; do :; done", timeout_ms=1500)["usage"]
        assert idle["alone"] and busy["alone"], (idle, busy)
        assert busy["cpu_ms"] > 50 and idle["cpu_ms"] < busy["cpu_ms"] / 2, (idle, busy)
        other = b.exec("sleep 1000", background=True)
        assert not b.exec("true")["usage"]["alone"]
        s.api.call("POST", f"/v1/sandboxes/{b.id}/execs/{other['id']}/kill", {})


@limit(150)
def test_memory_and_disk(s):
    with s.box(memory_mb=512) as b:
        b.sh("head -c 41943040 /dev/urandom > /root/x; sync")
        b.exec(["probe", "eat", "100"], timeout_ms=20000)
        wait_until(lambda: abs(usage(s, b.id)["disk_peak_bytes"] / 41943040 - 1) < 0.05, 90, "the disk's count")
        u = usage(s, b.id)
        assert u["memory_peak_bytes"] > 100 << 20, u
        assert 0 < u["memory_average_bytes"] <= u["memory_peak_bytes"], u


@only("crun")
def test_it_is_seen_by_its_owner_alone(s):
    with s.box() as b:
        b.exec(["true"])
        assert usage(s, b.id)["owner"]
        key = s.api.call("POST", "/v1/keys", {"name": "other", "owner": "other", "role": "user"})
        theirs = type(s.api)(s.port, key["key"])
        assert theirs.request("GET", f"/v1/sandboxes/{b.id}/usage")[0] == 404
        assert theirs.get("/v1/usage") == {"usage": [], "next": "", "unreadable": 0, "totals": theirs.get("/v1/usage")["totals"]}


@limit(150)
@only("crun")
def test_what_was_used_survives_both_daemons(s):
    with s.box() as b:
        used = burnt(s, b, 1)
        s.kill("berthd", "berth-node")
        s.wait_healthy()
        b.exec(["true"])
        assert usage(s, b.id)["cpu_ms"] >= used * 0.95, (used, usage(s, b.id))


@limit(90)
def test_what_is_on_a_disk_is_counted_when_somebody_asks_for_it(s):
    with s.box() as b:
        before = s.api.get(f"/v1/sandboxes/{b.id}/usage")
        assert "disk_at" not in before and before["disk_bytes"] < 4 << 20, before
        assert b.exec("true")["usage"]["disk_at"] is None, "a command's: not known as of when"
        written = []
        for _ in range(3):  # each is in the figure that was asked for after it, however soon
            b.sh("head -c 20971520 /dev/urandom >> /root/x")
            u = s.api.get(f"/v1/sandboxes/{b.id}/usage?fresh=1")
            written.append(u["disk_bytes"])
            assert u["disk_at"] > before["seen_at"] and u["disk_peak_bytes"] >= u["disk_bytes"], u
            ran = b.exec("true")["usage"]
            assert ran["disk_at"] == u["disk_at"] and ran["disk_bytes"] >= u["disk_bytes"], (ran, u)
        assert [n >> 20 >= 20 * (i + 1) for i, n in enumerate(written)] == [True] * 3, written
        code, out, err = s.berth("usage", "--fresh", b.id)
        assert code == 0 and b"disk now 60" in out and b"counted at 20" in out, (out, err)
        b.sh("rm /root/x")
        assert s.api.get(f"/v1/sandboxes/{b.id}/usage?fresh=1")["disk_bytes"] < 4 << 20
        # Many at once share a few: no client can have the host write all the time.
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(s.api.get(f"/v1/sandboxes/{b.id}/usage?fresh=1")["disk_at"]))
                   for _ in range(20)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert len(answers) == 20 and len(set(answers)) <= 3, answers
        times = sorted({datetime.datetime.fromisoformat(a[:-1]) for a in answers})
        assert all((b - a).total_seconds() >= 1.9 for a, b in zip(times, times[1:])), answers
        assert s.api.request("GET", f"/v1/sandboxes/{b.id}/usage?fresh=yes")[0] == 400
    status, _, _ = s.api.request("GET", f"/v1/sandboxes/{b.id}/usage?fresh=1")
    assert status == 200  # gone: what was seen last
