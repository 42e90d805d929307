"""What somebody does in the first five minutes, through the command line only."""
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from marks import Skip, limit
from server import leftovers, wait_until


def test_run_prints_the_output_and_passes_the_exit_code_through(s):
    code, out, err = s.berth("run", "base", "--", "sh", "-c", "echo hello; echo oops >&2; exit 7")
    assert (code, out, err) == (7, b"hello\n", b"oops\n"), (code, out, err)


def test_run_deletes_its_sandbox(s):
    assert s.berth("run", "base", "--", "true")[0] == 0
    assert s.api.sandboxes() == []


def test_a_command_that_dies_of_a_signal_gives_128_and_the_signal(s):
    for name, number in (("KILL", 9), ("SEGV", 11), ("TERM", 15)):
        code, out, err = s.berth("run", "base", "--", "sh", "-c", f"kill -{number} $$")
        said = f"berth: the command was ended by signal {number} ({name})\n".encode()
        assert (code, out, err) == (128 + number, b"", said), (code, out, err)


@limit(90)
def test_ten_megabytes_go_through_cat_unchanged(s):
    data = os.urandom(10 << 20)
    code, out, err = s.berth("run", "base", "--", "cat", stdin=data)
    assert code == 0, err
    assert hashlib.sha256(out).digest() == hashlib.sha256(data).digest(), (len(out), err)


def test_environment_and_directory_are_as_asked(s):
    code, out, _ = s.berth("run", "base", "-e", "A=b c", "-w", "/tmp", "--", "sh", "-c", "echo $A; pwd")
    assert (code, out) == (0, b"b c\n/tmp\n")


def test_a_kept_sandbox_is_listed_used_and_removed(s):
    code, _, err = s.berth("run", "--keep", "base", "--", "sh", "-c", "echo kept > /root/x")
    assert code == 0, err
    (box,) = s.api.sandboxes()
    code, out, _ = s.berth("ps")
    assert code == 0 and box["id"].encode() in out and b"ready" in out and b"base" in out, out
    listed = json.loads(s.berth("ps", "--json")[1].splitlines()[0])
    assert [b["id"] for b in listed["sandboxes"]] == [box["id"]], listed
    assert s.berth("exec", box["id"], "--", "cat", "/root/x")[:2] == (0, b"kept\n")
    assert s.berth("exec", box["id"], "--", "sh", "-c", "exit 3")[0] == 3
    assert s.berth("rm", box["id"])[0] == 0
    assert s.api.sandboxes() == []


def test_images_are_listed_for_people_and_programs(s):
    code, out, _ = s.berth("image", "ls")
    assert code == 0 and b"base" in out and b"NAME" in out
    assert [i["name"] for i in json.loads(s.berth("image", "ls", "--json")[1])["images"]] == ["base"]


def test_errors_say_what_is_wrong_and_what_to_do(s):
    code, out, err = s.berth("run", "nosuch", "--", "true")
    assert code == 125 and out == b"" and b"nosuch" in err and len(err.splitlines()) >= 2, err
    code, out, err = s.berth("run", "base", "--", "no-such-command")
    assert code in (125, 127) and b"no-such-command" in err, (code, err)
    code, _, err = s.berth("ps", env={"BERTH_API_KEY": "berth_wrong"})
    assert code == 125 and b"key" in err, err
    code, out, err = s.berth("init", "--dry-run", "--pool-size", "900000g")  # it was a sparse file, and said nothing
    assert code == 0 and b"a pool of " in err and b"GiB free" in err and b"make a database" in out, (out, err)
    assert s.berth("init", "--dry-run", "--pool-size", "1x")[0] == 125
    if subprocess.run(["systemctl", "is-active", "--quiet", "berthd"], capture_output=True).returncode != 0:  # what answers is not it
        out = s.berth("init", "--dry-run", "--listen", s.env["BERTH_URL"].split("//")[1])[1]
        assert b"to do  make the image base" in out, out
    code, _, err = s.berth("ps", env={"BERTH_URL": "http://127.0.0.1:1"})
    assert code == 125 and b"127.0.0.1:1" in err, err
    assert s.berth("frobnicate")[0] == 125
    assert s.api.sandboxes() == []
    with s.box() as b:  # the sentence fits what was asked for
        for args, fix in ((("cp", "/nowhere", f"{b.id}:/"), b"on this machine"), (("image", "import", "x", "/nowhere"), b"on this machine"),
                          (("image", "import", "x", "/etc/passwd"), b"tar of a root"), (("kill", b.id, "ex_none"), b"berth execs"),
                          (("policy", "rm", "999999"), b"berth policy ls"), (("profile", "rm", "none"), b"berth profile ls"),
                          (("limits", b.id, "--nothing"), b"berth help limits"), (("exec", "--nothing", b.id), b"Put --"),
                          (("create", "base", "--memory", "5x"), b"berth help create"), (("create", "base", "--memory", "512"), b"--memory 512m"),
                          (("rm", "."), b"nothing at /v1/sandboxes/."),
                          (("create", "base", "--name", ".."), b"are no names"),
                          (("create", "nosuch"), b"'berth image pull' or 'berth image import'"), (("exec",), b"exec: SANDBOX is missing"),
                          (("exec", b.id), b"exec: COMMAND is missing"), (("image", "import"), b"NAME is missing"),
                          (("kill", b.id), b"kill: EXEC is missing"), (("host", "rm"), b"host rm: ID is missing"),
                          (("limits", b.id, "memory=1g"), b"no limit memory\n       The limits: memory_mb, "),
                          (("limits", b.id, "memory_mb=1g"), b'memory_mb is a number, not "1g"'),
                          (("run", "base", "--network", "allow", "--", "true"), b"--allow NAME"),
                          (("create", "base", "--network", "allow"), b"--allow NAME")):
            code, out, err = s.berth(*args)
            assert code == 125 and fix in err, (args, code, out, err)


