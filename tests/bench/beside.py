#!/usr/bin/env python3
"""A server that is there, and the bare engine, in turns: each operation's median of both, as one line of JSON.

    beside.py --build build --dir DIR --port PORT --rounds N      (the key: BERTH_API_KEY; the image: base)

For tests/system/test_times.py, which compares. A process of its own: it goes into berth-node's mounts. Needs root.
"""
import argparse
import json
import os
import shutil
import tempfile
import time

from bare import Bare
from server import Client


class Site:
    """As much of server.Server as the client and the bare engine ask for."""

    def __init__(self, args):
        self.build, self.dir, self.port = os.path.abspath(args.build), args.dir, args.port
        self.key = os.environ["BERTH_API_KEY"]
        self.base = tempfile.mkdtemp(prefix="berth-beside-")

    def pid(self, name):
        with open(f"{self.dir}/run/{name}.pid") as f:
            return int(f.read().split()[0])


class Turns:
    """(ours, theirs) of each operation, in ms."""

    def __init__(self):
        self.ms = {}

    def take(self, name, side, call, *args):
        start = time.perf_counter()
        result = call(*args)
        self.ms.setdefault(name, ([], []))[side].append((time.perf_counter() - start) * 1000)
        return result

    def medians(self):
        return {name: [sorted(side)[len(side) // 2] for side in both] for name, both in self.ms.items()}


def read(client, box):
    status, body = client.ask("GET", f"/v1/sandboxes/{box}/files?path=/bin/busybox")
    if status != 200:
        raise RuntimeError(f"read: {status} {body[:200]}")


def one(t, client, bare, path, i):
    post = lambda verb: client.expect(200, "POST", f"/v1/sandboxes/{box}/{verb}")
    box = t.take("create", 0, lambda: client.create(image="base", memory_mb=64, disk_mb=64))
    t.take("create", 1, bare.start, f"first{i}", None, path)
    t.take("exec", 0, client.run, box, "true")
    t.take("exec", 1, bare.execute, f"first{i}", "/bin/true")
    t.take("read", 0, read, client, box)
    t.take("read", 1, bare.execute, f"first{i}", "/bin/cat", "/bin/busybox")
    t.take("sleep", 0, post, "sleep")
    t.take("sleep", 1, bare.stop, f"first{i}")
    t.take("wake", 0, post, "wake")
    t.take("wake", 1, bare.start, f"again{i}", None, path)
    t.take("delete", 0, client.delete, box)
    t.take("delete", 1, bare.stop, f"again{i}")


def main():
    p = argparse.ArgumentParser()
    for name, kind in (("build", str), ("dir", str), ("port", int), ("rounds", int)):
        p.add_argument("--" + name, type=kind, required=True)
    args = p.parse_args()
    site, t = Site(args), Turns()
    client = Client(site)
    model = client.create(image="base", memory_mb=64, disk_mb=64)
    try:
        bare = Bare(site, model)
        try:
            path = bare.bundle("beside", bare.config["process"]["args"])
            for i in range(args.rounds):
                one(t, client, bare, path, i)
        finally:
            bare.close()
    finally:
        client.delete(model)
        client.close()
        shutil.rmtree(site.base)
    print(json.dumps(t.medians()))


if __name__ == "__main__":
    main()
