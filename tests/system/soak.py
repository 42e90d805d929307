#!/usr/bin/env python3
"""Clients at work while daemons are killed, for a while; then what was promised is checked.

No create that was acknowledged may be lost, no deletion that was acknowledged may be undone, every
answer of an exec must be true, and at the end nothing may be left on the host.
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

from client import ApiError
from marks import on_stop
from server import Server, build_rootfs, wait_until

CLIENTS = 4
DAEMONS = ("berthd", "berth-node")


class Soak:
    def __init__(self, server, seed):
        self.server, self.random = server, random.Random(seed)
        self.lock = threading.Lock()
        self.alive, self.gone, self.unsure = set(), set(), set()
        self.counts = collections.Counter()
        self.wrong = []
        self.ending = False

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def accuse(self, text):
        with self.lock:
            self.wrong.append(text)
        print("WRONG:", text, flush=True)

    def one_life(self, rng):
        """Create, use, delete; what was answered is written down."""
        try:
            ident = self.server.api.create()
        except (OSError, ApiError):
            self.count("creates refused or cut off")
            return
        with self.lock:
            self.alive.add(ident)
            self.counts["creates"] += 1
        for _ in range(rng.randrange(3)):
            self.one_exec(ident, rng.randrange(1 << 30))
        if rng.random() < 0.8:
            self.delete(ident)

    def one_exec(self, ident, number):
        try:
            r = self.server.api.exec(ident, f"echo {number}; exit {number % 100}", timeout_ms=20000)
        except (OSError, ApiError) as e:
            if getattr(e, "status", 0) == 404:
                self.accuse(f"{ident} was acknowledged and is not found: {e}")
            return self.count("execs refused or cut off")
        self.count("execs")
        if r.kind == "exited" and (r.out.decode() != f"{number}\n" or r.exit_code != number % 100):
            self.accuse(f"exec in {ident} lied: {dict(r)}, not {number}")
        if r.kind != "exited":
            self.count(f"execs {r.kind}")

    def delete(self, ident):
        with self.lock:
            self.alive.discard(ident)
            self.unsure.add(ident)
        try:
            answer = self.server.api.delete(ident)
        except (OSError, ApiError):
            return self.count("deletes cut off")
        if answer["state"] == "gone":
            with self.lock:
                self.unsure.discard(ident)
                self.gone.add(ident)
                self.counts["deletes"] += 1

    def client(self, seed):
        rng = random.Random(seed)
        while not self.ending:
            self.one_life(rng)

    def killer(self):
        while not self.ending:
            time.sleep(self.random.uniform(0.5, 4))
            for daemon in self.random.choice((DAEMONS[:1], DAEMONS[1:], DAEMONS)):
                try:
                    self.server.kill(daemon)
                    self.count("kills of " + daemon)
                except (OSError, ValueError, AssertionError):
                    pass  # it was not back yet

    def run(self, seconds):
        threads = [threading.Thread(target=self.client, args=(self.random.random(),), daemon=True) for _ in range(CLIENTS)]
        threads.append(threading.Thread(target=self.killer, daemon=True))
        for t in threads:
            t.start()
        try:
            time.sleep(seconds)
        finally:
            self.ending = True
        for t in threads:
            t.join()

    def settled(self):
        return all(s["state"] in ("ready", "failed") for s in self.server.api.sandboxes())

    def check(self):
        self.server.wait_healthy()
        wait_until(self.settled, 120, "every record settled")
        listed = {s["id"]: s for s in self.server.api.sandboxes()}
        for ident in sorted(self.alive):
            if listed.get(ident, {}).get("state") != "ready":
                self.accuse(f"{ident} was acknowledged and is {listed.get(ident)}")
            elif self.server.api.exec(ident, "echo here").out != b"here\n":
                self.accuse(f"{ident} does not answer")
        for ident in sorted(self.gone & set(listed)):
            self.accuse(f"{ident} has a receipt and is listed: {listed[ident]}")
        for ident in listed:
            self.server.api.delete(ident)
        if self.server.api.sandboxes():
            self.accuse(f"not deletable: {self.server.api.sandboxes()}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--build", default="build")
    options.add_argument("--runtime", default="crun")
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    args = options.parse_args()
    signal.signal(signal.SIGTERM, on_stop)
    top = pathlib.Path(tempfile.mkdtemp(prefix="berth-soak-", dir="/tmp"))
    top.chmod(0o711)  # the service account must be able to pass
    server = Server(args.build, args.runtime, top / "dev")
    print(f"seed {args.seed}, {args.seconds:.0f} s on {args.runtime}", flush=True)
    try:
        server.start()
        build_rootfs(top / "base.tar")
        assert server.berth("image", "import", "base", str(top / "base.tar"))[0] == 0
        soak = Soak(server, args.seed)
        soak.run(args.seconds)
        soak.check()
        status = server.stop()
        if status:
            soak.accuse(f"berth dev ended with {status}: {server.said()}")
        for found in server.leftovers():
            if found["kind"] in ("process", "cgroup", "mount", "loop", "netns", "link"):
                soak.accuse(f"left: {found}")
    finally:
        server.sweep()
        shutil.rmtree(top, ignore_errors=True)
    for what, n in sorted(soak.counts.items()):
        print(f"{n:7} {what}")
    print(f"{len(soak.wrong)} wrong")
    return bool(soak.wrong)


if __name__ == "__main__":
    sys.exit(main())
