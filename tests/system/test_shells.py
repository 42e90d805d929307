"""Persistent shells: what stays, what one command can do to the next (nothing), and the truth about each."""
import threading
import time

import images
from client import ApiError, event_bytes
from marks import limit, only
from server import leftovers, wait_until


class Shell:
    """A box with bash, and one shell in it."""

    def __init__(self, s, image=("bash",), name="work", **options):
        self.s = s
        self.box = s.box(image=images.have(s, *image)) if image else s.box()
        self.name, self.path = name, f"/v1/sandboxes/{self.box.id}/shells"
        try:
            self.made = s.api.call("POST", self.path, {"name": name, **options})
        except BaseException:
            s.api.delete(self.box.id)
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.api.delete(self.box.id)

    def run(self, command, **options):
        return self.box.exec(command, shell=self.name, **options)

    def out(self, command, **options):
        r = self.run(command, **options)
        assert (r.kind, r.exit_code) == ("exited", 0), (command, dict(r))
        return r.out.decode()

    def get(self):
        return self.s.api.get(f"{self.path}/{self.name}")


def refused(call, status):
    try:
        call()
    except ApiError as e:
        assert e.status == status, e
        return e
    raise AssertionError(f"not refused with {status}")


def test_directory_variables_functions_aliases_and_options_stay(s):
    with Shell(s, cwd="/tmp", env={"FROM": "it's \"me\"\n$(x)"}) as sh:
        assert sh.made["state"] == "idle" and sh.made["cwd"] == "/tmp" and sh.made["restarts"] == 0, sh.made
        assert sh.out("echo \"$FROM\"; pwd") == "it's \"me\"\n$(x)\n/tmp\n"
        r = sh.run("cd /var; X=1; arr=(1 2); export Y=y; f() { echo f$X; }; alias ll='echo LL'; set -o pipefail")
        assert (r.exit_code, r["cwd"], r["restarted"]) == (0, "/var", False), r
        assert sh.out("f; ll; pwd; echo ${arr[1]}; sh -c 'echo $Y'; false | true; echo $?") == "f1\nLL\n/var\n2\ny\n1\n"
        assert sh.run("(exit 9)").exit_code == 9 and sh.out("echo $?") == "9\n"
        assert sh.get()["cwd"] == "/var"
        gone = s.api.call("DELETE", f"/v1/sandboxes/{sh.box.id}/shells/{sh.made['name']}")
        assert (gone["state"], gone["cwd"]) == ("gone", "/var"), gone  # where it was, not where it began


def test_the_streams_of_a_command_are_its_own(s):
    with Shell(s) as sh:
        r = sh.run("echo out; echo err >&2; printf 'no newline'")
        assert (r.out, r.err) == (b"out\nno newline", b"err\n"), r
        r = sh.run("head -c 200000 /dev/zero | tr '\\0' '\\377'; printf 'a\\0b'")
        assert r.out == b"\xff" * 200000 + b"a\0b"
        assert sh.run("cat").out == b""  # EX-7: standard input is /dev/null
        assert sh.run("read x; echo got $x; cat", stdin="one\ntwo\n").out == b"got one\ntwo\n"
        assert sh.run("echo into >/tmp/f; exec >/tmp/g; echo more").out == b""
        assert sh.out("cat /tmp/f /tmp/g") == "into\nmore\n"


def test_cf_an_unbalanced_quote_is_an_error_and_no_wedge(s):
    with Shell(s) as sh:
        for bad in ('echo "oops', "echo 'oops", "$(", "`", "if true", "case x in", "cat <<EOF\nx", "f() {", "echo a \\"):
            r = sh.run(bad, timeout_ms=20000)
            assert r.kind == "exited" and (r.exit_code != 0 or bad.startswith(("cat", "echo a"))), (bad, dict(r))
            assert sh.out("echo lives") == "lives\n"


