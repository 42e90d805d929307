"""A failed sandbox is not a lost one, and one that cannot be deleted locks its owner out of nothing."""
import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import threading

from client import ApiError
from marks import limit
from server import leftovers, wait_until
from test_check import sql
from test_deletion import held
from test_node import connect

SMALL = {"image": "base", "memory_mb": 64, "disk_mb": 64}


def record(s, ident):
    return s.api.get("/v1/sandboxes/" + ident)


def refused(s, body):
    try:
        s.api.call("POST", "/v1/sandboxes", body)
    except ApiError as e:
        return e
    raise AssertionError("it was made")


@contextlib.contextmanager
def nothing_in_the_image(s):
    """Its files are away: every create fails, at the same step, and nothing is raced against."""
    digest = next(i for i in s.api.get("/v1/images")["images"] if i["name"] == "base")["digest"].removeprefix("sha256:")
    files = f"/proc/{s.pid('berth-node')}/root{s.dir}/node/pool/images/{digest}/rootfs"
    os.rename(files, files + ".away")
    try:
        yield
    finally:
        os.rename(files + ".away", files)


@limit(180)
def test_a_failed_sandbox_says_what_was_lost_and_comes_back_with_its_files(s):
    box = s.api.create(**SMALL, name="keepme")
    assert "last_failure" not in record(s, box)
    s.api.exec(box, "echo kept > /root/f")
    os.kill(s.init_pid(box), 9)
    wait_until(lambda: record(s, box)["state"] == "failed", 60, "failed")
    lost = record(s, box)["last_failure"]
    assert (lost["why"], lost["lost"], lost["files_kept"]) == ("its processes ended", "processes and memory", True), lost
    code, _, err = s.berth("exec", "keepme", "--", "cat", "/root/f")
    assert code == 125 and b"its files are kept" in err and b"berth wake " + box.encode() in err, err
    assert "its files are kept" in str(refused(s, {**SMALL, "name": "keepme"}))
    code, _, err = s.berth("wake", "keepme")
    assert code == 0, err
    assert s.api.exec(box, "cat /root/f").out == b"kept\n"
    assert record(s, box)["last_failure"] == lost, "that something was lost is still told"
    shown = s.berth("show", "keepme")[1].decode()
    assert f"{lost['at']}: its processes ended; lost processes and memory, files kept" in shown, shown
    code, _, err = s.berth("sleep", "keepme")
    assert code == 0 and record(s, box)["state"] == "asleep", err
    code, _, err = s.berth("wake", "keepme", "nosuchbox")
    assert code == 125 and b"nosuchbox" in err and record(s, box)["state"] == "ready", err
    s.api.delete(box)


@limit(180)
def test_a_restarted_host_is_told_as_the_reason(s):
    box = s.api.create(**SMALL)
    s.api.exec(box, "echo kept > /root/f")
    s.kill("berthd")  # what it remembers of uses is written down, or gone
    s.wait_healthy()
    sql(s, f"UPDATE sandbox SET last_used_at = to_timestamp(0) WHERE id = '{box}'")  # before this machine's start
    os.kill(s.init_pid(box), 9)
    wait_until(lambda: record(s, box)["state"] == "failed", 60, "failed")
    assert record(s, box)["last_failure"]["why"] == "its host was restarted", record(s, box)
    assert s.api.call("POST", f"/v1/sandboxes/{box}/wake")["state"] == "ready"
    assert s.api.exec(box, "cat /root/f").out == b"kept\n"
    s.api.delete(box)


@limit(180)
def test_what_cannot_be_deleted_frees_its_name_and_identity(s):
    who = {"org": "o", "user": "u", "session": "s-held"}
    model = s.api.call("POST", "/v1/sandboxes", {**SMALL, "identity": who})
    s.api.delete(model["id"])
    with held(s) as (ident, _):
        sql(s, f"UPDATE sandbox SET name = 'taken', identity_key = '{model['identity_key']}' WHERE id = '{ident}'")
        assert s.api.delete(ident)["state"] == "deleting"
        assert record(s, "taken")["id"] == ident, "as long as there is no other one"
        named = s.api.create(**SMALL, name="taken")
        again = s.api.call("POST", "/v1/sandboxes", {**SMALL, "identity": who})
        assert len({ident, named, again["id"]}) == 3, (ident, named, again)
        assert record(s, "taken")["id"] == named and record(s, ident)["state"] == "deleting"
        assert s.api.exec("taken", "echo new").out == b"new\n"
        for box in (named, again["id"]):
            assert s.api.delete(box)["state"] == "gone"


