"""The command line where a first user stumbled: exit codes, receipts, a server that is killed meanwhile."""
import calendar
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import time

from marks import limit, only
from server import TOP, wait_until


def start(s, *args, **more):
    """The CLI as a process of its own, with nothing to read unless told otherwise."""
    more = {"stdin": subprocess.DEVNULL, **more}
    return subprocess.Popen([s.cli, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, **s.env}, **more)


def restart_berthd(s):
    s.kill("berthd")
    s.wait_healthy()


UP_AND_BACK = "echo up; until [ -e /tmp/go ]; do sleep 0.1; done; echo back; "


def wait_back(s, box, p):
    """The CLI has seen that its connection broke: what is given to it before goes into that one."""
    s.api.call("PUT", f"/v1/sandboxes/{box.id}/files?path=/tmp/go", b"")
    assert p.stdout.readline() == b"back\n"


def execs(s, box):
    return s.api.get(f"/v1/sandboxes/{box.id}/execs")["execs"]


def test_one_host_shows_what_it_has(s):
    (host,) = s.api.get("/v1/hosts")["hosts"]
    fact, has = s.api.get("/v1/host"), host["capacity"]
    assert has["cpus"] == fact["cpus"] > 0 and has["runtimes"] == fact["runtimes"] != "", (host, fact)
    assert has["memory_mb"] == fact["memory_total"] >> 20 and has["disk_mb"] > 0, (host, fact)
    out = s.berth("host", "show", host["id"])[1].decode()
    assert f"memory_mb       {has['memory_mb']}" in out, out
    assert f"of {has['memory_mb']} MB" in s.berth("host", "ls")[1].decode()


def test_a_missing_command_is_127_and_what_is_no_program_126(s):
    with s.box() as b:
        for args in (["run", "base", "--"], ["exec", b.id, "--"]):
            code, out, err = s.berth(*args, "no-such-program")
            assert code == 127 and b"no such command: no-such-program" in err, (code, out, err)
            code, out, err = s.berth(*args, "/tmp")
            assert code == 126 and b"cannot run /tmp" in err, (code, out, err)
    assert s.berth("exec", "sb_c1_00000000000000000000", "--", "true")[0] == 125


def test_rm_prints_the_receipt_and_show_has_it_later(s):
    one, two = s.api.create(), s.api.create()
    code, out, err = s.berth("rm", one)
    assert code == 0 and out.startswith(f"{one} gone: process absent, cgroup absent, disk absent".encode()), (out, err)
    code, out, err = s.berth("rm", "--json", two)
    assert code == 0 and json.loads(out)["receipt"]["disk"] == "absent", (out, err)
    code, out, _ = s.berth("show", one)
    assert code == 0 and b"gone" in out and b"disk absent" in out, out
    assert json.loads(s.berth("show", "--json", one)[1])["receipt"]["process"] == "absent"


def test_show_is_the_record(s):
    with s.box(name="shown", labels={"a": "b"}) as b:
        out = s.berth("show", "shown")[1].decode()
        assert b.id in out and "base" in out and "a=b" in out, out
        assert json.loads(s.berth("show", "shown", "--json")[1])["id"] == b.id


@limit(180)
def test_exec_goes_on_when_berthd_was_killed(s):
    with s.box() as b:
        p = start(s, "exec", b.id, "--", "sh", "-c",
                  "echo before; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo after; echo odd >&2; exit 9")
        assert p.stdout.readline() == b"before\n"
        restart_berthd(s)
        b.sh("touch /tmp/go")
        out, err = p.communicate(timeout=120)
        assert (p.returncode, out, err) == (9, b"after\n", b"odd\n"), (p.returncode, out, err)


@only("crun")
def test_exec_ends_when_its_key_is_revoked(s):
    """With its input at its end it asked again thousands of times a second, and said nothing."""
    made = s.api.call("POST", "/v1/keys", {"name": "for a command", "role": "admin"})
    with s.box() as b:
        p = subprocess.Popen([s.cli, "exec", b.id, "--", "sh", "-c", "echo up; sleep 1000"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**s.env, "BERTH_API_KEY": made["key"]})
        assert p.stdout.readline() == b"up\n"
        s.api.call("DELETE", "/v1/keys/" + made["id"])
        _, err = p.communicate(timeout=60)
        assert p.returncode == 125 and b"key" in err, (p.returncode, err)


