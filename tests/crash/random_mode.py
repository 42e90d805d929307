#!/usr/bin/env python3
"""Clients at work while everything goes wrong, for a while; then the history is checked.

usage: random_mode.py [--build DIR] [--seconds N] [--hosts N] [--seed N]

Concurrent clients create (with keys), use and delete sandboxes. Meanwhile daemons and PostgreSQL are
killed with -9, stopped and continued, and the pool is filled up. In a share of the sandboxes the guest
works against its own end (hostile.py). Everything asked and answered is written down with its times;
wall clocks of hosts and of PostgreSQL jump by minutes. Afterwards: no sandbox was ever alive twice, no
acknowledged create is lost, no deleted sandbox is alive, one sandbox per key, no row without its thing,
no thing without its row, every command told the truth, and the pools hold what they held before.
"""
import argparse
import collections
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import hostile  # noqa: E402
from clock import Clock  # noqa: E402
from marks import on_stop  # noqa: E402
from world import CUT, ApiError, Violation, alone, build_rootfs, insist, leftovers, until  # noqa: E402

CLIENTS = 5
BOXES_MAX = 12   # alive at once, of one client
JUMP_MAX = 300   # seconds
PATIENCE = 90    # seconds a client insists
HOSTILE = 0.2    # of the creates; a client has one of them at a time, and the machine is shared
TAME = {"memory_mb": 32, "disk_mb": 64}


def jump(rng, clocks):
    """Forward, or back: never more than minutes from the machine's own."""
    rng.choice(clocks).set(rng.choice((-JUMP_MAX, -60, 0, 60, JUMP_MAX)))


def probe_of(build):
    return pathlib.Path(build, "src/probe/berth-probe")


def disk_in(pool, ident):
    """The sandbox's disk there, or one that does not exist."""
    found = [n for n in leftovers.names(pool + "/sandboxes") if n.startswith(ident + ".")]
    return f"{pool}/sandboxes/{found[0] if found else ident}"


class One:
    """One host: a `berth dev`."""
    name = "one host"

    def __init__(self, build, work, seconds):
        from server import Server
        self.s = Server(build, "crun", work / "dev")
        self.clocks = [Clock(work / "clock")]
        self.s.dev_env = {"BERTH_TIMER_DIVISOR": "20", **self.clocks[0].env}
        self.s.start()
        build_rootfs(work / "base.tar", probe=probe_of(build))
        code, _, err = self.s.berth("image", "import", "base", str(work / "base.tar"))
        assert code == 0, err
        self.s.api.timeout = 60
        self.apis = [self.s.api]

    def trouble(self, rng):
        """[(how often, name, function)]"""
        return [(5, "kills of berthd", lambda: self.kill("berthd")),
                (5, "kills of berth-node", lambda: self.kill("berth-node")),
                (2, "kills of both", lambda: self.kill("berthd", "berth-node")),
                (1, "kills of PostgreSQL", lambda: self.kill("postgres")),
                (2, "stopped and continued", lambda: self.stop(rng)),
                (2, "clock jumps", lambda: jump(rng, self.clocks)),
                (1, "full pools", self.fill)]

    def kill(self, *names):
        for n in names:
            try:
                self.s.kill(n)
            except (OSError, ValueError, AssertionError):
                pass  # it is not back yet

    def stop(self, rng):
        try:
            pid = self.s.pid(rng.choice(("berthd", "berth-node", "postgres")))
            if pid > 1:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(rng.uniform(0.2, 2.5))
                os.kill(pid, signal.SIGCONT)
        except (OSError, ValueError):
            pass

    def fill(self):
        """All of the pool, for a moment."""
        path = self.pools()[0]() + "/images/filler"
        try:
            with open(path, "wb") as f:
                free = os.fstatvfs(f.fileno())
                size = free.f_bavail * free.f_frsize
                while size > 1 << 16:
                    try:
                        os.posix_fallocate(f.fileno(), os.fstat(f.fileno()).st_size, size)
                    except OSError:
                        size //= 2
        except OSError:
            pass
        time.sleep(1)
        try:
            os.unlink(path)
        except OSError:
            pass

    def pools(self):
        """Where the pool of each host is: below its berth-node of that moment."""
        return [lambda: f"/proc/{self.s.pid('berth-node')}/root{self.s.dir}/node/pool"]

    def alive(self):
        """{sandbox: [init processes]} on all hosts, by the host's own look."""
        parent, found = f"/berth.{self.s.instance()}/", collections.defaultdict(set)
        for p in leftovers.names("/proc"):
            text = leftovers.read(f"/proc/{p}/cgroup") if p.isdigit() else ""
            if parent in text and not leftovers.Process(int(p)).dead:
                name = text.split(parent, 1)[1].split("\n")[0].split("/")[0]
                found[name.removesuffix(".launch").rpartition(".")[0]].add(name.removesuffix(".launch"))
        return found

    def checks(self):
        code, out, err = self.s.berth("check", "--json", timeout=90)
        return [] if code == 0 else [(out or err).decode()[:1500]]

    def close(self):
        status = self.s.stop()
        left = [f for f in self.s.leftovers() if f["kind"] in ("process", "cgroup", "mount", "loop", "netns", "link")]
        return ([f"berth dev ended with {status}"] if status else []) + [f"left: {f}" for f in left]

    def sweep(self):
        self.s.sweep()


