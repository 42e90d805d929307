"""PostgreSQL with a synchronous standby: the primary is killed, the standby promoted, work goes on."""
import threading
import time

from marks import limit
from server import wait_until

CELL = {"hosts": 2, "standby": True}


class Maker(threading.Thread):
    """Creates sandboxes until it is told to stop; every answer of 201 is remembered."""

    def __init__(self, host, name):
        super().__init__()
        self.api, self.name = host.api, name
        self.made, self.refused, self.ended, self.slowest = [], 0, False, 0

    def run(self):
        n = 0
        while not self.ended:
            began = time.monotonic()
            if self.make({"Idempotency-Key": f"{self.name}-{n}"}):
                self.slowest = max(self.slowest, time.monotonic() - began)
            time.sleep(0.3)
            n += 1

    def make(self, key):
        """Until there is an answer: the same request with the same key."""
        end = time.monotonic() + 90
        while time.monotonic() < end:
            status, body, _ = self.api.request("POST", "/v1/sandboxes", {"image": "base", "memory_mb": 32}, key)
            if status == 201:
                self.made.append(body["id"])
                return True
            if status != 503:
                return False  # an answer for good: its record says why
            self.refused += 1
            time.sleep(0.1)
        raise AssertionError("no answer")


@limit(240)
def test_nothing_acknowledged_is_lost(c):
    primary, standby = c.postgres
    running = c.hosts[0].api.create(host="h1")
    makers = [Maker(h, h.name) for h in c.hosts]
    for m in makers:
        m.start()
    wait_until(lambda: all(len(m.made) >= 3 for m in makers), 60, "some were made before")
    primary.kill()
    killed = time.monotonic()
    before = {ident for m in makers for ident in m.made}
    standby.promote()
    promoted = time.monotonic() - killed
    counts = [len(m.made) for m in makers]
    wait_until(lambda: all(len(m.made) >= n + 3 for m, n in zip(makers, counts)), 120, "more were made afterwards")
    back = time.monotonic() - killed
    for m in makers:
        m.ended = True
    for m in makers:
        m.join(120)
    made = {ident for m in makers for ident in m.made}
    rows = {ident: state for ident, _, _, state in c.rows()}
    lost = [i for i in made if i not in rows]
    assert not lost, f"acknowledged and gone: {lost}"
    assert all(rows[i] == "ready" for i in made), rows
    assert len(made) == sum(len(m.made) for m in makers), "two keys, one sandbox"
    assert c.hosts[1].api.exec(running, ["echo", "on"]).out == b"on\n", "what ran goes on, forwarded too"
    print(f"      {len(before)} before, {len(made) - len(before)} after; promoted after {promoted:.1f} s, "
          f"back after {back:.1f} s, {sum(m.refused for m in makers)} answers of 503 in between", flush=True)
