"""What clients do while a daemon dies, and what must be true of it afterwards.

prepare() runs unharmed; act() runs with an order to die somewhere; verify() runs when everything is
up again. What act() returns is given to verify().
"""
import glob
import io
import os
import pathlib
import signal
import subprocess
import tarfile
import threading

import hostile
from world import CUT, ApiError, demand, insist, leftovers, until


class Scenario:
    repair = False  # a client of its own does not bring it to its end: an operator does
    hasty = False   # what follows does not wait until the server is healthy again

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


def answer(w, method, path, body=None, key=None, fine=None, again=(503, 504)):
    """(status, body), asked for until there is one; of those that are fine, if they are named."""
    def once():
        status, told, _ = w.api.request(method, path, body, {"Idempotency-Key": key} if key else None)
        if status in again:
            raise ApiError(503, told)
        demand(fine is None or status in fine, f"{method} {path}: {status} {told}")
        return status, told
    return insist(once)


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
        first, _ = (answer(w, "POST", "/v1/sandboxes", {"image": "base"}, key, again=(503,)) for _ in range(2))
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


class CreateLeft(CreateOnce):
    """A create that nobody works on any more is taken up by whoever asks for it with its key."""

    def prepare(self, w):
        key = w.unique("k")
        ident = answer(w, "POST", "/v1/sandboxes", {"image": "base"}, key, fine=(201,))[1]["id"]
        w.sql(f"UPDATE idempotency SET status = NULL, response = NULL WHERE key = '{key}'; UPDATE sandbox SET "
              f"state = 'creating', deadline_at = now() + interval '3 seconds' WHERE id = '{ident}'")
        return key

    def act(self, w, thing):
        return thing, answer(w, "POST", "/v1/sandboxes", {"image": "base"}, thing, again=(503,))


class Delete(Scenario):
    """Asked for until it is proven."""

    def prepare(self, w):
        return w.api.create()

    def ask(self, w, ident, key=None):
        def once():
            body = answer(w, "DELETE", "/v1/sandboxes/" + ident, None, key, fine=(200, 202), again=(503,))[1]
            return body if body["state"] == "gone" else None
        return until(once)

    def act(self, w, thing):
        return self.ask(w, thing)

    def verify(self, w, thing, told):
        demand(told, f"{thing} was never proven gone")
        receipt = insist(lambda: w.api.get(f"/v1/sandboxes/{thing}/receipt"))["receipt"]
        demand(receipt == told["receipt"], f"two receipts: {receipt} {told}")
        demand(thing not in str(w.left()), f"deleted, and left: {w.left()}")


class DeleteHeld(Delete):
    """Its network namespace does not end with its processes, so the kernel does not remove its link."""

    def prepare(self, w):
        ident = super().prepare(w)
        self.netns = open(f"/proc/{w.s.cgroup_pids(ident)[0]}/ns/net")
        return ident

    def verify(self, w, thing, told):
        with self.netns:
            super().verify(w, thing, told)


class DeleteHostile(Delete):
    """A guest at work against it: there is a receipt all the same, the neighbour works, and the pool is as it was."""
    guests = ()

    def prepare(self, w):
        self.neighbour, self.pool = w.api.create(), hostile.Pool(w.pool_dir)
        ident = w.api.create(**hostile.LIMITS)
        disk = f"{w.pool_dir()}/sandboxes/{w.s.allocation(ident)}"
        hostile.at_work(w.api, ident, self.guests, hostile.Look(lambda: w.s.cgroup_pids(ident), disk))
        return ident

    def verify(self, w, thing, told):
        super().verify(w, thing, told)
        w.works(self.neighbour)
        self.pool.as_before()


class DeleteNests(DeleteHostile):
    guests = ("nests",)


class DeleteStops(DeleteHostile):
    guests = ("fills", "stops")


class DeleteForks(DeleteHostile):
    guests = ("fills", "forks")


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


