#!/usr/bin/env python3
"""`berth doctor --attack` against a server of its own. The last line is its own: `N probes, N through`.

usage: run.py [--build DIR] [--runtime crun|runsc] [--json] [PROBE...]
"""
import argparse
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

ATTACK_LIMIT = 300  # seconds
TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/system"))

import server  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--runtime", default="crun", choices=["crun", "runsc"])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # not at once: the server is taken away first
    work = pathlib.Path(tempfile.mkdtemp(prefix="berth-attack-"))
    work.chmod(0o711)
    s = server.Server(args.build, args.runtime, work / "d")
    try:
        s.start()
        code, out, err = s.berth("doctor", "--attack", "--runtime", args.runtime, *(["--json"] if args.json else []),
                                 *[word for name in args.names for word in ("--only", name)], timeout=ATTACK_LIMIT)
        stopped, left = s.stop(), s.leftovers()
    except subprocess.TimeoutExpired:
        print(f"the attack did not end in {ATTACK_LIMIT} s", file=sys.stderr)
        return 1
    finally:
        s.sweep()
        shutil.rmtree(work, ignore_errors=True)
    sys.stderr.write(err.decode())
    if stopped or left:
        print(f"berth dev ended with {stopped}, and left {left}", file=sys.stderr)
        code = code or 1
    sys.stdout.write(out.decode())
    return code


if __name__ == "__main__":
    sys.exit(main())