@limit(180)
def test_ctrl_c_reaches_the_command_after_berthd_was_killed(s):
    with s.box() as b:
        p = start(s, "exec", b.id, "--", "sh", "-c", "trap 'echo caught; exit 5' INT; " + UP_AND_BACK + "while :; do sleep 0.1; done")
        assert p.stdout.readline() == b"up\n"
        restart_berthd(s)
        wait_back(s, b, p)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=120)
        assert (p.returncode, out) == (5, b"caught\n"), (p.returncode, out, err)


@limit(180)
def test_a_second_ctrl_c_kills_it_after_berthd_was_killed(s):
    with s.box() as b:
        p = start(s, "exec", b.id, "--", "sh", "-c", "trap ': > /tmp/int' INT; " + UP_AND_BACK + "while :; do sleep 0.1; done")
        assert p.stdout.readline() == b"up\n"
        restart_berthd(s)
        wait_back(s, b, p)
        p.send_signal(signal.SIGINT)
        # Two in one moment are one. Asked of its files: the list of its commands is looked at below.
        wait_until(lambda: s.api.request("GET", f"/v1/sandboxes/{b.id}/files/stat?path=/tmp/int")[0] == 200, 60, "the first one came")
        p.send_signal(signal.SIGINT)
        assert p.wait(120) == 130
        wait_until(lambda: [x["kind"] for x in execs(s, b)] == ["killed"], 60, "killed")


@limit(180)
def test_input_that_is_still_open_goes_on_when_berthd_was_killed(s):
    with s.box() as b:
        p = start(s, "exec", b.id, "--", "sh", "-c", "read x; " + UP_AND_BACK + "exec cat", stdin=subprocess.PIPE)
        p.stdin.write(b"one\n")
        p.stdin.flush()
        assert p.stdout.readline() == b"up\n"
        restart_berthd(s)
        wait_back(s, b, p)
        p.stdin.write(b"two\n")
        p.stdin.flush()
        assert p.stdout.readline() == b"two\n"
        out, err = p.communicate(timeout=120)
        assert (p.returncode, out, err) == (0, b"", b""), (p.returncode, out, err)


@limit(180)
def test_input_that_may_be_lost_is_said(s):
    """A command that does not read has bytes under way when berthd dies: 125, and its id."""
    with s.box() as b:
        p = start(s, "exec", b.id, "--", "sh", "-c", "echo up; sleep 1000", stdin=subprocess.PIPE)
        assert p.stdout.readline() == b"up\n"
        os.set_blocking(p.stdin.fileno(), False)
        taken = now = time.monotonic()
        while now - taken < 3:  # until nothing is taken any more: a full pipe alone may be a CLI that is slow
            if p.stdin.raw.write(b"x" * 65536):
                taken = time.monotonic()
            time.sleep(0.01)
            now = time.monotonic()
        restart_berthd(s)
        assert p.wait(120) == 125
        (x,) = execs(s, b)
        err = p.stderr.read().decode()
        assert "while the command was given its input" in err and x["id"] in err, err


def complete(s, *words):
    """What bash offers for the last of these words."""
    script = ('source packaging/completion/berth.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _berth; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    r = subprocess.run(["bash", "-c", script, "bash", *words], cwd=TOP, capture_output=True, timeout=60,
                       env={**os.environ, **s.env, "PATH": os.path.dirname(s.cli) + ":" + os.environ["PATH"]})
    assert r.stderr == b"", r.stderr
    return r.stdout.decode().split()


def test_completion_offers_what_can_come_next(s):
    assert complete(s, "berth", "network", "") == ["events", "lock", "set", "show"]
    names = complete(s, "berth", "")
    assert names.count("image") == 1 and "run" in names and "show" in names, names
    assert complete(s, "berth", "ru") == ["run"]
    assert complete(s, "berth", "run", "") == ["base"]
    assert complete(s, "berth", "run", "--kee") == ["--keep"]
    with s.box() as b:
        assert complete(s, "berth", "exec", "") == [b.id]


# -- lifetimes ------------------------------------------------------------------------------------

def only_box(s):
    (box,) = wait_until(lambda: [b for b in s.api.sandboxes() if b["state"] == "ready"], 60, "a sandbox")
    return box


def no_box(s):
    try:
        return s.api.sandboxes() == []
    except (OSError, ValueError):
        return False