class DeleteLater(Delete):
    """berth-node hangs and is killed, so the first attempt proves nothing; the next one does."""

    def act(self, w, thing):
        w.s.signal("berth-node", signal.SIGSTOP)
        t = threading.Thread(target=swallow, args=(lambda: w.api.delete(thing),))
        t.start()
        until(lambda: insist(lambda: w.api.get("/v1/sandboxes/" + thing))["state"] != "ready", 20)
        swallow(lambda: w.s.signal("berth-node", signal.SIGKILL))
        t.join()
        return self.ask(w, thing)


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


class Sleep(Scenario):
    """Put to sleep until it sleeps, then used: what was on its disk is there."""

    def prepare(self, w):
        ident, text = w.api.create(), w.unique("s")
        w.api.exec(ident, f"echo {text} > /root/f")
        return ident, text

    def act(self, w, thing):
        answer(w, "POST", f"/v1/sandboxes/{thing[0]}/sleep", fine=(200,))
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
        return {"org": "o", "user": "u", "session": w.unique("s")}

    def ask(self, w, thing):
        return answer(w, "POST", "/v1/sandboxes", {"image": "base", "identity": thing})

    def act(self, w, thing):
        first = self.ask(w, thing)
        self.ask(w, thing)
        return first

    def verify(self, w, thing, told):
        usable = ("creating", "ready", "falling_asleep", "asleep", "waking")  # what is going frees its identity
        boxes = [b for b in w.boxes() if b["state"] in usable]
        demand(len(boxes) <= 1, f"one identity has {len(boxes)}: {boxes}")
        if told[0] in (200, 201):
            demand(boxes[0]["id"] == told[1]["id"], f"{told}, and there is {boxes}")


class Idle(Sleep):
    """Nobody uses it, so it sleeps by itself; then it is used."""

    def prepare(self, w):
        ident, text = super().prepare(w)
        insist(lambda: w.api.call("PATCH", "/v1/sandboxes/" + ident, {"sleep_after_ms": 1000}))
        return ident, text

    def act(self, w, thing):
        def sleeps():
            return insist(lambda: w.api.get("/v1/sandboxes/" + thing[0]))["state"] != "ready"
        demand(until(sleeps), "nobody uses it, and it does not sleep")
        return self.read(w, thing[0])


class Aged(Scenario):
    """Its lifetime is over: it is deleted, and that is proven."""

    def prepare(self, w):
        return w.api.create(lifetime_ms=3600000)

    def act(self, w, thing):
        w.sql(f"UPDATE sandbox SET expires_at = now(), deadline_at = now() WHERE id = '{thing}'")
        until(lambda: self.gone(w, thing), 20)

    def gone(self, w, ident):
        return insist(lambda: w.api.get("/v1/sandboxes/" + ident))["state"] == "gone"

    def verify(self, w, thing, told):
        demand(until(lambda: self.gone(w, thing)), f"too old, and there: {w.boxes()}")
        demand(thing not in str(w.left()), f"gone, and left: {w.left()}")


class Patch(Scenario):
    """Changed until it is told as changed: the record is what was told."""

    def prepare(self, w):
        return w.api.create(labels={"was": "here"})

    def act(self, w, thing):
        return answer(w, "PATCH", "/v1/sandboxes/" + thing, {"labels": {"is": "new"}, "keep_alive": True}, fine=(200,))[1]

    def verify(self, w, thing, told):
        box = insist(lambda: w.api.get("/v1/sandboxes/" + thing))
        demand(box["labels"] == told["labels"] == {"is": "new"} and box["keep_alive"], f"told {told}, and it is {box}")
        demand([b["id"] for b in insist(lambda: w.api.get("/v1/sandboxes?selector=is=new"))["sandboxes"]] == [thing],
               "its label does not find it")


