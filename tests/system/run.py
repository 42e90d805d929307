#!/usr/bin/env python3
"""The system suite: real engines, a real PostgreSQL, one `berth dev` per test file.

usage: run.py [--build DIR] [--runtime crun|runsc] [--half DAY] [--self-test] [NAME...]

A NAME is a part of a file's or a test's name. --half runs every other file: an even
DAY and an odd one are the whole. Every server must leave nothing
behind; what it left is a failure, and is removed by force, also when the run is
interrupted.
"""
import argparse
import importlib
import inspect
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import server as servers  # noqa: E402
from marks import SLOW, Skip, TestTimeout, limit_of, on_stop, runtimes_of, watchdog  # noqa: E402


TIMEOUTS_MAX = 3  # in one file: a server that hangs would take a minute of every test that is left


class Run:
    def __init__(self, args):
        self.args = args
        self.passed, self.failed, self.skipped = 0, [], 0
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="berth-"))
        self.work.chmod(0o711)  # the service account must get through

    def say(self, text):
        print(text, flush=True)

    def fail(self, what, why):
        self.failed.append(what)
        self.say(f"FAIL  {what}\n" + "".join("      " + line + "\n" for line in why.rstrip().split("\n")))

    def prepare(self):
        probe = self.work / "probe"
        if self.args.probe:  # a machine without a compiler
            shutil.copy(self.args.probe, probe)
        else:
            subprocess.run(["musl-gcc", "-static", "-O1", "-Wall", "-Werror", "-o", probe, HERE / "probe.c"], check=True)
        servers.build_rootfs(self.work / "rootfs.tar", probe)

    def one(self, name, test, s):
        start = time.monotonic()
        watchdog(limit_of(test))
        try:
            test(s)
        except Skip as why:
            self.skipped += 1
            self.say(f"skip  {name}: {why}")
        except KeyboardInterrupt:
            raise
        except BaseException as why:
            watchdog(0)
            self.timeouts += isinstance(why, TestTimeout)
            self.fail(name, traceback.format_exc() + s.said())
            watchdog(60 * SLOW)
            try:
                s.tidy()
            except TestTimeout:
                pass
        else:
            self.passed += 1
            self.say(f"ok    {name} ({time.monotonic() - start:.1f} s)")
        finally:
            watchdog(0)

    def open(self, module, stem):
        options = getattr(module, "DEV_OPTIONS", [])
        s = servers.Server(self.args.build, self.args.runtime, self.work / stem, options)
        s.dev_env, s.prefix = getattr(module, "DEV_ENV", {}), getattr(module, "DEV_PREFIX", [])
        s.work, s.rootfs = self.work, self.work / "rootfs.tar"
        return s

    def file(self, stem, tests):
        module = sys.modules[stem]
        getattr(module, "set_up", lambda: None)()
        s = self.open(module, stem.removeprefix("test_"))
        self.timeouts = 0
        try:
            watchdog(120 * SLOW)
            s.start()
            code, _, err = s.berth("image", "import", "base", str(s.rootfs))
            assert code == 0, err
            watchdog(0)
            for name, test in tests:
                if self.timeouts < TIMEOUTS_MAX:
                    self.one(name, test, s)
                else:
                    self.fail(name, f"not run: {TIMEOUTS_MAX} tests of this server took too long")
            self.end(stem, s)
        except KeyboardInterrupt:
            raise
        except BaseException:
            watchdog(0)
            self.fail(f"{stem}: the server", traceback.format_exc() + s.said())
        finally:
            self.sweep(stem, s)
            getattr(module, "tear_down", lambda: None)()

    def end(self, stem, s):
        """Ctrl-C, and then nothing may be there."""
        try:
            status = s.stop()
            if status != 0:
                self.fail(f"{stem}: berth dev stops well", f"exit status {status}\n{s.said()}")
        except subprocess.TimeoutExpired:
            self.fail(f"{stem}: berth dev stops in time", s.said())
        wrong = s.illegal_moves()
        if wrong:
            self.fail(f"{stem}: every phase moves as its table says", "\n".join(wrong))
        left = s.leftovers()
        if left:
            self.fail(f"{stem}: nothing is left", "\n".join(f"{f['kind']} {f['what']}" for f in left) +
                      f"\n{s.said()}")

    def sweep(self, stem, s):
        old = {n: signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGTERM)}
        stuck = s.sweep()
        if stuck:
            self.fail(f"{stem}: what is left can be removed", "\n".join(f["what"] for f in stuck))
        for n, handler in old.items():
            signal.signal(n, handler)

    def finish(self):
        if not os.environ.get("BERTH_KEEP"):
            shutil.rmtree(self.work, ignore_errors=True)

    def all(self):
        start = time.monotonic()
        try:
            self.prepare()
            for stem, tests in find(self.args):
                self.say(f"# {stem} ({self.args.runtime})")
                self.file(stem, tests)
        except KeyboardInterrupt:
            self.fail("interrupted", "")
        finally:
            self.finish()
        for name in self.failed:
            self.say(f"failed: {name}")
        self.say(f"{self.args.runtime}: {self.skipped} skipped, {time.monotonic() - start:.0f} s")
        self.say(f"{self.passed} passed, {len(self.failed)} failed")
        return 1 if self.failed else 0


def find(args):
    """[(file, [(sentence, function)])], what the command line asks for."""
    out = []
    for path in sorted(HERE.glob("test_*.py"), key=lambda p: (p.stem == "test_http", p.stem)):
        module = importlib.import_module(path.stem)
        tests = []
        for name, test in inspect.getmembers(module, inspect.isfunction):
            if not name.startswith("test_") or args.runtime not in runtimes_of(test, module):
                continue
            if args.names and not any(n in name or n in path.stem for n in args.names):
                continue
            tests.append((name.removeprefix("test_").replace("_", " "), test))
        tests.sort(key=lambda t: t[1].__code__.co_firstlineno)
        if tests:
            out.append((path.stem, tests))
    return out if args.half is None else out[args.half % 2::2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--runtime", default="crun", choices=["crun", "runsc"])
    parser.add_argument("--half", type=int, metavar="DAY", help="every other file")
    parser.add_argument("--self-test", action="store_true", help="does the suite itself see what goes wrong?")
    parser.add_argument("--probe", help="tests/system/probe.c, built already")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, on_stop)
    signal.signal(signal.SIGINT, on_stop)
    if args.self_test:
        import selftest
        return selftest.main(args, Run)
    return Run(args).all()


if __name__ == "__main__":
    sys.exit(main())