def test_create_prints_an_id_and_ps_and_show_say_when_it_ends(s):
    code, out, err = s.berth("create", "base", "--lifetime", "10m", "-e", "A=b", "-l", "x=y")
    assert code == 0, err
    ident = out.decode().strip()
    record = s.api.get("/v1/sandboxes/" + ident)
    assert record["env"] == {"A": "b"} and record["labels"] == {"x": "y"} and record["expires_at"], record
    assert record["expires_at"][:16] in s.berth("show", ident)[1].decode()
    plain = s.berth("create", "base")[1].decode().strip()
    assert s.api.get("/v1/sandboxes/" + plain)["expires_at"] == ""
    assert s.berth("exec", ident, "--", "sh", "-c", "echo $A")[1] == b"b\n"
    assert s.berth("rm", ident, plain)[0] == 0


@limit(180)
def test_the_sandbox_of_a_run_that_was_killed_is_deleted_soon(s):
    p = start(s, "run", "base", "--", "sleep", "1000")
    box = only_box(s)
    assert box["expires_at"], "it has an end, should we be killed"
    p.kill()
    p.wait()
    p = subprocess.Popen([s.cli, "run", "base", "--", "sleep", "1000"], stdin=subprocess.DEVNULL,
                         env={**os.environ, **s.env, "BERTH_RUN_LEASE": "20s"})
    s.api.delete(box["id"])
    box = only_box(s)
    wait_until(lambda: s.api.get("/v1/sandboxes/" + box["id"])["expires_at"] > box["expires_at"], 60, "renewed")
    p.kill()
    p.wait()
    wait_until(lambda: no_box(s), 60, "deleted at the end of its lease")


@limit(180)
def test_run_deletes_its_sandbox_although_berthd_was_killed_at_work(s):
    p = start(s, "run", "base", "--", "sh", "-c", "echo up; while [ ! -e /tmp/go ]; do sleep 0.1; done; exit 4")
    assert p.stdout.readline() == b"up\n"
    box = only_box(s)
    restart_berthd(s)
    s.api.exec(box["id"], "touch /tmp/go")
    s.kill("berthd")  # and once more, when it is about to delete it
    out, err = p.communicate(timeout=120)
    assert (p.returncode, out) == (4, b""), (p.returncode, out, err)
    wait_until(lambda: no_box(s), 60, "deleted")


def on_terminal(s, *args, **env):
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(s.cli, [s.cli, *args], {**os.environ, "NO_COLOR": "", **s.env, **env})
    said = b""
    while select.select([fd], [], [], 60)[0]:
        try:
            more = os.read(fd, 4096)
        except OSError:
            break
        if not more:
            break
        said += more
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def test_it_gives_a_terminal(s):
    with s.box() as b:
        code, said = on_terminal(s, "exec", "-it", b.id, "--", "sh", "-c", "tty && exit 6")
        assert code == 6 and b"/dev/pts" in said, (code, said)
        code, said = on_terminal(s, "exec", "-it", b.id, "--", "sh", "-c", "kill -SEGV $$")
        assert code == 139 and b"ended by signal 11 (SEGV)" in said, (code, said)
        code, said = on_terminal(s, "exec", "-it", b.id, "--", "sh", "-c", "kill -INT $$")
        assert code == 130 and b"ended by" not in said, "as Ctrl-C at it does"


def test_lists_are_in_the_order_of_time_the_newest_last(s):
    boxes = [s.api.create() for _ in range(6)]
    for box in boxes[1:]:
        s.api.exec(box, "true")  # its end is when what it used is written down
    ran = [s.berth("exec", "-b", boxes[0], "--", "true")[1].decode().strip() for _ in range(6)]

    def listed(*args):
        return [line.split()[0] for line in s.berth(*args)[1].decode().splitlines()[1:]]

    assert listed("ps") == boxes, "ps"
    assert listed("execs", boxes[0]) == ran, "execs"
    wait_until(lambda: set(boxes) <= set(listed("usage")), 60, "the usage of all")
    assert [i for i in listed("usage") if i in boxes] == boxes, "usage"
    for box in boxes:
        s.api.delete(box)