def test_cf_a_stray_brace_loses_nothing(s):
    with Shell(s) as sh:
        r = sh.run("echo a; } ; echo b")
        assert r.exit_code == 2 and b"syntax error" in r.err, r
        r = sh.run("echo before\n) ; echo b")
        assert r.exit_code == 2 and r.out == b"before\n", r
        assert sh.out("echo lives") == "lives\n" and sh.get()["restarts"] == 0


def test_cf_no_names_of_ours_are_in_the_users_shell(s):
    with Shell(s) as sh:
        assert sh.out("log=x; dir=y; sp=1; r1=2; EXIT_CODE=3; PREV_DIR=4; cleanup() { :; }; echo important") == "important\n"
        assert sh.out("echo $log$dir$sp$r1$EXIT_CODE$PREV_DIR; trap; compgen -A function") == "xy1234\ncleanup\n"
        assert "berth" not in sh.out("compgen -v; compgen -A function; alias").lower()
        # nothing but the three streams is open in what it starts (3 is ls's own)
        assert sh.out("ls /proc/self/fd") == "0\n1\n2\n3\n"


def test_cf_a_timed_out_command_leaves_the_shell_free(s):
    with Shell(s) as sh:
        sh.out("cd /var; X=kept; f() { echo f$X; }")
        r = sh.run("echo up; setsid sleep 7777 & (setsid sleep 7777 &); sleep 7777; echo never", timeout_ms=6000)
        assert (r.kind, r.exit_code, r.out, r["restarted"]) == ("timed_out", None, b"up\n", True), r
        assert sh.box.sh("ps -o args | grep -c '[s]leep 7777' || true") == "0\n"
        assert sum("sleep\0007777" in leftovers.read(f"/proc/{p}/cmdline") for p in s.cgroup_pids(sh.box.id)) == 0
        assert sh.out("f; pwd") == "fkept\n/var\n"  # what it knew before that command
        assert sh.run("while :; do :; done", timeout_ms=1000).kind == "timed_out"
        assert sh.out("f") == "fkept\n"


def test_ex_11_exit_reports_its_code_and_the_shell_comes_back_restarted(s):
    with Shell(s) as sh:
        sh.out("cd /tmp; export A=1; B=2; f() { echo f; }; set -u")
        r = sh.run("echo bye; exit 7")
        assert (r.kind, r.exit_code, r.out, r["restarted"], r["cwd"]) == ("exited", 7, b"bye\n", True, "/tmp"), r
        r = sh.run("echo $?; echo $A$B; f; pwd; echo $-")
        assert r.out.decode().startswith("7\n12\nf\n/tmp\n") and b"u" in r.out.split()[-1] and r["restarted"], r
        assert sh.run("true")["restarted"] is False and sh.get()["restarts"] == 1


def test_what_ends_the_shell_is_told_as_what_it_was(s):
    with Shell(s) as sh:
        r = sh.run("exec sh -c 'exit 5'")
        assert (r.kind, r.exit_code, r["restarted"]) == ("exited", 5, True), r
        r = sh.run("kill $$")
        assert (r.kind, r.exit_code, r.signal) == ("signalled", None, 15), r
        r = sh.run("echo x; kill -9 $$; echo y")
        assert (r.kind, r.exit_code, r.signal, r.out) == ("signalled", None, 9, b"x\n"), r
        r = sh.run("set -n")  # from there on bash carries nothing out any more
        assert (r.kind, r.exit_code, r.signal) == ("signalled", None, 9), r
        assert sh.out("echo lives") == "lives\n" and sh.get()["restarts"] == 4


def test_set_e_and_traps_harm_nobody(s):
    with Shell(s) as sh:
        sh.out("cd /tmp; X=1; set -e")
        r = sh.run("false; echo not reached")
        assert (r.exit_code, r.out) == (1, b""), r
        assert sh.out("echo $X; set +e; false; echo on") == "1\non\n"
        r = sh.run("set -u; echo $nothing; echo not reached")
        assert r.exit_code != 0 and r.out == b"", r
        sh.run("trap 'echo trapped' EXIT; trap 'echo dbg >/dev/null' DEBUG; trap '' INT TERM HUP")
        r = sh.run("exit 4")
        assert (r.exit_code, r.out) == (4, b"trapped\n"), r
        assert sh.out("trap - EXIT DEBUG; set -x; echo a; set +x") == "a\n"


