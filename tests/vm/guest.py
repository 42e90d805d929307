#!/usr/bin/python3
"""Inside the machine that tests/vm/run.py boots: systemd, cgroup v2 alone, Debian's own kernel.

One line a step on the console: `VM ok NAME` or `VM FAIL NAME: why`. Everything is done as the README
tells a person to do it: with `berth`, against the services that `berth init` installed.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
CGROUPS = pathlib.Path("/sys/fs/cgroup")
SERVICES = ("berth-postgres", "berth-node", "berth-egress", "berthd")
LATER = pathlib.Path("/var/lib/vm-test.json")  # what this script has to know after the power was cut
steps, steps_after_the_cut = [], []


def step(function):
    steps.append(function)
    return function


def after_the_cut(function):
    steps_after_the_cut.append(function)
    return function


def run(*argv, stdin=b"", limit=300, env=None):
    return subprocess.run([str(a) for a in argv], input=stdin, capture_output=True, timeout=limit, env={**os.environ, **(env or {})})


def berth(*argv, **more):
    return run("berth", *argv, **more)


def must(r):
    assert r.returncode == 0, f"{r.args}: exit {r.returncode}\n{r.stdout.decode()}{r.stderr.decode()}"
    return r.stdout.decode()


def until(true, seconds, what):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"{what}: not after {seconds} s"
        time.sleep(0.3)


def api(method, path, body=None):
    import http.client
    c = http.client.HTTPConnection("127.0.0.1", 7070, timeout=240)
    c.request(method, path, None if body is None else json.dumps(body), {"Authorization": "Bearer " + os.environ["BERTH_API_KEY"]})
    r = c.getresponse()
    return r.status, json.loads(r.read())


def create(**options):
    status, box = api("POST", "/v1/sandboxes", {"image": "base", "runtime": "crun", **options})
    assert status == 201, box
    return box["id"]


def delete(ident):
    status, gone = api("DELETE", "/v1/sandboxes/" + ident)
    assert status == 200 and gone["receipt"]["process"] == "absent", gone


def execute(ident, command, **more):
    status, r = api("POST", f"/v1/sandboxes/{ident}/exec", {"command": command, **more})
    assert status == 200, r
    return r


def cgroup(ident):
    """The sandbox's own directory below the tree of berth-node."""
    found = [p for p in CGROUPS.rglob(ident + ".*") if p.is_dir() and not p.name.endswith(".launch")]
    assert len(found) == 1, found
    return found[0]


def ours():
    """Cgroups of sandboxes, wherever."""
    return [str(p) for p in CGROUPS.rglob("sb_*") if p.is_dir()]


def healthy():
    try:
        return api("GET", "/v1/health")[0] == 200
    except (OSError, ValueError):
        return False


@step
def the_machine_has_cgroup_v2_and_nothing_else():
    kinds = {line.split()[2] for line in open("/proc/self/mounts") if line.split()[2].startswith("cgroup")}
    assert kinds == {"cgroup2"}, kinds


@step
def berth_init_installs_a_server():
    out = must(berth("init", "--no-image", "--pool-size", "2g", limit=600))
    key = [line.split("=", 1)[1] for line in out.split("\n") if "BERTH_API_KEY=" in line]
    assert key, out
    os.environ["BERTH_API_KEY"], os.environ["BERTH_URL"] = key[0].strip(), "http://127.0.0.1:7070"
    until(healthy, 120, "healthy")
    for s in SERVICES:
        must(run("systemctl", "is-active", s))


@step
def berth_init_again_changes_nothing():
    r = berth("init", "--no-image", limit=600)
    assert r.returncode == 0 and b"in place" in r.stderr + r.stdout, r


@step
def doctor_finds_nothing_wrong():
    r = berth("doctor")
    print(r.stdout.decode(), flush=True)
    assert r.returncode == 0 and b" 0 wrong" in r.stdout + r.stderr, r
    assert copies_are_refused() and b"refused on this host" in r.stdout, r  # this kernel has one setting for all namespaces


def copies_are_refused():
    return int(open("/proc/sys/net/core/tstamp_allow_data").read()) == 0


@step
def an_image_and_a_command():
    must(berth("image", "import", "base", HERE / "rootfs.tar", limit=600))
    assert must(berth("run", "--runtime", "crun", "base", "--", "echo", "hello")) == "hello\n"
    assert berth("run", "--runtime", "crun", "base", "--", "sh", "-c", "exit 7").returncode == 7


def uid(name):
    return int(must(run("id", "-u", name)))