def test_what_a_guest_or_a_user_wrote_does_not_drive_the_terminal(s):
    word = "\u009b31m\u001b[2J\u202e"
    status, said, _ = s.api.request("POST", "/v1/sandboxes", {"image": "base", "labels": {"a": word[0]}})
    assert status == 400 and "control" in said["message"], said
    with s.box() as b:
        b.exec(["true", word])
        for args in ([], ["--json"]):
            code, out, err = s.berth("execs", b.id, *args)
            assert code == 0 and not set("\u009b\u001b\u202e") & set(out.decode()), (out, err)
        assert json.loads(out)["execs"][0]["argv"][1] == word, out
        code, out, err = s.berth("show", word)
        assert code and not set("\u009b\u001b\u202e") & set(out.decode() + err.decode()), (out, err)


def test_cp_says_what_is_wrong_with_two_paths(s):
    for args, said, fix in (
            (("dev1:/x", "dev1:/y"), b"both are in a sandbox", b"berth exec dev1 -- cp -a /x /y"),
            (("dev1:/x", "dev2:/y"), b"both are in a sandbox", b"berth cp FROM - | berth cp - TO"),
            (("/etc/hostname", "dev1:x/y"), b"dev1:x/y: a path in a sandbox begins with /", b"dev1:/x/y"),
            (("dev1:x", "out"), b"dev1:x: a path in a sandbox begins with /", b"./dev1:x"),
            (("dev1:/x", "dev1:y"), b"dev1:y: a path in a sandbox begins with /", b"dev1:/y"),
            (("/etc/hostname", "/tmp/x"), b"one of the two must be in a sandbox", b"berth cp FILE ID:/path")):
        code, out, err = s.berth("cp", *args)
        assert code == 125 and out == b"" and said in err and fix in err, (args, code, out, err)
    with s.box() as b:
        local = pathlib.Path(s.dir, "with:colon")
        local.write_text("x")
        assert s.berth("cp", str(local), f"{b.id}:/tmp/x")[0] == 0
        assert b.exec("cat /tmp/x").stdout == "x"
        assert s.berth("cp", f"{b.id}:/tmp/x", f"{s.dir}/with:another") == (0, b"", b"")


def test_ps_is_narrow_tells_age_and_end_and_takes_filters(s):
    name = "a-name-that-is-as-long-as-names-of-sandboxes-can-be"
    one = s.api.create(name=name, labels={"team": "red"}, lifetime_ms=2 * 3600 * 1000 + 60_000)
    two = s.api.create(labels={"team": "blue"})
    s.api.call("POST", f"/v1/sandboxes/{two}/sleep")

    def ps(*args):
        code, out, err = s.berth("ps", *args)
        assert code == 0, err
        return out.decode().splitlines()

    def ids(*args):
        return [line.split()[0] for line in ps(*args)[1:]]

    title, *rows = ps()
    assert name in rows[0], "a program is given whole names"
    coloured = on_terminal(s, "ps")[1].decode()
    assert "  \x1b[32mready\x1b[0m " in coloured and "  \x1b[34masleep\x1b[0m " in coloured, coloured
    assert "\x1b" not in "".join(ps()), "a program is given no colours"
    assert "\x1b" not in on_terminal(s, "execs", one)[1].decode(), "words of no state"
    plain = on_terminal(s, "ps", NO_COLOR="1")[1].decode()
    assert "\x1b" not in plain, plain
    title, *rows = plain.splitlines()
    assert title.split() == ["ID", "NAME", "STATE", "IMAGE", "RUNTIME", "AGE", "ENDS", "NOTE"], title
    assert all(len(line) <= 90 for line in [title, *rows]), rows
    ends = [row[title.index("ENDS"):].split()[0] for row in rows]
    assert ends[0] in ("2h", "119m", "118m") and ends[1] == "-", rows
    age = rows[0][title.index(" AGE"):].split()[0]
    assert age[:-1].isdigit() and age[-1] in "sm", rows
    assert ids("--state", "asleep") == [two] and ids("-s", "ready") == [one]
    assert ids("--label", "team=red") == [one] and ids("-l", "team") == [one, two]
    assert ids("-l", "team", "-l", "team!=red") == [two] and ids("-l", "team=red", "-s", "asleep") == []
    code, _, err = s.berth("ps", "--state", "happy")
    assert code == 125 and b'no state "happy"' in err, err
    for box in (one, two):
        s.api.delete(box)


