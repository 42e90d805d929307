"""What clients do while a daemon dies, and what must be true of it afterwards.

prepare() runs unharmed; act() runs with an order to die somewhere; verify() runs when everything is
up again. What act() returns is given to verify().
"""
import glob
import io
import os
import signal
import tarfile
import threading

from world import CUT, ApiError, demand, insist, until


class Scenario:
    repair = False  # a client of its own does not bring it to its end: an operator does

    def prepare(self, w):
        return None

    def act(self, w, thing):
        raise NotImplementedError

    def verify(self, w, thing, told):
        pass


def swallow(work):
    try:
        work()
    except CUT + (ApiError,):
        pass


def post(w, path, body, key=None):
    return w.api.request("POST", path, body, {"Idempotency-Key": key} if key else None)


class Create(Scenario):
    """No key: what was acknowledged is there; what was cut off may be."""

    def act(self, w, thing):
        try:
            return w.api.create()
        except CUT + (ApiError,):
            return None

    def verify(self, w, thing, told):
        if told:
            box = insist(lambda: w.api.get("/v1/sandboxes/" + told))
            demand(box["state"] == "ready", f"acknowledged, and it is {box}")
            w.works(told)


class CreateOnce(Scenario):
    """With a key, until there is an answer: one sandbox, and the same answer for ever."""

    def act(self, w, thing):
        key = w.unique("k")

        def ask():
            status, body, _ = post(w, "/v1/sandboxes", {"image": "base"}, key)
            if status == 503:
                raise ApiError(status, body)
            return status, body
        first = insist(ask)
        insist(ask)
        return key, first

    def verify(self, w, thing, told):
        key, (status, body) = told
        demand(status in (201, 409, 500, 504), f"the answer is {status} {body}")
        boxes = w.boxes()
        demand(len(boxes) <= 1, f"one key made {len(boxes)}: {boxes}")
        again, second, _ = insist(lambda: post(w, "/v1/sandboxes", {"image": "base"}, key))
        demand(again == status, f"the key's second answer is {again} {second}, not {status} {body}")
        if status == 201:
            demand(second["id"] == body["id"] == boxes[0]["id"], f"another sandbox: {second} {body} {boxes}")
            w.works(body["id"])


class Delete(Scenario):
    """Asked for until it is proven."""

    def prepare(self, w):
        return w.api.create()

    def ask(self, w, ident, key=None):
        def once():
            status, body, _ = w.api.request("DELETE", "/v1/sandboxes/" + ident, None,
                                            {"Idempotency-Key": key} if key else None)
            if status == 503:
                raise ApiError(status, body)
            demand(status in (200, 202), f"delete of one that was there: {status} {body}")
            return body if body["state"] == "gone" else None
        return until(lambda: insist(once))

    def act(self, w, thing):
        return self.ask(w, thing)

    def verify(self, w, thing, told):
        demand(told, f"{thing} was never proven gone")
        receipt = insist(lambda: w.api.get(f"/v1/sandboxes/{thing}/receipt"))["receipt"]
        demand(receipt == told["receipt"], f"two receipts: {receipt} {told}")
        demand(thing not in str(w.left()), f"deleted, and left: {w.left()}")


class DeleteOnce(Delete):
    def act(self, w, thing):
        return self.ask(w, thing, w.unique("d"))


class DeleteCutOff(Delete):
    """Asked for once; the rest happens by itself."""

    def act(self, w, thing):
        try:
            return w.api.delete(thing)
        except CUT + (ApiError,) as e:
            return e

    def verify(self, w, thing, told):
        def state():
            return insist(lambda: w.api.get("/v1/sandboxes/" + thing))["state"]
        if isinstance(told, dict):
            demand(until(lambda: state() == "gone"), f"the deletion was accepted ({told}), and it is {state()}")
        else:
            demand(until(lambda: state() in ("gone", "ready", "failed")), f"half deleted for ever: {state()}")


class DeleteWhileCreating(Scenario):
    def act(self, w, thing):
        made = []

        def create():
            try:
                made.append(w.api.create())
            except CUT + (ApiError,):
                pass
        t = threading.Thread(target=create)
        t.start()
        try:
            found = until(lambda: w.api.sandboxes() or not t.is_alive(), 5, 0.002)
            if found is not True:
                for b in found or []:
                    w.api.delete(b["id"])
        except CUT + (ApiError,):
            pass
        t.join()