def test_background_jobs_that_hold_the_output_open_hold_up_nobody(s):
    with Shell(s) as sh:
        start = time.monotonic()
        assert sh.out("sleep 7778 & echo $!").strip().isdigit()
        assert sh.out("jobs -r | wc -l").strip() == "1" and time.monotonic() - start < 40
        assert sh.out("(sleep 2; echo late) & echo now") == "now\n"
        r = sh.run("sleep 3; echo mine")
        assert r.out == b"mine\n", r  # what the job said is not in another command's output
        assert sh.run("sleep 100", timeout_ms=500).kind == "timed_out"
        assert sh.box.sh("ps -o args | grep -c '[s]leep 7778'") == "1\n"  # an earlier command's job is spared
        s.api.call("DELETE", f"{sh.path}/work")
        assert sh.box.sh("ps -o args | grep -c '[s]leep 7778' || true") == "0\n"  # but goes with the shell


def test_commands_of_one_shell_wait_for_each_other_and_for_nobody_else(s):
    with Shell(s) as sh:
        s.api.call("POST", sh.path, {"name": "other"})
        out = []
        threads = [threading.Thread(target=lambda i=i: out.append(sh.out(f"echo {i} >>/tmp/o; sleep 0.3; echo {i} >>/tmp/o")))
                   for i in range(4)]
        slow = threading.Thread(target=lambda: sh.run("until [ -e /tmp/go ]; do sleep 0.1; done"))
        slow.start()
        wait_until(lambda: sh.get()["state"] == "busy", 20, "busy")
        [t.start() for t in threads]
        assert sh.box.exec("echo free", shell="other").out == b"free\n"
        assert sh.box.exec("echo free").out == b"free\n"
        assert slow.is_alive()
        sh.box.sh(": >/tmp/go")
        [t.join() for t in threads + [slow]]
        lines = sh.box.sh("cat /tmp/o").split()
        assert sorted(lines) == sorted("01230123") and all(a == b for a, b in zip(lines[::2], lines[1::2])), lines
        assert sh.get()["state"] == "idle"


def test_a_command_that_waits_in_line_can_run_out_of_time(s):
    with Shell(s) as sh:
        slow = threading.Thread(target=lambda: sh.run("until [ -e /tmp/go ]; do sleep 0.1; done"))
        slow.start()
        wait_until(lambda: sh.get()["state"] == "busy", 20, "busy")
        r = sh.run("echo ran >/tmp/ran", timeout_ms=500)
        assert r.kind == "timed_out", r
        sh.box.sh(": >/tmp/go")
        slow.join()
        assert sh.run("cat /tmp/ran").exit_code == 1
        assert sh.get()["restarts"] == 0  # nothing of it ever ran


def test_w14_cwd_env_and_timeout_are_of_one_command(s):
    with Shell(s) as sh:
        sh.out("cd /var; Q=old")
        assert sh.out("pwd; echo \"$Q\"; sh -c 'echo \"$Q\"'", cwd="/usr", env={"Q": "n e'w"}) == "/usr\nn e'w\nn e'w\n"
        assert sh.out("pwd; echo $Q") == "/var\nold\n"
        r = sh.run("pwd", cwd="/not/there")
        assert r.exit_code == 1 and b"/not/there" in r.err and r.out == b"", r


def test_w16_a_stream_is_byte_exact(s):
    with Shell(s) as sh:
        got = {"stdout": b"", "stderr": b""}
        for name, data in s.api.events("POST", f"/v1/sandboxes/{sh.box.id}/exec",
                                       {"command": "seq 20000; printf '\\n\\nend' >&2", "shell": "work"}):
            if name in got:
                got[name] += event_bytes(data)
        assert got["stdout"] == "".join(f"{i}\n" for i in range(1, 20001)).encode()
        assert got["stderr"] == b"\n\nend" and (name, data["exit_code"]) == ("exit", 0)