class Several:
    """A cell of leased hosts, one PostgreSQL with a synchronous standby."""

    def __init__(self, build, work, seconds, hosts):
        import cell_world
        build_rootfs(work / "base.tar", probe=probe_of(build))
        clocks = collections.defaultdict(lambda: Clock(work / f"clock{len(clocks)}"))
        world = type("World", (cell_world.StandbyWorld,), {"HOSTS": hosts, "clock": lambda _, name: clocks[name].env})
        self.name, self.w = f"{hosts} hosts", world(build, work, 1)
        self.apis = [h.api for h in self.w.c.hosts]
        for api in self.apis:
            api.timeout = 60
        self.clocks = list(clocks.values())
        self.failover_at = time.monotonic() + seconds / 2
        self.primary = 0

    def trouble(self, rng):
        def one(*names):
            return lambda: rng.choice(self.w.c.hosts).kill(*names)
        return [(4, "kills of berthd", one("berthd")),
                (4, "kills of berth-node", one("node")),
                (2, "kills of both", one()),
                (2, "kills of PostgreSQL", self.kill_postgres),
                (3, "stopped and continued", lambda: self.stop(rng)),
                (3, "partitions, short", lambda: self.cut(rng, 0.5, 1.5)),
                (2, "partitions, long", lambda: self.cut(rng, 5, 9)),
                (3, "clock jumps", lambda: jump(rng, self.clocks))]

    def kill_postgres(self):
        p = self.w.c.postgres[self.primary]
        p.kill()
        if self.primary == 0 and time.monotonic() > self.failover_at:
            self.w.c.postgres[1].promote()
            self.primary = 1
            return "failovers"
        for _ in range(50):  # its children may hold its memory for a moment still
            if not p.daemon.runs():
                p.daemon.start()
            time.sleep(0.3)
            if p.daemon.runs():
                break
        return None

    def stop(self, rng):
        h = rng.choice(self.w.c.hosts)
        d = rng.choice((h.berthd, h.node))
        try:
            d.signal(signal.SIGSTOP)
            time.sleep(rng.uniform(0.2, 5))
            d.signal(signal.SIGCONT)
        except OSError:
            pass

    def cut(self, rng, least, most):
        h = rng.choice(self.w.c.hosts)
        h.cut_off()
        time.sleep(rng.uniform(least, most))
        h.join()

    def pools(self):
        return [lambda h=h: f"/proc/{h.node.pid}/root{h.dir}/node/pool" for h in self.w.c.hosts]

    def alive(self):
        found = collections.defaultdict(set)
        for h in self.w.c.hosts:
            for ident in () if self.w.frozen(h) else h.alive():
                found[ident].add(h.name)
        return {i: names if len(names) < 2 else set(self.w.running(i)) for i, names in found.items()}

    def checks(self):
        try:
            self.w.healthy()
            answer = self.w.check()[1]
            return ([] if answer["ok"] else answer["findings"]) + self.w.c.differences()
        except (ApiError, Violation, AssertionError) as e:
            return [str(e)[:1000]]

    def close(self):
        return self.w.twice[:3]

    def sweep(self):
        self.w.close()