@step
def the_way_out_has_a_user_of_its_own():
    users = {s: int(must(run("ps", "-o", "uid=", "-p", main_pid(s)))) for s in SERVICES}
    assert users["berth-egress"] == uid("berth-egress") and users["berthd"] == uid("berth"), users
    as_egress = ["setpriv", "--reuid=berth-egress", "--regid=berth-egress", "--clear-groups", "--"]
    connect = ("import socket,sys\ntry:\n socket.socket(1, int(sys.argv[1])).connect(sys.argv[2])\n"
               "except PermissionError:\n sys.exit(13)\n")
    for kind, path in ((5, "/run/berth/node.sock"), (1, "/run/berth-postgres/.s.PGSQL.5432")):
        assert run("test", "-S", path).returncode == 0, path
        assert run(*as_egress, "python3", "-c", connect, kind, path).returncode == 13, path
    stranger = ["setpriv", "--reuid=65532", "--regid=65532", "--clear-groups", "--"]
    assert run(*stranger, "python3", "-c", connect, 5, "/run/berth-egress/policy.sock").returncode == 13
    box = create()
    until(lambda: api("GET", f"/v1/sandboxes/{box}/network")[1]["in_force"], 60, "berthd reaches it: a policy in force")
    delete(box)


@step
def limits_stand_in_the_kernels_files():
    box = create(memory_mb=64, cpu_milli=500, pids=40)
    at = cgroup(box)
    told = {name: (at / name).read_text().split() for name in ("memory.max", "pids.max", "cpu.max")}
    assert told["memory.max"] == [str(64 << 20)], told
    assert told["pids.max"] == ["40"], told
    quota, period = map(int, told["cpu.max"])
    assert quota * 2 == period, told
    status, changed = api("PATCH", "/v1/sandboxes/" + box, {"open_files": 20000})  # more than its processes were given
    assert status == 200 and changed["limits_in_force"], changed
    assert execute(box, "ulimit -n; ulimit -Hn")["stdout"].split() == ["20000", "20000"]
    delete(box)


@step
def too_much_memory_is_oom():
    box = create(memory_mb=32)
    r = execute(box, "awk 'BEGIN { s = \"0123456789\"; while (1) s = s s }'", timeout_ms=180000)
    assert r["kind"] == "oom", r
    assert execute(box, "echo alive")["stdout"] == "alive\n"
    delete(box)


@step
def a_fork_bomb_is_stopped_by_its_limit():
    box = create(pids=30)
    r = execute(box, "for i in $(seq 100); do sleep 100 & done 2>/tmp/err; cat /tmp/err | head -1; exit 3", timeout_ms=120000)
    assert r["kind"] in ("exited", "timed_out"), r
    assert int((cgroup(box) / "pids.peak").read_text()) <= 30 if (cgroup(box) / "pids.peak").exists() else True
    delete(box)


@step
def disk_has_a_limit():
    box = create(disk_mb=32)
    r = execute(box, "dd if=/dev/zero of=/big bs=1M count=80 2>&1; sync", timeout_ms=180000)
    out = r["stdout"] + r["stderr"]
    assert "No space" in out or "quota" in out.lower(), r
    delete(box)


@step
def a_timeout_kills_the_whole_tree():
    box = create()
    r = execute(box, "setsid sh -c 'sleep 7777 & sleep 7777' & sleep 7777", timeout_ms=1500)
    assert r["kind"] == "timed_out" and r["exit_code"] is None, r
    until(lambda: execute(box, "pgrep -f 777[7] || echo none")["stdout"] == "none\n", 60, "the tree gone")
    delete(box)


def main_pid(service):
    return int(must(run("systemctl", "show", "-p", "MainPID", "--value", service)))


@step
def killed_daemons_come_back_and_the_sandbox_lives_on():
    box = create()
    execute(box, "echo kept > /tmp/kept")
    pids = (cgroup(box) / "cgroup.procs").read_text().split()
    for service in ("berthd", "berth-node"):
        old = main_pid(service)
        os.kill(old, signal.SIGKILL)
        until(lambda: main_pid(service) not in (0, old), 120, service + " again")
        until(lambda: healthy() and api("GET", "/v1/check")[0] == 200, 120, service + " back")
    until(lambda: api("GET", "/v1/sandboxes/" + box)[1].get("state") == "ready", 60, "ready")
    first = min(pids, key=int)  # what served the command ends a moment after its answer
    assert first in (cgroup(box) / "cgroup.procs").read_text().split()
    assert execute(box, "cat /tmp/kept")["stdout"] == "kept\n"
    delete(box)