class Exec(Scenario):
    """What is told of a command is what it did; the sandbox lives on."""

    def prepare(self, w):
        ident = w.api.create()
        return ident, w.s.init_pid(ident)

    def act(self, w, thing):
        try:
            return w.api.exec(thing[0], "echo out; echo err >&2; exit 7", timeout_ms=20000)
        except CUT + (ApiError,):
            return None

    def verify(self, w, thing, told):
        ident, pid = thing
        if told is not None and told.kind == "exited":
            demand((told.exit_code, told.out, told.err) == (7, b"out\n", b"err\n"), f"it lies: {dict(told)}")
        elif told is not None:
            demand(told.kind in ("lost", "killed"), f"it lies: {dict(told)}")
            demand(told.exit_code is None, f"an exit code out of nothing: {dict(told)}")
        w.works(ident)
        demand(w.s.init_pid(ident) == pid, "it is another process now")


class ExecOnce(Scenario):
    """With a key, until there is an answer: it ran at most once, and what is told of it is true."""
    options = {"keep": True}
    SCRIPT = "echo x >> /root/ran; for i in 1 2 3; do echo line $i; done; echo end >&2; exit 5"

    def prepare(self, w):
        ident = w.api.create()
        return ident, w.s.init_pid(ident), w.unique("e")

    def ask(self, w, thing):
        def once():
            status, body, _ = post(w, f"/v1/sandboxes/{thing[0]}/exec",
                                   {"command": self.SCRIPT, "timeout_ms": 20000, **self.options}, thing[2])
            if status == 503:
                raise ApiError(status, body)
            demand(status in (200, 202), f"exec: {status} {body}")
            return body
        return insist(once)

    def act(self, w, thing):
        return self.ask(w, thing)

    def end_of(self, w, ident, told):
        """The exec's record and its output, read afterwards."""
        path = f"/v1/sandboxes/{ident}/execs/{told['id']}"
        x = until(lambda: [e for e in [insist(lambda: w.api.get(path))] if e["state"] == "ended"], 30)
        demand(x, f"it never ends: {insist(lambda: w.api.get(path))}")
        return x[0], insist(lambda: w.api.get(path + "/output"))

    def verify(self, w, thing, told):
        ident, pid, _ = thing
        x, output = self.end_of(w, ident, told)
        again = self.ask(w, thing)
        demand(again["id"] == told["id"], f"the key ran another one: {told} {again}")
        ran = insist(lambda: w.api.exec(ident, "cat /root/ran || true")).out
        demand(ran in (b"", b"x\n"), f"it ran {ran.count(b'x')} times")
        if x["kind"] == "exited":
            demand((x["exit_code"], output["stdout"], output["stderr"]) == (5, "line 1\nline 2\nline 3\n", "end\n"),
                   f"it lies: {x} {output}")
            demand(ran == b"x\n", "an end is told of what never ran")
        else:
            demand(x["kind"] in ("lost", "killed") and x["exit_code"] is None, f"it lies: {x}")
        demand(w.s.init_pid(ident) == pid, "it is another process now")


class ExecBackground(ExecOnce):
    """berthd is killed while it runs: it goes on, and not a byte of it is lost."""
    options = {"background": True}
    SCRIPT = "echo x >> /root/ran; for i in 1 2 3; do echo line $i; sleep 0.2; done; echo end >&2; exit 5"

    def act(self, w, thing):
        told = self.ask(w, thing)
        swallow(lambda: os.kill(w.s.pid("berthd"), signal.SIGKILL))
        until(w.s.healthy, 20)
        self.end_of(w, thing[0], told)
        return told

    def verify(self, w, thing, told):
        x, _ = self.end_of(w, thing[0], told)
        demand(x["kind"] == "exited" or told["state"] == "ended", f"it was told as running, and lost: {x}")
        super().verify(w, thing, told)


class WriteFile(Scenario):
    """With a key, until there is an answer: the file is whole."""

    def prepare(self, w):
        return w.api.create(), w.unique("f")

    def act(self, w, thing):
        ident, key = thing

        def once():
            status, body, _ = w.api.request("PUT", f"/v1/sandboxes/{ident}/files?path=/root/f", key * 5000,
                                            {"Idempotency-Key": key})
            if status == 503:
                raise ApiError(status, body)
            demand(status in (200, 201), f"write: {status} {body}")
            return body
        return insist(once)

    def verify(self, w, thing, told):
        ident, key = thing
        data = insist(lambda: w.api.request("GET", f"/v1/sandboxes/{ident}/files?path=/root/f"))[1]
        demand(data == (key * 5000).encode(), f"acknowledged, and it has {len(data)} bytes")
        names = insist(lambda: w.api.exec(ident, "ls -A /root")).out
        demand(names == b"f\n", f"more than the file is left: {names}")