@limit(180)
def test_a_create_that_failed_keeps_nothing_and_frees_its_name(s):
    with nothing_in_the_image(s):
        refused(s, {**SMALL, "name": "again"})
    old = record(s, "again")
    assert (old["state"], old["last_failure"]["files_kept"]) == ("failed", False), old
    for use in (lambda: s.api.exec(old["id"], "true"), lambda: s.api.call("POST", f"/v1/sandboxes/{old['id']}/wake")):
        try:
            use()
        except ApiError as e:
            assert e.status == 409 and "nothing of it was kept" in str(e), e
        else:
            raise AssertionError("it was used")
    new = s.api.create(**SMALL, name="again")
    assert record(s, "again")["id"] == new != old["id"]
    for box in (old["id"], new):
        s.api.delete(box)


@contextlib.contextmanager
def node_settings(s, **settings):
    """A berth-node with other settings, for a while."""
    path = pathlib.Path(s.dir, "node.conf")
    old = path.read_text()
    kept = [line for line in old.split("\n") if line.split(" = ")[0] not in settings]

    def restart(text):
        path.write_text(text)
        before = s.pid("berth-node")
        s.kill("berth-node")
        wait_until(lambda: s.pid("berth-node") not in (0, before) and reached(s), 60, "berth-node again")
    restart("\n".join([*kept, *(f"{k} = {v}" for k, v in settings.items())]) + "\n")
    try:
        yield
    finally:
        restart(old)


def reached(s):
    try:
        connect(s).sock.close()
        return True
    except OSError:
        return False


def too_slow(s, name, setting):
    """A create that takes too long: 504, the step and its limit are named, and nothing is left of it."""
    e = refused(s, {**SMALL, "name": name})
    assert e.status == 504 and "took longer than its limit of 1500 ms" in str(e), e
    assert setting in e.body["remediation"], e.body
    box = record(s, name)
    assert box["state"] == "failed" and not box["last_failure"]["files_kept"], box
    assert not [n for n in os.listdir(s.dir + "/node/alloc") if n.startswith(box["id"] + ".")]
    s.api.delete(box["id"])
    return str(e)


@contextlib.contextmanager
def engine(s, program):
    """That program in the engine's place, where berth-node alone sees it."""
    inside = ["nsenter", f"--mount=/proc/{s.pid('berth-node')}/ns/mnt"]
    place = shutil.which(s.runtime)
    subprocess.run([*inside, "mount", "--bind", program, place], check=True)
    try:
        yield
    finally:
        subprocess.run([*inside, "umount", place], check=True)


def waits_for_the_disk(s):
    """The child of berth-node that is in the middle of a system call on the frozen pool."""
    node = s.pid("berth-node")
    for pid in pathlib.Path(f"/proc/{node}/task/{node}/children").read_text().split():
        if leftovers.read(f"/proc/{pid}/stat").rpartition(") ")[2].startswith("D"):
            return int(pid)
    return None


def stopped_at_the_disk(s, begin):
    """The pid of berth-node's child that works for what begins here, stopped in the middle of it. The pool is frozen until the
    child is found: a plain SIGSTOP would nearly always come too late, or to another child."""
    freeze, thaw = 0xC0045877, 0xC0045878
    pool = os.open(f"/proc/{s.pid('berth-node')}/root{s.dir}/node/pool", os.O_RDONLY)
    fcntl.ioctl(pool, freeze, 0)
    try:
        begin()
        pid = wait_until(lambda: waits_for_the_disk(s), 30, "a child at the disk")
        os.kill(pid, signal.SIGSTOP)
        return pid
    finally:
        fcntl.ioctl(pool, thaw, 0)
        os.close(pool)


def without_a_disk(s):
    told = []
    create = threading.Thread(target=lambda: told.append(too_slow(s, "nodisk", "disk_limit")))
    try:
        stopped_at_the_disk(s, create.start)
    finally:
        create.join()
    return told[0]


def ends_early(s, how):
    """An init that is "dead" at once, or "dying": its connection is closed before its end can be seen."""
    root = s.work / f"{how}.tar"
    with tarfile.open(root, "w") as tar:
        tar.addfile(tarfile.TarInfo(how))
    code, _, err = s.berth("image", "import", how, str(root))
    assert code == 0, err
    e = refused(s, {**SMALL, "image": how, "name": how})
    s.api.delete(record(s, how)["id"])
    return str(e)


@limit(240)
def test_every_step_of_a_create_has_a_limit_that_its_error_names(s):
    """A mute init, an engine and a disk that never end. `probe` is a fake of the first two; the rest is real."""
    # One short limit at a time: a busy machine would pass those of the other steps.
    with node_settings(s, init=s.work / "probe", hello_limit="1500ms"):
        assert "waiting for the first word of its init" in too_slow(s, "mute", "hello_limit")
    with node_settings(s, init=s.work / "probe"):
        for how in ("dead", "dying"):
            said = ends_early(s, how)
            assert "its init ended as soon as" in said and "No such process" not in said, said
    with node_settings(s, disk_limit="1500ms"):
        assert "making its disk" in without_a_disk(s)
    with node_settings(s, engine_limit="1500ms"), engine(s, s.work / "probe"):
        assert "starting its engine" in too_slow(s, "stuck", "engine_limit")
    s.api.delete(s.api.create(**SMALL))
