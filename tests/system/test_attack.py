"""berth doctor --attack: every probe of the product's own table, from fresh sandboxes, on this engine."""
import glob
import json
import os
import pathlib
import re
import subprocess

from marks import limit, only
from server import wait_until


def attack(s, *args, timeout=170):
    code, out, err = s.berth("doctor", "--attack", "--runtime", s.runtime, "--json", *args, timeout=timeout)
    assert code in (0, 1), err
    return code, json.loads(out)


@limit(180)
def test_nothing_gets_through(s):
    code, told = attack(s)
    through = [p for run in told["runs"] for p in run["probes"] if p["through"]]
    assert (code, told["through"], told["ready"]) == (0, 0, True), through
    assert told["probes"] >= 300 and set(told["engines"]) == {"kernel", "crun", "runsc"}, told["probes"]
    assert all(p["stands_for"] and p["tries"] and p["seen"] for run in told["runs"] for p in run["probes"])
    assert s.api.sandboxes() == [] and not [i for i in s.api.get("/v1/images")["images"] if "attack" in i["name"]]


@only("crun")
def test_a_probe_that_is_none_is_an_error(s):
    code, _, err = s.berth("doctor", "--attack", "--runtime", "crun", "--only", "nosuch")
    assert code == 125 and b"nosuch" in err, (code, err)
    code, _, err = s.berth("doctor", "--only", "bpf")
    assert code == 125 and b"--attack" in err, (code, err)


@only("crun")
def test_one_probe_is_told_in_words(s):
    code, out, err = s.berth("doctor", "--attack", "--runtime", "crun", "--only", "bpf", "--only", "mount-bind")
    assert code == 0 and out.decode().endswith("2 probes, 0 through\n"), (code, out, err)
    assert b"CVE-2021-3490" in out and b"days old" in out, out


@only("crun")
def test_a_user_of_no_rank_may_not(s):
    key = s.api.call("POST", "/v1/keys", {"name": "u", "role": "user"})["key"]
    code, _, err = s.berth("doctor", "--attack", env={"BERTH_API_KEY": key})
    assert code == 125 and b"role user may not" in err, (code, err)


def laid_out(ident):
    """What of a canary is there: directory, queues and memory of both kinds."""
    key = re.escape(str(canary_key(ident)))
    names = [*glob.glob(f"/tmp/berth-canary-{ident}"), *glob.glob(f"/dev/shm/berth-token-{ident}")]
    return names + [k for k in ("shm", "msg") if re.search(rf"^\s*{key}\s", pathlib.Path("/proc/sysvipc", k).read_text(), re.M)]


def canary_key(ident):
    """As src/cli/canary.c makes it, of str_hash()."""
    h = 2166136261
    for c in ident.encode():
        h = (h ^ c) * 16777619 & 0xffffffff
    return h & 0x3fffffff | 0x10000


@only("crun")
@limit(120)
def test_what_a_killed_one_left_is_removed_by_the_next(s):
    killed = subprocess.Popen([s.cli, "doctor", "--attack", "--runtime", "crun"], env={**os.environ, **s.env},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: len(s.api.sandboxes()) >= 2, 60, "its sandboxes")
    killed.kill()
    killed.wait()
    ident = s.api.sandboxes()[0]["labels"]["attack"]
    assert set(laid_out(ident)) >= {f"/tmp/berth-canary-{ident}", f"/dev/shm/berth-token-{ident}", "shm", "msg"}, laid_out(ident)
    code, _, err = s.berth("doctor", "--attack", "--runtime", "crun", "--only", "bpf", timeout=60)
    assert code == 0 and b"was killed" in err, (code, err)
    assert laid_out(ident) == []
    assert s.api.sandboxes() == [] and not [i for i in s.api.get("/v1/images")["images"] if "attack" in i["name"]]