class Sleep(Scenario):
    """Put to sleep until it sleeps, then used: what was on its disk is there."""

    def prepare(self, w):
        ident, text = w.api.create(), w.unique("s")
        w.api.exec(ident, f"echo {text} > /root/f")
        return ident, text

    def act(self, w, thing):
        def put_to_sleep():
            status, body, _ = post(w, f"/v1/sandboxes/{thing[0]}/sleep", None)
            if status in (503, 504):
                raise ApiError(503, body)
            demand(status == 200, f"sleep: {status} {body}")
        insist(put_to_sleep)
        return self.read(w, thing[0])

    def read(self, w, ident):
        try:
            return insist(lambda: w.api.exec(ident, "cat /root/f"))
        except ApiError:  # the engine that should wake it was killed: told as failed, and its disk is kept
            box = insist(lambda: w.api.get("/v1/sandboxes/" + ident))
            fine = "signal 9" in box["reason"] or "half made" in box["reason"]
            demand(box["state"] == "failed" and fine, f"it cannot be woken: {box}")
            insist(lambda: w.api.call("POST", f"/v1/sandboxes/{ident}/wake"))
            return insist(lambda: w.api.exec(ident, "cat /root/f"))

    def verify(self, w, thing, told):
        ident, text = thing
        read = self.read(w, ident)
        demand(read.out.decode() == text + "\n", f"its disk has {dict(read)}")
        demand(told.kind != "exited" or told.out == read.out, f"it lied: {dict(told)}")


class Limits(Scenario):
    """Changed while it runs, until there is an answer: record and kernel say the same."""

    def prepare(self, w):
        return w.api.create(memory_mb=256)

    def act(self, w, thing):
        def change():
            status, body, _ = w.api.request("PATCH", "/v1/sandboxes/" + thing, {"memory_mb": 128, "pids": 99})
            if status in (503, 504):
                raise ApiError(503, body)
            demand(status == 200 and body["limits_in_force"], f"limits: {status} {body}")
        insist(change)

    def verify(self, w, thing, told):
        box = insist(lambda: w.api.get("/v1/sandboxes/" + thing))
        demand((box["memory_mb"], box["pids"]) == (128, 99), f"acknowledged, and it has {box}")
        found = [open(f).read().strip() for where in ("memory/berth.*/%s.*/memory.limit_in_bytes", "berth.*/%s.*/memory.max")
                 for f in glob.glob("/sys/fs/cgroup/" + where % thing)]
        demand(found == [str(128 << 20)], f"the kernel says {found}")


class Identity(Scenario):
    """Asked for by identity until there is an answer, more than once: one sandbox."""

    def prepare(self, w):
        return {"org": "o", "user": w.unique("u"), "session": "s"}

    def ask(self, w, thing):
        def once():
            status, body, _ = post(w, "/v1/sandboxes", {"image": "base", "identity": thing})
            if status in (503, 504):
                raise ApiError(503, body)
            return status, body
        return insist(once)

    def act(self, w, thing):
        first = self.ask(w, thing)
        self.ask(w, thing)
        return first

    def verify(self, w, thing, told):
        boxes = w.boxes()
        demand(len(boxes) <= 1, f"one identity has {len(boxes)}: {boxes}")
        if told[0] in (200, 201):
            demand(boxes[0]["id"] == told[1]["id"], f"{told}, and there is {boxes}")


class InitDies(Scenario):
    """Its first process ends: the record says failed, and that is no leak."""

    def prepare(self, w):
        return w.api.create()

    def act(self, w, thing):
        os.kill(w.s.init_pid(thing), signal.SIGKILL)
        # What is told to nobody would be told again by the next restart.
        until(lambda: not w.s.cgroup_pids(thing), 10)
        insist(lambda: w.api.get("/v1/sandboxes/" + thing))
        until(lambda: insist(lambda: w.api.get("/v1/sandboxes/" + thing))["state"] == "failed", 5)

    def verify(self, w, thing, told):
        def failed():
            return insist(lambda: w.api.get("/v1/sandboxes/" + thing))["state"] == "failed"
        demand(until(failed), "its process is gone, and the record does not say so")