def test_a_timeout_is_told_by_exit_code_124(s):
    start = time.monotonic()
    assert s.berth("run", "base", "--timeout", "1s", "--", "sleep", "600")[0] == 124
    assert time.monotonic() - start < 60


@limit(60)
def test_interrupt_kills_the_command_and_deletes_the_sandbox(s):
    p = subprocess.Popen([s.cli, "run", "base", "--", "sh", "-c", "echo up; sleep 300"], stdout=subprocess.PIPE,
                         stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **s.env})
    assert p.stdout.readline() == b"up\n"
    p.send_signal(signal.SIGINT)
    assert b"ended by signal" not in p.communicate(timeout=30)[1], "that is no news to its user"
    assert p.returncode == 130  # as in every shell
    assert s.api.sandboxes() == []


def test_what_cannot_be_meant_is_refused(s):
    for given in (["-c", "0"], ["-m", "0"], ["--timeout", "0"], ["--pids", "0"]):
        code, _, err = s.berth("run", *given, "base", "--", "true")
        assert code == 125 and b"more than nothing" in err, (given, code, err)
    code, _, err = s.berth("rm", "sb_c1_00000000000000000000")
    assert code == 125 and b"no sandbox" in err and b"berth ps" in err and b"berth check" in err, (code, err)
    code, _, err = s.berth("exec", "sb_c1_00000000000000000000", "--", "true")
    assert code == 125 and b"no sandbox" in err and b"berth ps" in err, (code, err)
    code, _, err = s.berth("image", "import", "x", "/tmp")
    assert code == 125 and b"/tmp is a directory" in err, (code, err)
    code, _, err = s.berth("key", "create", "a\nb")
    assert code == 125 and b"control characters" in err, (code, err)


def test_a_slash_after_the_url_is_the_same_server(s):
    assert s.berth("run", "base", "--", "true", env={"BERTH_URL": s.env["BERTH_URL"] + "/"})[0] == 0
    assert s.berth("--version")[:2] == s.berth("version")[:2]


@limit(60)
def test_interrupt_twice_ends_even_a_command_that_ignores_it(s):
    p = subprocess.Popen([s.cli, "run", "base", "--", "sh", "-c", "trap '' INT; echo up; while :; do sleep 1; done"],
                         stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env={**os.environ, **s.env})
    assert p.stdout.readline() == b"up\n"
    p.send_signal(signal.SIGINT)
    wait_until(lambda: not int(re.search(r"^ShdPnd:\s+(\w+)", leftovers.read(f"/proc/{p.pid}/status"), re.M)[1], 16), 30,
               "the first is taken")  # before that, two would be one
    p.send_signal(signal.SIGINT)
    assert p.wait(30) != 0
    wait_until(lambda: not s.api.sandboxes(), 20, "the sandbox is deleted")


def test_doctor_reads_well(s):
    if b"doctor" not in s.berth("help")[1]:
        raise Skip("this build has no doctor yet")
    code, out, err = s.berth("doctor")
    checks = json.loads(s.berth("doctor", "--json")[1].splitlines()[0])["checks"]
    states = {c["check"]: c["state"] for c in checks}
    assert set(states.values()) <= {"ok", "warn", "fail"}, states
    assert code == ("fail" in states.values()), (code, out, err)
    for must in ("kernel", "btrfs", "seccomp", "user namespaces"):  # the tests run here: it can
        assert states[must] == "ok", (must, out)
    assert all(c["remediation"] for c in checks if c["state"] != "ok"), checks
    odd = "mknod $1/full c 1 7 && chown 1065536 $1/full && chmod 0 $1/full && mount --bind $1/full /dev/full && exec $0 doctor --json"
    told = subprocess.run(["unshare", "--mount", "sh", "-c", odd, s.cli, s.dir], env={**os.environ, **s.env}, capture_output=True)
    os.unlink(f"{s.dir}/full")
    devices = [c for c in json.loads(told.stdout.splitlines()[0])["checks"] if c["check"] == "devices"][0]
    assert devices["state"] == "fail" and "/dev/full is of user 1065536, with mode 0000" in devices["found"], devices
    assert "chmod 666 /dev/full" in devices["remediation"], devices
    if int(pathlib.Path("/proc/sys/fs/file-max").read_text()) < 16 << 20:  # one sandbox could open all of them
        assert states["open files"] == "warn", out
    for word in (b"kernel", b"cgroup", b"btrfs", b"crun", b"runsc", b"PostgreSQL"):
        assert word.lower() in out.lower(), (word, out)