def test_w17_a_shell_that_is_not_there_is_not_there(s):
    with Shell(s) as sh:
        assert refused(lambda: s.api.get(sh.path + "/nobody"), 404).body["remediation"]
        refused(lambda: sh.box.exec("true", shell="nobody"), 404)
        refused(lambda: s.api.call("POST", sh.path, {"name": "work"}), 409)
        refused(lambda: s.api.call("DELETE", sh.path + "/nobody"), 404)
        a, b = s.api.call("POST", sh.path, {})["name"], s.api.call("POST", sh.path)["name"]
        assert a != b and [x["name"] for x in s.api.get(sh.path)["shells"]] == sorted([a, b, "work"])
        for _ in range(8):
            s.api.call("DELETE", f"{sh.path}/{a}")
            refused(lambda: sh.box.exec("true", shell=a), 404)
            s.api.call("POST", sh.path, {"name": a})  # the name is free again
        assert sh.box.exec("echo hi", shell=a).out == b"hi\n"


def test_w18_names_of_variables_are_checked_and_values_are_data(s):
    with Shell(s) as sh:
        for bad in ("A;touch /tmp/x", "1A", "A B", "", "A$(id)", "Ä"):
            refused(lambda: s.api.call("POST", sh.path, {"env": {bad: "x"}}), 400)
        value = "'; touch /tmp/owned; $(id) `id` \\ \n\t\"ü"
        s.api.call("POST", sh.path, {"name": "v", "env": {"V": value}})
        assert sh.box.exec("printf %s \"$V\"", shell="v").out.decode() == value
        for bad in ("A;touch /tmp/x", "1A"):
            refused(lambda: sh.run("true", env={bad: "x"}), 400)
        assert sh.box.sh("ls /tmp") == ""


@only("crun")
def test_what_a_command_writes_cannot_end_it_or_forge_its_end(s):
    with Shell(s) as sh:
        # It may find the pipe its end is told through, but not the word that goes with it.
        forge = "for p in /dev/shm/.berth-*/status; do echo 'x exit 0' >$p; echo ' exit 0' >$p; echo 'exit 0' >$p; done; "
        assert sh.run(forge + "sleep 0.2; exit 3").exit_code == 3
        assert sh.run(forge + "sleep 0.2; false").exit_code == 1
        # Who breaks the way back breaks that command alone.
        r = sh.run("rm -rf /dev/shm/.berth-*", timeout_ms=5000)
        assert (r.kind, r.exit_code) == ("signalled", None), r
        assert sh.out("echo x") == "x\n"


def test_a_shell_killed_from_outside_is_begun_again(s):
    with Shell(s) as sh:
        pid = int(sh.out("cd /var; X=1; echo $$"))
        done = []
        t = threading.Thread(target=lambda: done.append(sh.run("echo a; : >/tmp/said; sleep 100; echo b")))
        t.start()
        wait_until(lambda: sh.box.exec("test -e /tmp/said").exit_code == 0, 30, "it said a")
        sh.box.sh(f"kill -9 {pid}")
        t.join()
        assert (done[0].kind, done[0].signal, done[0].out) == ("signalled", 9, b"a\n"), done
        r = sh.run("echo $X; pwd")
        assert (r.out, r["restarted"]) == (b"1\n/var\n", True), r


def test_a_shell_whose_process_of_inits_was_killed_is_gone_with_all_it_started(s):
    alive = "ps -o args | grep -c '^[s]leep 7777'; true"
    with Shell(s) as sh:
        for _ in range(2):
            r = sh.run("(setsid sleep 7777 &); sleep 7777 & kill -9 $PPID; sleep 7777")
            assert r.kind == "lost", r
            assert s.api.call("DELETE", f"{sh.path}/{sh.name}")["state"] == "gone"
            assert sh.box.sh(alive) == "0\n"
            assert s.api.call("POST", sh.path, {"name": sh.name})["state"] == "idle"
        assert sh.out("echo on") == "on\n"


