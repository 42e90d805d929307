"""A server that can be told where to die, and looks at what is left of it."""
import http.client
import json
import os
import pathlib
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/system"))

import router  # noqa: E402
from client import Api, ApiError  # noqa: E402,F401
import images  # noqa: E402
from marks import SLOW  # noqa: E402
from server import Server, build_rootfs, leftovers  # noqa: E402,F401

DIVISOR = 20
SETTLE = float(os.environ.get("BERTH_CRASH_SETTLE", 45 * SLOW))  # seconds for everything to be as it should be again
CUT = (OSError, http.client.HTTPException, ValueError)  # the answer did not come


def alone():
    """A network and shared memory of its own for this process and everything it starts."""
    if not os.environ.get("BERTH_CRASH_INSIDE"):
        os.execvpe("unshare", ["unshare", "--net", "--mount", sys.executable, *sys.argv],
                   {**os.environ, "BERTH_CRASH_INSIDE": "1"})
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/dev/shm"], check=True)


class Violation(Exception):
    pass


def demand(true, text):
    if not true:
        raise Violation(text)


def until(look, seconds=SETTLE, every=0.03):
    """The first true answer, or the last one."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found or time.monotonic() > end:
            return found
        time.sleep(every)


def insist(call, seconds=SETTLE):
    """As a client with patience: again while the answer does not come or is "busy"."""
    end = time.monotonic() + seconds
    while True:
        try:
            return call()
        except CUT as e:
            why = e
        except ApiError as e:
            if e.status not in (429, 503, 504):
                raise
            why = e
        if time.monotonic() > end:
            raise Violation(f"no answer in {seconds} s: {why}")
        time.sleep(0.03)


class World:
    """One `berth dev` of a build with crash points. It serves many deaths."""

    def __init__(self, build, work, number):
        self.work = work
        self.orders = work / f"orders{number}"
        self.orders.mkdir(mode=0o777)
        self.orders.chmod(0o777)
        self.s = Server(build, "crun", work / f"w{number}")
        self.s.work = work
        self.s.dev_env = {"BERTH_CRASH_DIR": str(self.orders), "BERTH_TIMER_DIVISOR": str(DIVISOR)}
        self.made = 0
        self.s.start()
        self.api = self.s.api
        self.api.timeout = 40
        self.import_base()

    def import_base(self):
        code, _, err = self.s.berth("image", "import", "base", str(self.work / "base.tar"))
        demand(code == 0, f"import: {err}")

    def image(self, *programs):
        return images.have(self.s, *programs)

    def unique(self, prefix):
        self.made += 1
        return f"{prefix}{os.getpid()}x{self.made}"

    def daemons(self):
        """{pid: role}"""
        return {self.s.pid("berthd"): "berthd", self.s.pid("berth-node"): "node"}

    # -- orders -------------------------------------------------------------------------------

    def record(self):
        (self.orders / "log").write_text("")
        (self.orders / "log").chmod(0o666)

    def passed(self):
        """[(name, "berthd" | "node" | "child")] of what was passed since record()."""
        log = self.orders / "log"
        rows = [line.split() for line in log.read_text().splitlines()]
        log.unlink()
        return rows

    def arm(self, point, count, who):
        pids = {"berthd": str(self.s.pid("berthd")), "node": str(self.s.pid("berth-node"))}
        text = ",".join(pids.get(w, w) for w in who.split("+"))
        self.disarm()
        order = self.orders / "order"
        order.write_text(f"{point} {count} {text}\n")
        order.chmod(0o666)
        order.rename(self.orders / "at")

    def disarm(self):
        """True if somebody died by it."""
        for name in ("at", "hit"):
            try:
                (self.orders / name).unlink()
                if name == "hit":
                    return True
            except FileNotFoundError:
                pass
        return False

    # -- looking ------------------------------------------------------------------------------

    def healthy(self):
        demand(until(self.s.healthy), "not healthy again: " + self.s.said())

    def boxes(self):
        return insist(self.api.sandboxes)

    def check(self, repair=False):
        code, out, err = self.s.berth("check", "--json", *(["--repair"] if repair else []))
        try:
            return code, json.loads(out)
        except ValueError:
            return code, {"ok": False, "findings": [err.decode()]}

    def repair(self):
        """As an operator would: again while the answer is that nothing could be seen. One answer must do."""
        seen = []

        def answered():
            code, said = self.check(repair=True)
            seen.append(said)
            return code in (0, 1)
        demand(until(answered), f"berth check --repair: {seen[-1]}")

    def sql(self, text):
        conf = pathlib.Path(self.s.dir, "berthd.conf").read_text()
        conninfo = next(line.split("=", 1)[1].strip() for line in conf.split("\n") if line.startswith("database"))
        user = next(word.split("=")[1] for word in conninfo.split() if word.startswith("user="))
        return subprocess.run(["psql", "-qAt", conninfo, "-c", text], check=True, capture_output=True, text=True,
                              user=user, cwd="/").stdout

    def pool_dir(self):
        return f"/proc/{self.s.pid('berth-node')}/root{self.s.dir}/node/pool"

    def images_dir(self):
        return self.pool_dir() + "/images"

    def left(self):
        """What the host holds of any sandbox, by our own look."""
        d, found = self.s.dir, []
        for part in ("alloc", "engine/crun", "engine/runsc"):
            found += [f"{part}/{n}" for n in leftovers.names(f"{d}/node/{part}")]
        root = self.pool_dir()
        found += ["disk " + n for n in leftovers.names(root + "/sandboxes")]
        found += ["image " + n for n in leftovers.names(root + "/images") if n.startswith(".")]
        parent = f"/berth.{self.s.instance()}"
        for tree in leftovers.names("/sys/fs/cgroup"):
            base = f"/sys/fs/cgroup/{tree}{parent}"
            found += [f"cgroup {tree}/{n}" for n in leftovers.names(base) if os.path.isdir(f"{base}/{n}")]
        for p in leftovers.names("/proc"):
            if p.isdigit() and parent + "/" in leftovers.read(f"/proc/{p}/cgroup"):
                if not leftovers.Process(int(p)).dead:
                    found.append(f"process {p}")
        found += [f"link {link} of {whose}" for link, whose in router.links(d).items() if whose]
        found += [f"{link} let in" for link, _ in router.live(d)]
        return found

    def delete_all(self):
        """Every sandbox goes, with a receipt that proves it."""
        gone = []

        def one(ident):
            r = self.api.delete(ident)
            return r if r["state"] == "gone" else None
        for box in self.boxes():
            ident = box["id"]
            answer = until(lambda: insist(lambda: one(ident)))
            demand(answer, f"{ident} cannot be deleted: {insist(lambda: self.api.get('/v1/sandboxes/' + ident))}")
            parts = {answer["receipt"][p] for p in ("process", "cgroup", "disk", "runtime", "link")}
            demand(parts == {"absent"}, f"{ident} has a receipt that proves nothing: {answer}")
            gone.append(ident)
        return gone

    def works(self, ident):
        r = insist(lambda: self.api.exec(ident, "echo here"))
        demand((r.kind, r.exit_code, r.out) == ("exited", 0, b"here\n"), f"{ident} is ready and answers {dict(r)}")

    def settle(self):
        """All that is listed as ready works; all can be deleted; then records and host agree, and the host is empty."""
        self.healthy()
        demand(until(lambda: all(b["state"] != "creating" for b in self.boxes())), f"still creating: {self.boxes()}")
        for b in self.boxes():
            if b["state"] == "ready":
                self.works(b["id"])
        answer = {}

        def agree():
            answer.update(self.check()[1])
            return answer["ok"]
        demand(until(agree), "berth check: " + json.dumps(answer.get("findings"))[:1500])
        gone = self.delete_all()
        demand(until(agree), "berth check after deleting: " + json.dumps(answer.get("findings"))[:1500])
        left = until(lambda: not self.left(), 20)
        demand(left, f"left on the host: {self.left()}")
        for ident in gone:
            r = insist(lambda: self.api.get(f"/v1/sandboxes/{ident}/receipt"))
            demand(r["state"] == "gone", f"{ident} has no receipt: {r}")

    def deep_look(self):
        bad = [f for f in self.s.leftovers() if f["kind"] in ("record", "engine record", "subvolume") or
               "/sb_" in f["what"]]
        demand(not bad, f"left: {bad}")

    def logs(self):
        out = []
        for name in ("berthd", "berth-node"):
            text = pathlib.Path(self.s.dir, "log", name + ".log").read_text(errors="replace").splitlines()
            text = [line for line in text if '"msg":"request"' not in line]
            out += [f"-- {name}"] + [line[:300] for line in text[-8:]]
        return "\n".join(out)

    def close(self):
        try:
            self.s.stop()
        except (subprocess.TimeoutExpired, OSError):
            pass
        self.s.sweep()