class Adopt(Scenario):
    """A daemon is killed while sandboxes live; the next one dies while it takes them over."""
    daemons = ()
    signal = signal.SIGKILL

    def prepare(self, w):
        return {b: w.s.init_pid(b) for b in (w.api.create(), w.api.create())}

    def act(self, w, thing):
        old = {d: w.s.pid(d) for d in self.daemons}
        for pid in old.values():
            os.kill(pid, self.signal)
        until(lambda: all(w.s.pid(d) not in (0, old[d]) for d in self.daemons), 20)
        until(w.s.healthy, 20)
        for b in thing:
            insist(lambda: w.api.exec(b, "true"))
        w.check(repair=True)

    def verify(self, w, thing, told):
        for b, pid in thing.items():
            box = insist(lambda: w.api.get("/v1/sandboxes/" + b))
            demand(box["state"] == "ready", f"it was lost: {box}")
            w.works(b)
            demand(w.s.init_pid(b) == pid, f"{b} is another process now")


class AdoptByBerthd(Adopt):
    daemons = ("berthd",)


class AdoptByNode(Adopt):
    daemons = ("berth-node",)


class Upgrade(Adopt):
    """Both are asked to end, as a package's upgrade does, and started anew."""
    daemons = ("berthd", "berth-node")
    signal = signal.SIGTERM


class Unfinished(Scenario):
    """One sandbox half made and one half deleted when berthd dies; the next one dies as it takes them up."""

    def prepare(self, w):
        victim, key = w.api.create(), w.unique("u")
        node = w.s.pid("berth-node")
        os.kill(node, signal.SIGSTOP)  # so that neither comes to its end
        for work in (lambda: post(w, "/v1/sandboxes", {"image": "base"}, key), lambda: w.api.delete(victim)):
            threading.Thread(target=swallow, args=(work,)).start()

        def begun():
            return sorted(b["state"] for b in w.api.sandboxes()) == ["creating", "deleting"]
        demand(until(begun, 20), f"not begun: {w.api.sandboxes()}")
        return victim, key, node

    def act(self, w, thing):
        _, key, node = thing
        os.kill(w.s.pid("berthd"), signal.SIGKILL)
        os.kill(node, signal.SIGCONT)

        def ask():
            status, body, _ = post(w, "/v1/sandboxes", {"image": "base"}, key)
            if status == 503:
                raise ApiError(status, body)
            return status, body
        return insist(ask)

    def verify(self, w, thing, told):
        victim, key, _ = thing

        def gone():
            return insist(lambda: w.api.get("/v1/sandboxes/" + victim))["state"] == "gone"
        demand(until(gone), f"{victim} was being deleted, and is not gone")
        again, second, _ = insist(lambda: post(w, "/v1/sandboxes", {"image": "base"}, key))
        demand(again == told[0], f"the key's second answer is {again} {second}, not {told}")
        demand(len(w.boxes()) <= 1, f"one key made {w.boxes()}")


class Ghost(Scenario):
    """Parts of a sandbox that has a receipt already: a look removes them."""

    def prepare(self, w):
        ident = w.api.create()
        w.sql(f"""WITH gone AS (DELETE FROM sandbox WHERE id = '{ident}' RETURNING *)
            INSERT INTO tombstone (id, owner, host, generation, receipt) SELECT id, owner, host, generation,
            '{{"process":"absent","cgroup":"absent","disk":"absent","runtime":"absent"}}' FROM gone""")
        return ident

    def act(self, w, thing):
        w.check(repair=True)
        until(w.s.healthy, 20)
        w.check(repair=True)

    def verify(self, w, thing, told):
        w.check(repair=True)
        demand(until(lambda: thing not in str(w.left()), 20), f"deleted, and left: {w.left()}")


class Broken(Scenario):
    """A sandbox that cannot be made, because its image has lost its files: told, and nothing of it is left."""

    def prepare(self, w):
        status, body, _ = insist(lambda: w.api.request("PUT", "/v1/images/unusable", small_tar("unusable")))
        demand(status == 201, f"import: {status} {body}")
        files = f"{body['digest'].removeprefix('sha256:')}/rootfs"
        os.rename(f"{w.images_dir()}/{files}", f"{w.images_dir()}/{files}.away")
        return files

    def act(self, w, thing):
        try:
            return post(w, "/v1/sandboxes", {"image": "unusable"})[0]
        except CUT:
            return 0

    def verify(self, w, thing, told):
        demand(told != 201, "it was started")
        demand(until(lambda: all(b["state"] == "failed" for b in w.boxes())), f"it is {w.boxes()}")

        def put_back():
            try:
                os.rename(f"{w.images_dir()}/{thing}.away", f"{w.images_dir()}/{thing}")
                return True
            except OSError:
                return False  # a berth-node that has not mounted its pool yet
        demand(until(put_back), "the image's files are gone")


