#!/usr/bin/env python3
"""Every scenario x every crash point it passes x who dies there, on real crun.

usage: run.py [--build DIR] [--slice TIME] [--seed N] [--first] [--list] [SCENARIO[:POINT]...]

A scenario is run once to learn which points it passes and in which process. Then it is run for each
of them: somebody dies there as by kill -9, `berth dev` starts it again, the client goes on as a
client would, and afterwards everything that was promised is looked at: by the client, by `berth
check`, and by our own eyes on the host. The last line is `N combinations, N violations`.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import cell_scenarios  # noqa: E402
import inside_scenarios  # noqa: E402
import scenarios  # noqa: E402
import wrapper_scenarios  # noqa: E402
from marks import on_stop  # noqa: E402
from world import TOP, Violation, World, alone, build_rootfs  # noqa: E402

ON_ONE_HOST = {**scenarios.ALL, **inside_scenarios.ALL, **wrapper_scenarios.ALL}
ALL = {**ON_ONE_HOST, **cell_scenarios.ALL}

# Points that no scenario need pass, and why.
EXCEPTIONS = {
    "node.router-made": "passed once, by a process that outlives every berth-node, before a scenario begins",
    "life.limits-taken-back": "only where the kernel refuses a limit it took before",
}

COUNT_MAX = 2     # the first two times a process passes a point
SLICE_SCENARIOS = 10
BESIDE = 1000     # their servers' numbers begin there
DEEP_EVERY = 25   # combinations between two looks at everything on the machine


def points():
    """{name: file} of all points in the source; a name stands there once."""
    found = {}
    for path in sorted(TOP.joinpath("src").rglob("*.c")):
        for name in re.findall(r'crash_point\("([^"]+)"\)', path.read_text()):
            assert re.fullmatch(r"[a-z-]+\.[a-z0-9-]+", name), f"{path}: {name}"
            assert name not in found, f"{path}: {name} is in {found[name]} too"
            found[name] = path.relative_to(TOP)
    return found


def seconds(text):
    return float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]] if text[-1:] in "smh" else float(text)


class Run:
    def __init__(self, args):
        self.args = args
        self.known = points()
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="berth-crash-"))
        self.work.chmod(0o711)
        self.world, self.worlds = None, 0
        self.done, self.missed, self.violations = 0, [], []
        self.hit = set()

    def say(self, text):
        print(text, flush=True)

    def open(self, scenario):
        kind = getattr(scenario, "world", World)
        if self.world and type(self.world) is not kind:
            self.close()
        if not self.world:
            self.worlds += 1
            self.world = kind(self.args.build, self.work, self.worlds)
        return self.world

    def close(self):
        if self.world:
            self.world.close()
        self.world = None

    # -- one scenario -------------------------------------------------------------------------

    def play(self, scenario, order=None):
        """True if somebody died by the order."""
        w = self.open(scenario)
        thing = scenario.prepare(w)
        if order:
            w.arm(*order)
        else:
            w.record()
        told = scenario.act(w, thing)
        hit = w.disarm() if order else False
        passed = None if order else w.passed()
        if not scenario.hasty:
            w.healthy()
        scenario.verify(w, thing, told)
        if scenario.repair:
            w.repair()
        w.settle()
        if getattr(scenario, "fresh", False):
            self.close()  # what it did to its servers cannot be undone
        return hit if order else passed

    def learn(self, name):
        """[(scenario, point, count, who)] that can happen."""
        scenario = ALL[name]()
        w = self.open(scenario)
        daemons = w.daemons()
        rows = self.play(scenario)
        daemons |= self.world.daemons() if self.world else {}
        counts, roles = collections.Counter(), {}
        for point, pid, parent in rows:
            role = self.role(daemons, int(pid), int(parent), point)
            roles[point] = role
            counts[point, pid] += 1
        out = []
        for point, role in roles.items():
            most = max(n for (p, _), n in counts.items() if p == point)
            for count in range(1, min(most, COUNT_MAX) + 1):
                victims = self.victims(role) if not hasattr(scenario, "world") else ("self",)
                out += [(name, point, count, who) for who in victims]
        return out

    def role(self, daemons, pid, parent, point):
        if pid in daemons:
            return daemons[pid]
        if parent in daemons:
            return "child"
        return "berthd" if self.known[point].parts[1] == "berthd" else "node"  # one that died meanwhile

    @staticmethod
    def victims(role):
        return {"berthd": ("self", "node+self"), "node": ("self", "berthd", "berthd+self"),
                "child": ("self", "parent", "parent+self")}[role]

    def one(self, combination):
        name, point, count, who = combination
        start = time.monotonic()
        label = f"{name} at {point}:{count}, {who} dies"
        try:
            if not self.play(ALL[name](), (point, count, who)):
                self.missed.append(combination)
                return False
            self.hit.add(point)
            if self.world and self.done % DEEP_EVERY == 0:
                self.world.deep_look()
            if self.args.verbose:
                self.say(f"ok    {label} ({time.monotonic() - start:.1f} s)")
        except KeyboardInterrupt:
            raise
        except BaseException as why:
            self.accuse(label, str(why) if isinstance(why, Violation) else traceback.format_exc())
        self.done += 1
        return True

    def accuse(self, label, text):
        self.violations.append(label)
        self.say(f"VIOLATION {label}\n      " + text.replace("\n", "\n      "))
        self.say("      " + self.world.logs().replace("\n", "\n      ") if self.world else "")
        self.close()  # the next one begins on clean ground

    # -- all of them --------------------------------------------------------------------------

    def wanted(self):
        only = [o.partition(":") for o in self.args.only]
        names = [n for n in ALL if not only or any(n == o[0] for o in only)]
        if self.args.slice and not only:  # learning takes time, too: some of them, and one in a cell
            rng = random.Random(self.args.seed)
            names = rng.sample(list(ON_ONE_HOST), SLICE_SCENARIOS) + [rng.choice(list(cell_scenarios.ALL))]
        for o in only:
            assert o[0] in ALL, f"no scenario {o[0]}: {' '.join(ALL)}"
        out = []
        for n in names:
            try:
                found = self.learn(n)
            except Exception as why:
                self.accuse(f"{n}, where nobody dies", f"{type(why).__name__}: {why}")
                continue
            self.say(f"# {n}: {len(found)} combinations, {len({f[1] for f in found})} points")
            out += [c for c in found if not only or any(n == o[0] and o[2] in ("", c[1]) for o in only)]
        return out

    def order(self, combinations):
        """Round robin over the points, so that a slice meets as many of them as it can."""
        rng = random.Random(self.args.seed)
        by_point = collections.defaultdict(list)
        for c in combinations:
            by_point[c[1]].append(c)
        groups = sorted(by_point.values())
        rng.shuffle(groups)
        for g in groups:
            rng.shuffle(g)
        mixed = [g[i] for i in range(max(map(len, groups), default=0)) for g in groups if i < len(g)]
        # A cell takes long to make: one kind of world after the other, but each gets its share of a slice.
        worlds = collections.defaultdict(list)
        for c in mixed:
            worlds[getattr(ALL[c[0]], "world", World).__name__].append(c)
        return worlds

    def all(self):
        start = time.monotonic()
        self.say(f"seed {self.args.seed}, {len(self.known)} points in the source")
        build_rootfs(self.work / "base.tar", probe=pathlib.Path(self.args.build, "src/probe/berth-probe"))
        try:
            combinations = self.wanted()
            if not self.args.only and not self.args.slice:
                self.all_points(combinations)
            if self.args.list:
                for c in sorted(combinations):
                    self.say(f"{c[0]} {c[1]}:{c[2]} {c[3]}")
                for v in self.violations:
                    self.say(f"violation: {v}")
                return bool(self.violations)
            self.through(combinations, start)
            if self.world:
                self.world.deep_look()
        finally:
            old = {n: signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGTERM)}
            self.close()
            shutil.rmtree(self.work, ignore_errors=True)
            for n, handler in old.items():
                signal.signal(n, handler)
        return self.tell(combinations, time.monotonic() - start)

    def all_points(self, combinations):
        """Every point of the source is passed by a scenario, or it is said why not."""
        passed = {c[1] for c in combinations}
        for point in sorted(set(self.known) - passed - set(EXCEPTIONS)):
            self.violations.append(f"{point} of {self.known[point]}, which no scenario passes")
        for point in sorted(set(EXCEPTIONS) & passed | set(EXCEPTIONS) - set(self.known)):
            self.violations.append(f"{point}, an exception that is none")

    def through(self, combinations, start):
        worlds = self.order(combinations)
        if self.args.slice or len(worlds) < 2:
            return self.lane(worlds, start, seconds(self.args.slice) if self.args.slice else float("inf"))
        # Cells wait for leases most of their time: beside them there is time for the rest.
        alone = {World.__name__: worlds.pop(World.__name__)}
        self.close()
        beside, told = self.beside(worlds, start)
        try:
            self.lane(alone, start)
        except BaseException:
            os.kill(beside, signal.SIGTERM)
            raise
        finally:
            ended = os.waitpid(beside, 0)[1]
        if ended:
            self.violations.append(f"the lane of the cells ended with {ended}")
            return
        done, worlds, missed, violations, hit = json.loads(told.read_text())
        self.done += done
        self.worlds += worlds
        self.missed += map(tuple, missed)
        self.violations += violations
        self.hit |= set(hit)

    def beside(self, worlds, start):
        """The same in a process of its own: (its pid, the file in which it says what it found)."""
        told = self.work / "beside"
        pid = os.fork()
        if pid:
            return pid, told
        status = 1
        try:
            self.done, self.missed, self.violations, self.hit, self.worlds = 0, [], [], set(), BESIDE
            self.lane(worlds, start)
            if self.world:
                self.world.deep_look()
            told.write_text(json.dumps([self.done, self.worlds - BESIDE, self.missed, self.violations, sorted(self.hit)]))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            self.close()
            os._exit(status)

    def lane(self, worlds, start, limit=float("inf")):
        for done, of_world in enumerate(worlds.values(), 1):
            until = start + limit * (1 if done == len(worlds) else 0.6 + 0.2 * (done - 1))
            for c in of_world:
                if time.monotonic() > until or self.args.first and self.violations:
                    break
                if not self.one(c):
                    self.one(c)  # a race the other way: once more

    def tell(self, combinations, took):
        missed = sorted({f"{c[0]} {c[1]}:{c[2]}" for c in self.missed if self.missed.count(c) > 1})
        if missed:
            self.say(f"not reached this time ({len(missed)}): " + ", ".join(missed))
        for v in self.violations:
            self.say(f"violation: {v}")
        self.say(f"{len(self.hit)} of {len(self.known)} points, {self.worlds} servers, {took:.0f} s")
        self.say(f"{self.done} combinations, {len(self.violations)} violations")
        return 1 if self.violations or not self.done else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build-crash")
    parser.add_argument("--slice", help="stop after this time: 240s, 4m")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "big"))
    parser.add_argument("--list", action="store_true", help="what would be run")
    parser.add_argument("--first", action="store_true", help="the first violation ends it")
    parser.add_argument("--verbose", "-v", action="store_true")
    parser.add_argument("only", nargs="*", metavar="SCENARIO[:POINT]")
    args = parser.parse_args()

    alone()

    signal.signal(signal.SIGTERM, on_stop)
    return Run(args).all()


if __name__ == "__main__":
    sys.exit(main())