@step
def restarted_by_systemd_too():
    box = create()
    must(run("systemctl", "restart", "berth-node", "berthd"))
    until(healthy, 120, "healthy")
    assert execute(box, "echo here")["stdout"] == "here\n"
    delete(box)


@step
def whoever_is_in_the_box_can_look_around():
    """The services have a umask of their own; what they make for a box has not. The image says nothing of its root."""
    box = create()
    assert execute(box, "stat -c %a / /etc/hosts /etc/resolv.conf")["stdout"].split() == ["755", "644", "644"]
    delete(box)


@step
def nothing_is_left():
    assert api("GET", "/v1/sandboxes")[1]["sandboxes"] == []
    until(lambda: not ours(), 30, "no cgroup of a sandbox")
    assert "sb_" not in open("/proc/self/mounts").read()


def berth_left():
    """What the host has of Berth beside its programs."""
    processes = [c for p in pathlib.Path("/proc").glob("[0-9]*/comm") if (c := read(p)).startswith("berth")]
    loops = [b for p in pathlib.Path("/sys/block").glob("loop*/loop/backing_file") if "berth" in (b := read(p))]
    mounts = [line for line in read(pathlib.Path("/proc/self/mounts")).split("\n") if "berth" in line and "/opt/berth" not in line]
    return processes + loops + mounts + ours()


def read(path):
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def uninstalled_as_the_page_says():
    """The commands of docs/operate.md, word for word, and nothing is left but the programs."""
    commands = (HERE.parents[1] / "docs/operate.md").read_text().split("## Uninstall")[1].split("```sh\n")[1].split("```")[0]
    assert berth_left(), "it sees what there is"
    must(run("sh", "-euc", commands, limit=300))
    until(lambda: not berth_left(), 30, f"nothing: {berth_left()}")
    for name in ("/etc/berth", "/etc/sysctl.d/60-berth.conf", "/var/lib/berth", "/run/berth", "/run/berth-postgres", "/run/berth-egress"):
        assert not os.path.exists(name), name
    assert "berth" not in pathlib.Path("/etc/passwd").read_text() + pathlib.Path("/etc/group").read_text()


def the_power_is_cut_in_the_middle_of_work():
    """A command runs, one sandbox sleeps, one is being deleted: then the machine is gone, with all it had not written."""
    boxes = {name: create() for name in ("busy", "asleep", "going")}
    for name in ("busy", "asleep"):
        execute(boxes[name], f"echo {name} > /kept")
    assert api("POST", f"/v1/sandboxes/{boxes['asleep']}/sleep")[0] == 200
    begin(boxes["busy"], "long")
    with open(LATER, "w") as f:
        json.dump({"boxes": boxes, "key": os.environ["BERTH_API_KEY"]}, f)
    os.sync()  # as if half a minute had passed; nothing below is helped
    begin(boxes["busy"], "late")
    os.kill(main_pid("berth-node"), signal.SIGSTOP)  # so the deletion is not over too soon
    threading.Thread(target=lambda: api("DELETE", "/v1/sandboxes/" + boxes["going"]), daemon=True).start()
    until(lambda: api("GET", "/v1/sandboxes/" + boxes["going"])[1]["state"] == "deleting", 60, "deleting")


def begin(box, ident):
    status, r = api("POST", f"/v1/sandboxes/{box}/exec", {"command": "echo begun; sleep 99999", "background": True, "id": ident})
    assert status in (200, 201, 202), r
    until(lambda: api("GET", f"/v1/sandboxes/{box}/execs/{ident}")[1]["output_bytes"] == 6, 60, "it says something")


def cut_the_power():
    print("VM reboot", flush=True)
    time.sleep(1)  # the console is slow
    pathlib.Path("/proc/sysrq-trigger").write_text("b")
    time.sleep(60)


@after_the_cut
def the_services_come_up_by_themselves():
    until(lambda: healthy() and api("GET", "/v1/check")[0] == 200, 240, "healthy")
    for s in SERVICES:
        must(run("systemctl", "is-active", s))
    assert copies_are_refused()


@after_the_cut
def the_command_has_one_true_end():
    path = f"/v1/sandboxes/{boxes()['busy']}/execs/"
    until(lambda: api("GET", path + "long")[1]["state"] == "ended", 120, "an end")
    ended = api("GET", path + "long")[1]
    assert (ended["kind"], ended["host_rebooted"], ended["exit_code"]) == ("lost", True, None), ended
    assert api("GET", path + "long")[1] == ended
    assert must(berth("logs", boxes()["busy"], "long")) == "begun\n"
    status, late = api("GET", path + "late")  # what was not written yet may be gone
    assert status == 404 or (late["kind"], late["host_rebooted"]) == ("lost", True), (status, late)