def small_tar(text, name="etc-name"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


class ImageImport(Scenario):
    """Asked for until it is there."""

    def act(self, w, thing):
        name = w.unique("img")
        tar = small_tar(name)

        def put():
            status, body, _ = w.api.request("PUT", "/v1/images/" + name, tar)
            if status in (500, 503, 504):  # a helper that was killed: again
                raise ApiError(503, body)
            demand(status == 201, f"import: {status} {body}")
            return body
        return name, insist(put)

    def verify(self, w, thing, told):
        name, image = told
        names = {i["name"]: i for i in insist(lambda: w.api.get("/v1/images"))["images"]}
        demand(names.get(name, {}).get("digest") == image["digest"], f"acknowledged, and not listed: {names}")
        demand(image["digest"].removeprefix("sha256:") in os.listdir(w.images_dir()), "it has a name and no files")
        insist(lambda: w.api.call("DELETE", "/v1/images/" + name))


class ImageImportCutOff(ImageImport):
    """Asked for once. Files without a name are told by the check, and removed by its repair."""
    repair = True

    def act(self, w, thing):
        name = w.unique("img")
        try:
            status, _, _ = w.api.request("PUT", "/v1/images/" + name, small_tar(name))
            return name, status == 201
        except CUT:
            return name, False

    def verify(self, w, thing, told):
        name, done = told
        names = [i["name"] for i in insist(lambda: w.api.get("/v1/images"))["images"]]
        demand(name in names or not done, f"acknowledged, and not listed: {names}")
        if name in names:
            insist(lambda: w.api.call("DELETE", "/v1/images/" + name))


class ImageRemove(Scenario):
    repair = True

    def prepare(self, w):
        name = w.unique("img")
        w.api.request("PUT", "/v1/images/" + name, small_tar(name))
        return name

    def act(self, w, thing):
        def remove():
            status, body, _ = w.api.request("DELETE", "/v1/images/" + thing)
            if status in (500, 503, 504):
                raise ApiError(503, body)
            demand(status in (200, 404), f"remove: {status} {body}")
        insist(remove)

    def verify(self, w, thing, told):
        names = [i["name"] for i in insist(lambda: w.api.get("/v1/images"))["images"]]
        demand(thing not in names, f"removed, and listed: {names}")


class ImageAgain(Scenario):
    """Removed, and the same bytes imported again: they are all there."""
    repair = True

    def prepare(self, w):
        tar = small_tar(w.unique("again"))
        insist(lambda: w.api.call("PUT", "/v1/images/again", tar))
        return tar

    def act(self, w, thing):
        def until_done(method, body, fine):
            def once():
                status, told, _ = w.api.request(method, "/v1/images/again", body)
                if status in (500, 503, 504):
                    raise ApiError(503, told)
                demand(status in fine, f"{method}: {status} {told}")
                return told
            return insist(once)
        until_done("DELETE", None, (200, 404))
        return until_done("PUT", thing, (201,))

    def verify(self, w, thing, told):
        files = os.listdir(f"{w.images_dir()}/{told['digest'].removeprefix('sha256:')}/rootfs")
        demand("etc-name" in files, f"the image has {files}")
        insist(lambda: w.api.call("DELETE", "/v1/images/again"))


ALL = {
    "create": Create,
    "create-once": CreateOnce,
    "exec": Exec,
    "exec-once": ExecOnce,
    "exec-background": ExecBackground,
    "write-file": WriteFile,
    "delete": Delete,
    "delete-once": DeleteOnce,
    "delete-cut-off": DeleteCutOff,
    "delete-while-creating": DeleteWhileCreating,
    "sleep": Sleep,
    "limits": Limits,
    "identity": Identity,
    "init-dies": InitDies,
    "adopt-berthd": AdoptByBerthd,
    "adopt-node": AdoptByNode,
    "upgrade": Upgrade,
    "unfinished": Unfinished,
    "ghost": Ghost,
    "broken": Broken,
    "image-import": ImageImport,
    "image-import-cut-off": ImageImportCutOff,
    "image-remove": ImageRemove,
    "image-again": ImageAgain,
}
