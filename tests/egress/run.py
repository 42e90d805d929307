#!/usr/bin/env python3
"""berth-egress alone: a box, a router and an outside in namespaces; needs root.

usage: run.py [--build DIR] [NAME...]
"""
import argparse
import inspect
import pathlib
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import test_around  # noqa: E402
import test_policy  # noqa: E402
import test_web  # noqa: E402
from world import HOST, OUTSIDE, World  # noqa: E402

NAMES = ["api.example.com", "www.example.com", "a.deep.example.net", "evil.example.org", "pinned.example.com"]
ZONE = {name: [OUTSIDE] for name in NAMES} | {
    "inner.example.com": ["127.0.0.1"], "metadata.example.com": ["169.254.169.254"], "private.example.com": ["10.0.0.1"],
    "mixed.example.com": ["10.0.0.1", OUTSIDE], "wrong.example.com": [OUTSIDE],
    "self.example.com": HOST[:1], "second.example.com": HOST[1:]}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--build", default="build", type=pathlib.Path)
    args.add_argument("names", nargs="*")
    args = args.parse_args()
    failed = count = 0
    w = World(args.build.resolve(), ZONE, NAMES)
    try:
        for module in (test_policy, test_web, test_around):
            for name, test in inspect.getmembers(module, inspect.isfunction):
                if not name.startswith("test_") or test.__module__ != module.__name__ or (args.names and not any(n in name for n in args.names)):
                    continue
                start, count = time.monotonic(), count + 1
                w.forget()
                try:
                    test(w)
                    print(f"ok    {name} ({time.monotonic() - start:.1f} s)", flush=True)
                except Exception:
                    failed += 1
                    print(f"FAIL  {name}\n{traceback.format_exc()}", flush=True)
        if w.procs[0].poll() is not None:
            failed += 1
            print(f"FAIL  berth-egress ended: {w.procs[0].returncode}")
        if "phase: illegal move" in (w.work / "egress.log").read_text():
            failed += 1
            print("FAIL  a phase moved as it may not")
        if failed:
            print((w.work / "egress.log").read_text()[-3000:])
    finally:
        w.close()
    print(f"{count} tests, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