@after_the_cut
def what_ran_failed_and_wakes_with_its_files():
    box = boxes()["busy"]
    record = api("GET", "/v1/sandboxes/" + box)[1]
    assert record["state"] == "failed", record
    assert (record["last_failure"]["why"], record["last_failure"]["files_kept"]) == ("its host was restarted", True), record
    assert api("POST", f"/v1/sandboxes/{box}/wake")[0] == 200
    assert execute(box, "cat /kept")["stdout"] == "busy\n"


@after_the_cut
def what_slept_sleeps_and_wakes_by_use():
    box = boxes()["asleep"]
    record = api("GET", "/v1/sandboxes/" + box)[1]
    assert record["state"] == "asleep" and not record.get("last_failure"), record
    assert execute(box, "cat /kept")["stdout"] == "asleep\n"


@after_the_cut
def the_deletion_ends_with_a_receipt():
    path = "/v1/sandboxes/" + boxes()["going"]
    until(lambda: api("GET", path)[1]["state"] == "gone", 120, "gone")
    assert api("GET", path)[1]["receipt"]["process"] == "absent", api("GET", path)


@after_the_cut
def the_records_and_the_host_agree():
    out = must(berth("check"))
    assert "0 differences" in out, out
    delete(boxes()["busy"])
    delete(boxes()["asleep"])
    nothing_is_left()


def boxes():
    return json.loads(LATER.read_text())["boxes"]


def system_tests(*names):
    """The ordinary suite, on this kernel. It has a server of its own."""
    r = subprocess.run(["/usr/bin/python3", "/opt/berth/tests/system/run.py", "--build", "/opt/berth/build", "--runtime", "crun",
                        "--probe", str(HERE / "probe"), *names], timeout=3600)
    assert r.returncode == 0, f"exit {r.returncode}"


def full_attack():
    """By the installed server, on this kernel: nothing gets through on cgroup v2 either."""
    out = berth("doctor", "--attack", "--runtime", "crun", limit=3600).stdout.decode()
    lines = out.strip().split("\n")
    print("\n".join(line for line in lines if not line.startswith("held")), flush=True)
    assert lines[-1].endswith(" 0 through"), lines[-1]


def services_stop():
    must(run("systemctl", "disable", "--now", *reversed(SERVICES)))


def full_isolation_and_limits():
    system_tests("test_isolation", "test_limits")


def full_killed():
    system_tests("test_first_minutes", "test_killed")


def full_crash_slice():
    r = subprocess.run(["/usr/bin/python3", "/opt/berth/tests/crash/run.py", "--build", "/opt/berth/build-crash", "--slice", "10m"], timeout=3600)
    assert r.returncode == 0, f"exit {r.returncode}"


TO_BEGIN = [berth_init_installs_a_server, doctor_finds_nothing_wrong, an_image_and_a_command]
FULL = [full_attack, services_stop, full_isolation_and_limits, full_killed, full_crash_slice]


def main():
    os.environ["BERTH_TEST_SLOW"] = "10"  # an emulated machine is
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    if LATER.exists():
        os.environ["BERTH_API_KEY"], os.environ["BERTH_URL"] = json.loads(LATER.read_text())["key"], "http://127.0.0.1:7070"
        run_steps(steps_after_the_cut)
    else:
        run_steps(TO_BEGIN if "--reboot" in sys.argv else steps)
        if "--reboot" in sys.argv or "--full" in sys.argv:
            run_steps([the_power_is_cut_in_the_middle_of_work])
            cut_the_power()
    if "--attack" in sys.argv:
        run_steps([full_attack])
    run_steps(FULL if "--full" in sys.argv else [uninstalled_as_the_page_says])
    print("VM done", flush=True)


def run_steps(functions):
    for function in functions:
        name, began = function.__name__.replace("_", " "), time.monotonic()
        try:
            function()
        except BaseException:  # noqa: BLE001 - one failed step is told, and the next goes on
            why = traceback.format_exc().strip().split("\n")
            print(f"VM FAIL {name}: {why[-1]}\n" + "\n".join(why[-12:]), flush=True)
            journal = run("journalctl", "-n", "25", "--no-pager", "-o", "cat", "-u", "berthd", "-u", "berth-node")
            print(journal.stdout.decode(), flush=True)
        else:
            print(f"VM ok {name} ({time.monotonic() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