def test_errors_are_one_json_object_with_json(s):
    with s.box() as b:
        for args, want, code in ((["run", "--json", "nosuch", "--", "true"], 125, "not_found"),
                                 (["exec", "--json", b.id, "--", "no-such-program"], 127, "not_found"),
                                 (["--json", "exec", "sb_c1_00000000000000000000", "--", "true"], 125, "not_found"),
                                 (["ps", "--json", "--state", "happy"], 125, "invalid"),
                                 (["--json", "frobnicate"], 125, "invalid"),
                                 (["cp", "--json", "a", "b"], 125, "invalid")):
            status, out, err = s.berth(*args)
            said = json.loads(err)
            assert status == want and out == b"" and err.count(b"\n") == 1, (args, status, out, err)
            assert said["code"] == code and said["message"] and said["remediation"], (args, said)
        status, out, err = s.berth("--json", "ps", env={"BERTH_URL": "http://127.0.0.1:1"})
        assert (status, out, json.loads(err)["code"]) == (125, b"", "connection"), (status, out, err)
        status, _, err = s.berth("exec", "--json", b.id, "--", "no-such-program")
        assert json.loads(err)["reason"] == "no_such_command", err


def test_a_command_with_json_tells_its_record_behind_what_it_said(s):
    with s.box() as b:
        status, out, err = s.berth("exec", b.id, "--json", "--", "sh", "-c", "echo out; printf err >&2; exit 3")
        said, record = err.splitlines()
        record = json.loads(record)
        assert (status, out, said) == (3, b"out\n", b"err"), (status, out, err)
        assert (record["kind"], record["exit_code"], record["state"]) == ("exited", 3, "ended"), record
        assert record["usage"] and record["started_at"] <= record["ended_at"], record
        assert record == s.api.get(f"/v1/sandboxes/{b.id}/execs/{record['id']}")
        status, out, err = s.berth("exec", b.id, "--json", "--timeout", "1s", "--", "sleep", "100")
        assert (status, out, json.loads(err)["kind"]) == (124, b"", "timed_out"), err
    status, out, err = s.berth("run", "--json", "base", "--", "echo", "hello")
    record = json.loads(err)
    assert (status, out, record["exit_code"]) == (0, b"hello\n", 0), err
    assert s.api.get(f"/v1/sandboxes/{record['sandbox']}")["state"] == "gone"


def test_events_tell_their_time(s):
    for args in (["events", "--json"], ["events"]):
        p = start(s, *args)
        try:
            os.set_blocking(p.stdout.fileno(), False)
            lines = b""

            def told():
                nonlocal lines
                with s.box():  # the stream begins some time after its process
                    pass
                lines += p.stdout.read() or b""
                return lines.count(b"\n") > 0
            wait_until(told, 60, "an event")
        finally:
            p.kill()
            p.communicate()
        first = lines.split(b"\n")[0].decode()
        at = json.loads(first)["at"] if "--json" in args else first.split()[0]
        told_at = calendar.timegm(time.strptime(at[:19], "%Y-%m-%dT%H:%M:%S"))
        assert abs(time.time() - told_at) < 120 and at.endswith("Z"), first


@only("crun")
def test_events_of_a_key_that_is_revoked_say_so(s):
    made = s.api.call("POST", "/v1/keys", {"name": "leaked", "owner": "events"})
    p = subprocess.Popen([s.cli, "events"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env={**os.environ, **s.env, "BERTH_API_KEY": made["key"]})
    try:
        time.sleep(1)  # revoked before it asked it would be refused with the same words
        s.api.call("DELETE", "/v1/keys/" + made["id"])
        err = p.communicate(timeout=60)[1]
    finally:
        p.kill()
    assert p.returncode == 125 and b"was revoked" in err and b"restarting" not in err, err


@only("crun")
def test_a_mistake_is_told_once_and_with_what_was_wrong(s):
    for args, says in ((("rm", "nope"), b"berth: no sandbox nope\n"),
                       (("key", "rm", "bob"), b"Give its id, the first column of 'berth key ls'"),
                       (("create", "base", "--name", "A b"), b'not "A b"'),
                       (("create", "base", "--allow", "http://x"), b"http://x: a host has no http:// before it")):
        code, out, err = s.berth(*args)
        assert code == 125 and says in err, (args, err)
    with s.box() as b:
        code, out, err = s.berth("exec", b.id, "echo a | wc")
        assert code == 127 and b"sh -c '...'" in err, err
    answer = s.api.request("GET", "/v1/sandboxes/nope?limt=4")
    assert answer[0] == 400 and "/v1/sandboxes/nope knows no" in str(answer), answer
    assert s.api.request("GET", "/v1/health?monitor=1")[0] == 200
