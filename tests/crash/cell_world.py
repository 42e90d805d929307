"""A cell of leased hosts whose daemons can be told where to die; who dies is started again."""
import os
import pathlib
import subprocess
import sys
import threading
import time

from world import SETTLE, TOP, Violation, demand, insist, leftovers, until

sys.path.insert(0, str(TOP / "tests/cell"))

import cell as cells  # noqa: E402
from client import ApiError  # noqa: E402

DIVISOR = 10  # a lease of 3 s
CHECK = ("GET", "/v1/check")
REPAIR = ("POST", "/v1/check/repair")


class Leased(cells.Cell):
    def settings_of(self, host):
        return {**super().settings_of(host), "timer_divisor": DIVISOR, "lease": "on"}


class CellWorld:
    HOSTS, STANDBY = 2, False

    def __init__(self, build, work, number):
        self.work = work
        self.orders = work / f"orders{number}"
        self.orders.mkdir(mode=0o777)
        self.orders.chmod(0o777)
        self.dir = work / f"w{number}"
        self.c = Leased(build, self.dir, hosts=self.HOSTS, standby=self.STANDBY)
        self.c.rootfs = work / "base.tar"
        self.twice, self.made, self.ending = [], 0, False
        subprocess.run(["ip", "link", "del", "br0"], stderr=subprocess.DEVNULL)
        try:
            for p in self.c.postgres:
                p.daemon.env = self.clock(p.name)
            self.c.start()
            self.c.import_image()
            for h in self.c.hosts:  # from now on with orders
                h.node.env = h.berthd.env = {"BERTH_CRASH_DIR": str(self.orders), **self.clock(h.name)}
                h.restart()
        except AssertionError as why:
            raise Violation(f"no cell: {why}") from None
        self.threads = [threading.Thread(target=t, daemon=True) for t in (self.supervise, self.watch)]
        for t in self.threads:
            t.start()

    def clock(self, name):
        """What gives the daemons of a machine a clock of their own."""
        return {}

    def supervise(self):
        while not self.ending:
            for h in self.c.hosts:
                for d in (h.node, h.berthd):
                    if not self.ending and not d.runs():
                        d.start()
            time.sleep(0.05)

    def running(self, ident):
        return [h.name for h in self.c.hosts if not self.frozen(h) and h.pids(ident)]

    @staticmethod
    def frozen(h):
        for top in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
            events = pathlib.Path(top, "berth." + h.instance, "cgroup.events")
            if events.exists():
                return "frozen 1" in leftovers.read(str(events))
        return False

    def watch(self):
        """All the time: no sandbox runs on two hosts."""
        while not self.ending:
            seen = {}
            for h in self.c.hosts:
                for ident in () if self.frozen(h) else h.alive():
                    seen.setdefault(ident, []).append(h.name)
            for ident, hosts in seen.items():
                if len(hosts) > 1 and len(self.running(ident)) > 1:
                    self.twice.append(f"{ident} runs on {hosts}")
            time.sleep(0.1)

    # -- orders: as in World -------------------------------------------------------------------

    def record(self):
        (self.orders / "log").write_text("")
        (self.orders / "log").chmod(0o666)

    def passed(self):
        log = self.orders / "log"
        rows = [line.split() for line in log.read_text().splitlines()]
        log.unlink()
        return rows

    def daemons(self):
        return {d.pid: name for h in self.c.hosts for d, name in ((h.node, "node"), (h.berthd, "berthd"))}

    def arm(self, point, count, who):
        self.disarm()
        order = self.orders / "order"
        order.write_text(f"{point} {count} {'parent' if 'parent' in who else 'self'}\n")
        order.chmod(0o666)
        order.rename(self.orders / "at")

    def disarm(self):
        for name in ("at", "hit"):
            try:
                (self.orders / name).unlink()
                if name == "hit":
                    return True
            except FileNotFoundError:
                pass
        return False

    # -- looking -------------------------------------------------------------------------------

    def unique(self, prefix):
        self.made += 1
        return f"{prefix}{os.getpid()}x{self.made}"

    def is_healthy(self, h):
        try:
            return h.healthy()
        except AssertionError:
            return False  # between two of them

    def healthy(self):
        for h in self.c.hosts:
            demand(until(lambda: self.is_healthy(h), 2 * SETTLE), f"{h.name} is not healthy again: {h.berthd.said(800)}")

    def rows(self):
        def ask():
            try:
                return [self.c.rows()]
            except AssertionError:
                return None
        found = until(ask)
        demand(found, "no PostgreSQL to ask")
        return found[0]

    def check(self, repair=False):
        found = []
        for h in self.c.hosts:
            found += insist(lambda: h.api.call(*(REPAIR if repair else CHECK)))["findings"]
        return bool(found), {"ok": not found, "findings": found}

    def settle(self):
        self.healthy()
        demand(not self.twice, f"alive twice: {self.twice[:3]}")
        demand(until(lambda: all(r[3] in ("ready", "failed") for r in self.rows())), f"not settled: {self.rows()}")
        for ident, host, _, state in self.rows():
            if state == "ready":
                for h in self.c.hosts:
                    r = insist(lambda: h.api.exec(ident, "echo here"))
                    demand(r.out == b"here\n", f"{ident} on {host}, asked through {h.name}: {dict(r)}")
        answer = {}

        def agree():
            answer.update(self.check()[1])
            return answer["ok"] and not self.c.differences()
        demand(until(agree), f"they differ: {str(answer.get('findings'))[:1200]} {self.c.differences()}")

        def none_left():
            for ident, _, _, _ in self.rows():
                try:
                    insist(lambda: self.c.hosts[-1].api.delete(ident))
                except ApiError:
                    pass
            return not self.rows()
        demand(until(none_left), f"not deletable: {self.rows()}")
        demand(until(agree), f"they differ after deleting: {str(answer.get('findings'))[:1200]}")
        left = until(lambda: not any(h.allocations() or h.alive() for h in self.c.hosts), 20)
        demand(left, f"left: {[(h.name, h.allocations(), h.alive()) for h in self.c.hosts]}")
        demand(not self.twice, f"alive twice: {self.twice[:3]}")

    def deep_look(self):
        pass  # settle() has looked at every kernel fact there is

    def logs(self):
        out = []
        for h in self.c.hosts:
            lines = [line for line in h.berthd.said(6000).splitlines() if '"msg":"request"' not in line]
            out += [f"-- {h.name}"] + [line[:300] for line in lines[-6:]]
        return "\n".join(out)

    def close(self):
        self.ending = True
        for t in self.threads:
            t.join()
        for h in self.c.hosts:
            if h.holder:
                h.holder.kill()
                h.holder.wait()
        cells.sweep(self.dir)
        subprocess.run(["ip", "link", "del", "br0"], stderr=subprocess.DEVNULL)


class StandbyWorld(CellWorld):
    STANDBY = True
