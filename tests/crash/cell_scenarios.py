"""What happens to a whole cell while a daemon of it dies."""
import threading
import time

from cell_world import CellWorld, StandbyWorld
from scenarios import Scenario, answer, swallow
from world import CUT, ApiError, demand, insist, until


class CellScenario(Scenario):
    world = CellWorld

    def create(self, w, through, **more):
        """Again where it was told that what makes a sandbox was killed: it dies once."""
        def once():
            try:
                return w.c.by_name[through].api.create(**more)
            except ApiError as e:
                if "killed by signal 9" not in str(e):
                    raise
                return None
        return insist(once) or insist(once)


class HostLoss(CellScenario):
    """A host is cut off for good: its sandboxes are frozen there and made anew elsewhere; then it is back."""

    def prepare(self, w):
        return self.create(w, "h1", host="h1")

    def act(self, w, thing):
        h1, h2 = w.c.hosts
        h1.cut_off()
        try:
            until(lambda: any(r[:2] == (thing, "h2") and r[3] == "ready" for r in w.rows()), 40, 0.1)
        finally:
            h1.join()
        until(lambda: w.is_healthy(h1), 40, 0.1)
        until(lambda: not h1.allocations(), 20, 0.1)

    def verify(self, w, thing, told):
        def replaced():
            box = insist(lambda: w.c.hosts[1].api.get("/v1/sandboxes/" + thing))
            # Where the engine itself was killed it is told as failed, with the reason.
            told = box["state"] == "failed" and "killed by signal 9" in box["reason"]
            return box["host"] == "h2" and (box["state"] == "ready" or told)
        demand(until(replaced), f"it was not begun anew: {w.rows()}")
        demand(until(lambda: not w.c.hosts[0].pids(thing)), "it still runs on the host that was lost")


class HostBack(CellScenario):
    """Cut off for a moment: frozen, and then it goes on as it was."""

    def prepare(self, w):
        ident = self.create(w, "h1", host="h1")
        return ident, w.c.hosts[0].pids(ident)

    def act(self, w, thing):
        h1 = w.c.hosts[0]
        h1.cut_off()
        until(lambda: w.frozen(h1), 20, 0.02)
        h1.join()
        until(lambda: not w.frozen(h1), 20, 0.02)
        until(lambda: w.is_healthy(h1), 20, 0.1)

    def verify(self, w, thing, told):
        ident = thing[0]
        # Whoever dies while it is cut off may be too late: then it was replaced. Never both.
        demand(until(lambda: [r for r in w.rows() if r[0] == ident and r[3] in ("ready", "failed")]),
               f"it was lost: {w.rows()}")


class HostRestarted(CellScenario):
    """Its berthd is killed and begins again, as a member of the cell: its sandboxes are the same processes."""

    def prepare(self, w):
        ident = self.create(w, "h1", host="h1")
        return ident, w.c.hosts[0].pids(ident)

    def act(self, w, thing):
        h1 = w.c.hosts[0]
        h1.kill("berthd")
        until(lambda: w.is_healthy(h1), 20, 0.1)

    def verify(self, w, thing, told):
        demand(set(thing[1]) <= set(w.c.hosts[0].pids(thing[0])), f"it is another process now: {w.rows()}")


class HostDrained(CellScenario):
    """What was told to take nothing new takes nothing, until it is told otherwise."""

    def act(self, w, thing):
        h1 = w.c.hosts[0]
        answer(h1, "POST", "/v1/hosts/h1/drain", fine=(200,))
        made = [self.create(w, name) for name in ("h1", "h2")]
        answer(h1, "POST", "/v1/hosts/h1/undrain", fine=(200,))
        return made

    def verify(self, w, thing, told):
        demand({r[1] for r in w.rows() if r[0] in told} == {"h2"}, f"a drained host took one: {w.rows()}")
        demand(insist(lambda: w.c.hosts[1].api.get("/v1/hosts/h1"))["state"] == "live", "it is still drained")
        self.create(w, "h2", host="h1")


