"""berth doctor --attack: every probe of the product's own table, from fresh sandboxes, on this engine."""
import json

from marks import limit, only


def attack(s, *args, timeout=170):
    code, out, err = s.berth("doctor", "--attack", "--runtime", s.runtime, "--json", *args, timeout=timeout)
    assert code in (0, 1), err
    return code, json.loads(out)


@limit(180)
def test_nothing_gets_through(s):
    code, told = attack(s)
    through = [p for run in told["runs"] for p in run["probes"] if p["through"]]
    assert (code, told["through"], told["ready"]) == (0, 0, True), through
    assert told["probes"] >= 200 and set(told["engines"]) == {"kernel", "crun", "runsc"}, told["probes"]
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