class Policy(Scenario):
    """Added, asked for by identity, removed: what was decided stays, and no policy does."""

    def prepare(self, w):
        return w.unique("o")

    def ask(self, w, thing, session):
        identity = {"org": thing, "user": "u", "session": thing + session}
        return answer(w, "POST", "/v1/sandboxes", {"image": "base", "identity": identity})

    def act(self, w, thing):
        row = {"scope": "org", "subject": thing, "isolation": "shared"}
        answer(w, "POST", "/v1/policies", row, fine=(201, 409))
        told = [self.ask(w, thing, session) for session in ("a", "b")]
        for p in insist(lambda: w.api.get("/v1/policies"))["policies"]:
            answer(w, "DELETE", f"/v1/policies/{p['id']}", fine=(200, 404))
        return told

    def verify(self, w, thing, told):
        left = insist(lambda: w.api.get("/v1/policies"))["policies"]
        demand(not left, f"removed, and listed: {left}")
        if all(status in (200, 201) for status, _ in told):
            again = [self.ask(w, thing, session)[1]["id"] for session in ("b", "a")]
            demand(len({body["id"] for _, body in told} | set(again)) == 1, f"shared, and they are {told} {again}")


class Network(Scenario):
    """Made with a policy and a secret, then changed, until there is an answer: what is in force is what is on record."""

    def prepare(self, w):
        return w.unique("s")

    def act(self, w, thing):
        secret = {"host": "api.example.com", "header": "Authorization", "value": "Bearer 0123456789abcdef"}
        first = {"mode": "allow", "rules": [{"host": "a.example.com"}]}
        second = {"mode": "allow", "rules": [{"host": "b.example.com"}, {"host": "api.example.com"}], "secrets": [thing]}
        answer(w, "PUT", "/v1/secrets/" + thing, secret, fine=(200, 201))
        status, box = answer(w, "POST", "/v1/sandboxes", {"image": "base", "network": first}, key=thing, again=(503, 504))
        if status == 201:
            answer(w, "PUT", f"/v1/sandboxes/{box['id']}/network", second, fine=(200, 202))
        answer(w, "PUT", f"/v1/secrets/{thing}-unused", secret, fine=(200, 201))
        answer(w, "DELETE", f"/v1/secrets/{thing}-unused", fine=(200, 404))
        return box["id"] if status == 201 else None

    def verify(self, w, thing, told):
        def in_force():
            now = insist(lambda: w.api.get(f"/v1/sandboxes/{told}/network"))
            return now if now["in_force"] else None
        if told:
            now = until(in_force)
            demand(now and [r["host"] for r in now["rules"]] == ["b.example.com", "api.example.com"], f"changed, and it is {now}")
            insist(lambda: w.api.delete(told))
        answer(w, "DELETE", "/v1/secrets/" + thing, fine=(200, 404))
        left = insist(lambda: w.api.get("/v1/secrets"))["secrets"]
        demand(not [k for k in left if k["name"].startswith(thing)], f"removed, and listed: {left}")


class Profile(Scenario):
    """Added, used and removed: what was made by it keeps its limits."""

    def prepare(self, w):
        return w.unique("p")

    def act(self, w, thing):
        answer(w, "POST", "/v1/profiles", {"name": thing, "memory_mb": 96}, fine=(200, 201, 409))
        made = answer(w, "POST", "/v1/sandboxes", {"image": "base", "profile": thing}, key=thing)
        answer(w, "DELETE", "/v1/profiles/" + thing, fine=(200, 404))
        return made

    def verify(self, w, thing, told):
        status, box = told
        if status == 201:
            now = insist(lambda: w.api.get("/v1/sandboxes/" + box["id"]))
            demand(now["memory_mb"] == 96, f"its profile said 96, and it has {now}")
        left = insist(lambda: w.api.get("/v1/profiles"))["profiles"]
        demand(thing not in [p["name"] for p in left], f"removed, and listed: {left}")


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