class HostRemoved(CellScenario):
    """Lost with a sandbox of which nobody but it can tell, and removed from the cell; then it comes back, with nothing."""

    def prepare(self, w):
        ident = self.create(w, "h1", host="h1")
        w.c.primary.sql(f"UPDATE sandbox SET state = 'failed', reason = 'as a test' WHERE id = '{ident}'")
        return ident

    def act(self, w, thing):
        h1, h2 = w.c.hosts
        h1.cut_off()
        try:
            return until(lambda: answer(h2, "DELETE", "/v1/hosts/h1?confirm=powered-off")[0] in (200, 404), 40, 0.2)
        finally:
            h1.join()
            until(lambda: not h1.pids(thing), 40, 0.1)
            h1.kill("berthd")  # begun again, with an empty house, it is a new host
            until(lambda: w.is_healthy(h1), 40, 0.1)

    def verify(self, w, thing, told):
        demand(told, "a lost host cannot be removed")
        receipt = insist(lambda: w.c.hosts[1].api.get(f"/v1/sandboxes/{thing}/receipt"))["receipt"]
        demand(receipt["process"] == "unknown", f"nobody looked, and the receipt says {receipt}")
        demand(until(lambda: not w.c.hosts[0].pids(thing)), "it runs on the host that was removed")


class Forwarded(CellScenario):
    """Asked of a host that has not got it, with a key: one sandbox, one answer."""

    def prepare(self, w):
        return w.unique("k")

    def act(self, w, thing):
        status, body = answer(w.c.hosts[0], "POST", "/v1/sandboxes", {"image": "base", "host": "h2"}, thing)
        if status == 201:
            swallow(lambda: w.c.hosts[0].api.exec(body["id"], "true"))
        return status, body

    def verify(self, w, thing, told):
        demand(len(w.rows()) <= 1, f"one key made {w.rows()}")
        status, body, _ = insist(lambda: w.c.hosts[1].api.request("POST", "/v1/sandboxes", {"image": "base", "host": "h2"},
                                                                  {"Idempotency-Key": thing}))
        demand(status == told[0] and (status != 201 or body["id"] == told[1]["id"]), f"{told}, then {status} {body}")


class Failover(CellScenario):
    """The primary is killed and the standby promoted while sandboxes are made: none that was told is lost."""
    world, fresh = StandbyWorld, True

    def act(self, w, thing):
        made, ending = {}, []

        def client(h):
            n = 0
            while not ending:
                n += 1
                key = f"{h.name}-{n}"
                end = time.monotonic() + 40
                while time.monotonic() < end:
                    try:
                        status, body, _ = post_to(h, key)
                    except CUT:
                        continue
                    if status == 201:
                        made[key] = body["id"]
                    if status != 503:
                        break
                time.sleep(0.2)
        threads = [threading.Thread(target=client, args=(h,)) for h in w.c.hosts]
        for t in threads:
            t.start()
        until(lambda: len(made) >= 3, 30)
        w.c.postgres[0].kill()
        w.c.postgres[1].promote()
        before = len(made)
        until(lambda: len(made) >= before + 3, 30)
        ending.append(True)
        for t in threads:
            t.join()
        return made

    def verify(self, w, thing, told):
        rows = {r[0]: r[3] for r in w.rows()}
        lost = [i for i in told.values() if i not in rows]
        demand(not lost, f"acknowledged and gone: {lost}")
        demand(len(set(told.values())) == len(told), "two keys, one sandbox")


def post_to(h, key):
    return h.api.request("POST", "/v1/sandboxes", {"image": "base", "memory_mb": 32}, {"Idempotency-Key": key})


ALL = {
    "host-loss": HostLoss,
    "host-back": HostBack,
    "host-restarted": HostRestarted,
    "host-drained": HostDrained,
    "host-removed": HostRemoved,
    "forwarded": Forwarded,
    "failover": Failover,
}