class History:
    def __init__(self, place, seed):
        self.place, self.random = place, random.Random(seed)
        self.lock = threading.Lock()
        self.counts, self.wrong = collections.Counter(), []
        self.live, self.gone, self.unsure = {}, {}, set()  # id: key
        self.keys, self.hostile = {}, set()
        self.pools = [hostile.Pool(p) for p in place.pools()]
        self.ending = False

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def accuse(self, text):
        with self.lock:
            self.wrong.append(text)
        print("VIOLATION", text, flush=True)

    # -- clients ------------------------------------------------------------------------------

    def create(self, api, key, limits):
        """The id, or None: the same key gives the same answer, for ever."""
        def ask():
            status, body, _ = api.request("POST", "/v1/sandboxes", {"image": "base", **limits},
                                          {"Idempotency-Key": key})
            if status == 503:
                raise ApiError(status, body)
            return status, body
        try:
            status, body = insist(ask, PATIENCE)
        except Violation:
            self.count("creates without an answer")
            return None
        if status != 201:
            self.count(f"creates refused ({status})")
            print(f"      {key}: {status} {body.get('message')}", flush=True)
            return None
        with self.lock:
            first = self.keys.setdefault(key, body["id"])
            self.live.setdefault(body["id"], key)
            self.counts["creates"] += 1
        if first != body["id"]:
            self.accuse(f"key {key} made {first} and {body['id']}")
        return body["id"]

    def provoke(self, api, ident, name):
        """A guest that works against its own end, if the trouble around lets it begin."""
        with self.lock:
            self.hostile.add(ident)
        for pool in self.place.pools():
            try:
                hostile.GUESTS[name](api, ident, hostile.Look(None, disk_in(pool(), ident)))
                return self.count(f"guests that {name}")
            except CUT + (ApiError,):
                continue
            except Violation as why:
                return self.accuse(f"{ident}: {why}")
        self.count("hostile guests cut off")

    def exec(self, api, ident, number):
        try:
            r = api.exec(ident, f"echo {number}; exit {number % 100}", timeout_ms=20000)
        except CUT + (ApiError,) as e:
            if getattr(e, "status", 0) == 404:
                self.accuse(f"{ident} was acknowledged and is not found: {e}")
            return self.count("execs refused or cut off")
        self.count("execs" if r.kind == "exited" else f"execs {r.kind}")
        if r.kind == "exited" and (r.out.decode() != f"{number}\n" or r.exit_code != number % 100):
            self.accuse(f"exec in {ident} lied: {dict(r)}, not {number}")
        if r.kind != "exited" and r.exit_code is not None:
            self.accuse(f"exec in {ident} made an exit code up: {dict(r)}")

    def delete(self, api, ident):
        with self.lock:
            self.unsure.add(ident)
            self.live.pop(ident, None)

        def ask():
            r = api.delete(ident)
            return r if r["state"] == "gone" else None
        try:
            if until(lambda: insist(ask, PATIENCE), PATIENCE, 0.2):
                with self.lock:
                    self.gone[ident] = time.time()
                    self.unsure.discard(ident)
                    self.counts["deletes"] += 1
                return
        except Violation:
            pass
        except ApiError as e:
            self.accuse(f"delete of {ident}: {e}")
        self.count("deletes without an answer")

    def client(self, number, seed):
        rng, mine, n = random.Random(seed), [], 0
        guest = rng.choice(list(hostile.GUESTS))
        while not self.ending:
            n += 1
            api = rng.choice(self.place.apis)
            if len(mine) < BOXES_MAX and (not mine or rng.random() < 0.4):
                key, provoked = f"c{number}-{n}", not self.hostile & set(mine) and rng.random() < HOSTILE
                limits = hostile.LIMITS if provoked else TAME
                ident = self.create(api, key, limits)
                if ident:
                    mine.append(ident)
                if ident and rng.random() < 0.2:
                    self.create(rng.choice(self.place.apis), key, limits)
                if ident and provoked:
                    self.provoke(api, ident, guest)
                    guest = rng.choice(list(hostile.GUESTS))
            elif rng.random() < 0.6 and set(mine) - self.hostile:
                self.exec(api, rng.choice(sorted(set(mine) - self.hostile)), rng.randrange(1 << 30))
            else:
                self.delete(api, mine.pop(rng.randrange(len(mine))))

    def trouble(self):
        rows = self.place.trouble(self.random)
        weights = [r[0] for r in rows]
        while not self.ending:
            time.sleep(self.random.uniform(0.4, 3))
            _, name, act = self.random.choices(rows, weights)[0]
            self.count(act() or name)

    def watch(self):
        """All the time: nobody is alive twice, nobody with a receipt is alive."""
        while not self.ending:
            with self.lock:
                gone = dict(self.gone)
            for ident, names in self.place.alive().items():
                if len(names) > 1:
                    self.accuse(f"{ident} is alive twice: {names}")
                if ident in gone and time.sleep(0.2) is None and self.place.alive().get(ident):
                    # Seen twice: a process that is being reaped in this moment is not alive.
                    self.accuse(f"{ident} has a receipt and is alive: {names}")
            self.count("looks at the host")
            time.sleep(0.5)

    def run(self, seconds):
        work = [threading.Thread(target=self.client, args=(i, self.random.random()), daemon=True) for i in range(CLIENTS)]
        work += [threading.Thread(target=t, daemon=True) for t in (self.trouble, self.watch)]
        for t in work:
            t.start()
        try:
            time.sleep(seconds)
        finally:
            self.ending = True
        for t in work:
            t.join()

    # -- afterwards ---------------------------------------------------------------------------

    def check(self):
        api = self.place.apis[0]

        def settled():
            boxes = insist(api.sandboxes, 120)
            return boxes if all(b["state"] in ("ready", "failed") for b in boxes) else None
        listed = {b["id"]: b for b in until(settled, 180, 0.5) or insist(api.sandboxes)}
        for b in listed.values():
            if b["state"] not in ("ready", "failed"):
                self.accuse(f"never settled: {b}")
        for ident in sorted(set(self.live) & self.hostile):
            # Its guest may have ended it by itself; it is on record all the same.
            if listed.get(ident, {}).get("state") not in ("ready", "failed"):
                self.accuse(f"{ident} was acknowledged, and with a hostile guest it is {listed.get(ident)}")
        for ident in sorted(set(self.live) - self.hostile):
            if listed.get(ident, {}).get("state") != "ready":
                self.accuse(f"{ident} was acknowledged and is {listed.get(ident)}")
            elif not until(lambda: self.answers(api, ident), 60, 0.5):
                self.accuse(f"{ident} does not answer")
        for ident in sorted(set(self.gone) & set(listed)):
            self.accuse(f"{ident} has a receipt and is listed: {listed[ident]}")
        self.agree("with all of them alive")
        for ident in listed:
            self.delete(api, ident)
        left = insist(api.sandboxes)
        if left:
            self.accuse(f"not deletable: {left}")
        self.agree("at the end")
        for pool in self.pools:
            if not until(lambda: not pool.more(), 60, 0.5):
                self.accuse(pool.more())

    def answers(self, api, ident):
        """A box of a host that was lost at the very end is being made anew: the client is told to wait."""
        try:
            return insist(lambda: api.exec(ident, "echo here")).out == b"here\n"
        except ApiError as e:
            if e.status != 409:
                raise
            return False

    def agree(self, when):
        found = []

        def look():
            found[:] = self.place.checks()
            return not found
        if not until(look, 60, 1):
            self.accuse(f"berth check {when}: {found}")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--build", default="build")
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--hosts", type=int, default=1)
    options.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    args = options.parse_args()
    signal.signal(signal.SIGTERM, on_stop)
    alone()
    top = pathlib.Path(tempfile.mkdtemp(prefix="berth-random-"))
    top.chmod(0o711)
    if args.hosts > 1:
        place = Several(args.build, top, args.seconds, args.hosts)
    else:
        place = One(args.build, top, args.seconds)
    print(f"seed {args.seed}, {args.seconds:.0f} s on {place.name}", flush=True)
    history = History(place, args.seed)
    try:
        history.run(args.seconds)
        history.check()
        for text in place.close():
            history.accuse(text)
    finally:
        place.sweep()
        shutil.rmtree(top, ignore_errors=True)
    for what, n in sorted(history.counts.items()):
        print(f"{n:7} {what}")
    print(f"{sum(history.counts[c] for c in ('creates', 'deletes', 'execs'))} operations, "
          f"{len(history.wrong)} violations")
    return bool(history.wrong)


if __name__ == "__main__":
    sys.exit(main())