@limit(90)
def test_berthd_killed_in_the_middle_of_a_command_loses_nothing_of_it(s):
    with Shell(s) as sh:
        sh.out("cd /var")
        ident = s.api.call("POST", f"/v1/sandboxes/{sh.box.id}/exec", {
            "command": "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.3; done; X=after; exit_me() { return 6; }; exit_me",
            "shell": "work", "background": True})["id"]
        s.kill("berthd")
        s.wait_healthy()
        path = f"/v1/sandboxes/{sh.box.id}/execs/{ident}"
        r = wait_until(lambda: (lambda x: x if x["state"] == "ended" else None)(s.api.get(path)), 40, "ended")
        assert (r["kind"], r["exit_code"], r["shell"]) == ("exited", 6, "work"), r
        assert s.api.get(path + "/output")["stdout"] == "".join(f"{i}\n" for i in range(1, 10))
        assert sh.out("echo $X; pwd") == "after\n/var\n"


def test_a_command_in_a_shell_can_be_killed(s):
    with Shell(s) as sh:
        ident = s.api.call("POST", f"/v1/sandboxes/{sh.box.id}/exec",
                           {"command": "sleep 7779", "shell": "work", "background": True})["id"]
        wait_until(lambda: sh.get()["state"] == "busy", 20, "busy")
        r = s.api.call("POST", f"/v1/sandboxes/{sh.box.id}/execs/{ident}/kill", {})
        assert (r["state"], r["kind"], r["exit_code"]) == ("ended", "killed", None), r
        assert sh.box.sh("ps -o args | grep -c '[s]leep 7779' || true") == "0\n"
        assert sh.out("echo lives") == "lives\n"


def test_an_image_without_bash_has_its_sh(s):
    with Shell(s, image=None) as sh:
        r = sh.run("cd /tmp; X=1; export Y=2; f() { echo f$X; }")
        assert (r.exit_code, r["cwd"]) == (0, "/tmp"), r
        assert sh.out("f; pwd; echo $Y") == "f1\n/tmp\n2\n"
        for bad in ('echo "oops', "echo a; } ; echo b", "$("):
            assert sh.run(bad).exit_code == 2, bad
        assert sh.run("exit 7").exit_code == 7
        r = sh.run("echo $Y; pwd")
        assert (r.out, r["restarted"]) == (b"2\n/tmp\n", True), r  # exported variables and the directory are kept
        assert sh.run("sleep 7777", timeout_ms=500).kind == "timed_out"
        assert sh.out("echo \"$V\"; pwd", env={"V": "a b"}, cwd="/usr") == "a b\n/usr\n"
        assert sh.out("echo ${V-none}; pwd") == "none\n/tmp\n"


@only("crun")
def test_the_command_line_speaks_to_a_shell(s):
    with s.box(image=images.have(s, "bash")) as b:
        assert s.berth("exec", b.id, "--shell", "cli", "--", "cd /var; X=hello")[0] == 0
        assert s.berth("exec", b.id, "-s", "cli", "--", "echo $X; pwd; exit 3")[:2] == (3, b"hello\n/var\n")


@only("crun")
def test_a_create_under_one_idempotency_key_makes_one_shell(s):
    with s.box(image=images.have(s, "bash")) as b:
        path, key = f"/v1/sandboxes/{b.id}/shells", {"Idempotency-Key": "k1"}
        first = s.api.call("POST", path, {"cwd": "/tmp"}, key)
        again = s.api.call("POST", path, {"cwd": "/tmp"}, key)
        assert first["name"] == again["name"] and len(s.api.get(path)["shells"]) == 1
        refused(lambda: s.api.call("POST", path, {"cwd": "/var"}, key), 409)