class RestLives(InitDies):
    """Its first process ends, and one that an engine left is in its cgroups: that is ended, too."""

    def prepare(self, w):
        ident = w.api.create()
        self.rest = subprocess.Popen(["sleep", "1000"])
        for line in leftovers.read(f"/proc/{w.s.init_pid(ident)}/cgroup").split():
            _, tree, path = line.split(":", 2)
            tops = ("/sys/fs/cgroup/" + tree.removeprefix("name="),) if tree else ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")
            for procs in [p for p in (f"{top}{path}/cgroup.procs" for top in tops) if os.path.exists(p)]:
                pathlib.Path(procs).write_text(str(self.rest.pid))
        demand(self.rest.pid in w.s.cgroup_pids(ident), "it is not in the sandbox's cgroup")
        return ident

    def verify(self, w, thing, told):
        super().verify(w, thing, told)
        demand(until(lambda: self.rest.poll() is not None), "the rest of it lives")


class Adopt(Scenario):
    """A daemon is killed while sandboxes live; the next one dies while it takes them over."""
    daemons = ()
    signal = signal.SIGKILL

    def prepare(self, w):
        return {b: w.s.init_pid(b) for b in (w.api.create(), w.api.create())}

    def act(self, w, thing):
        old = {d: w.s.signal(d, self.signal) for d in self.daemons}
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
        node = w.s.signal("berth-node", signal.SIGSTOP)  # so that neither comes to its end
        for work in (lambda: post(w, "/v1/sandboxes", {"image": "base"}, key), lambda: w.api.delete(victim)):
            threading.Thread(target=swallow, args=(work,)).start()

        def begun():
            return sorted(b["state"] for b in w.api.sandboxes()) == ["creating", "deleting"]
        demand(until(begun, 20), f"not begun: {w.api.sandboxes()}")
        return victim, key, node

    def act(self, w, thing):
        _, key, node = thing
        w.s.signal("berthd", signal.SIGKILL)
        swallow(lambda: os.kill(node, signal.SIGCONT))
        return answer(w, "POST", "/v1/sandboxes", {"image": "base"}, key, again=(503,))

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


HELPER_KILLED = (500, 503, 504)


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
        return name, answer(w, "PUT", "/v1/images/" + name, small_tar(name), fine=(201,), again=HELPER_KILLED)[1]

    def verify(self, w, thing, told):
        name, image = told
        names = {i["name"]: i for i in insist(lambda: w.api.get("/v1/images"))["images"]}
        demand(names.get(name, {}).get("digest") == image["digest"], f"acknowledged, and not listed: {names}")
        demand(image["digest"].removeprefix("sha256:") in os.listdir(w.images_dir()), "it has a name and no files")
        insist(lambda: w.api.call("DELETE", "/v1/images/" + name))


class ImageImportCutOff(ImageImport):
    """Asked for once. Files without a name are told by the check, and removed by its repair."""
    repair = True
    hasty = True  # the repair is asked for while berth-node is away, and must not count as done

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
        answer(w, "DELETE", "/v1/images/" + thing, fine=(200, 404), again=HELPER_KILLED)

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
        answer(w, "DELETE", "/v1/images/again", fine=(200, 404), again=HELPER_KILLED)
        return answer(w, "PUT", "/v1/images/again", thing, fine=(201,), again=HELPER_KILLED)[1]

    def verify(self, w, thing, told):
        files = os.listdir(f"{w.images_dir()}/{told['digest'].removeprefix('sha256:')}/rootfs")
        demand("etc-name" in files, f"the image has {files}")
        insist(lambda: w.api.call("DELETE", "/v1/images/again"))


ALL = {
    "create": Create,
    "create-once": CreateOnce,
    "create-left": CreateLeft,
    "delete": Delete,
    "delete-once": DeleteOnce,
    "delete-held": DeleteHeld,
    "delete-nests": DeleteNests,
    "delete-stops": DeleteStops,
    "delete-forks": DeleteForks,
    "delete-cut-off": DeleteCutOff,
    "delete-later": DeleteLater,
    "delete-while-creating": DeleteWhileCreating,
    "sleep": Sleep,
    "limits": Limits,
    "idle": Idle,
    "aged": Aged,
    "patch": Patch,
    "identity": Identity,
    "policy": Policy,
    "network": Network,
    "profile": Profile,
    "init-dies": InitDies,
    "rest-lives": RestLives,
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
