#!/usr/bin/env python3
"""The cell suite: several hosts on this machine, each in a network namespace of its own.

usage: run.py [--build DIR] [NAME...]

A NAME is a part of a file's or a test's name. Each file has a cell of its own (CELL in the
file says how many hosts). After every test the records are compared with what is alive on
every host; a cell must leave nothing behind, also when the run fails, is interrupted or killed.
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

import cell as cells  # noqa: E402  (it also finds tests/system)
from marks import Skip, limit_of, on_stop, watchdog  # noqa: E402
from server import build_rootfs  # noqa: E402


class Run:
    def __init__(self, args):
        self.args = args
        self.passed, self.failed = 0, []
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="berth-cell-"))
        self.work.chmod(0o711)

    def say(self, text):
        print(text, flush=True)

    def fail(self, what, why):
        self.failed.append(what)
        self.say(f"FAIL  {what}\n" + "".join("      " + line + "\n" for line in why.rstrip().split("\n")))

    def attempt(self, test, c):
        """None, or why it failed. Records and hosts must agree afterwards, whatever the test was about."""
        watchdog(limit_of(test))
        try:
            test(c)
            watchdog(120)
            c.check()
        except KeyboardInterrupt:
            raise
        except Skip:
            raise
        except BaseException:
            return traceback.format_exc()
        finally:
            watchdog(0)
        return None

    def one(self, name, test, c):
        start = time.monotonic()
        why = self.attempt(test, c)
        watchdog(240)
        c.tidy()
        watchdog(0)
        if why is not None:
            self.fail(name, why + c.said())
            return
        self.passed += 1
        self.say(f"ok    {name} ({time.monotonic() - start:.1f} s)")

    def file(self, stem, tests):
        module = sys.modules[stem]
        directory = self.work / stem.removeprefix("test_")
        c = getattr(module, "make_cell", cells.Cell)(self.args.build, directory, **getattr(module, "CELL", {}))
        c.rootfs = self.work / "rootfs.tar"
        try:
            watchdog(180)
            c.start()
            c.import_image()
            watchdog(0)
            for name, test in tests:
                self.one(name, test, c)
            left = c.stop()
            if left:
                self.fail(f"{stem}: nothing is left", "\n".join(f"{f['kind']} {f['what']}" for f in left))
        except KeyboardInterrupt:
            raise
        except BaseException:
            watchdog(0)
            self.fail(f"{stem}: the cell", traceback.format_exc() + c.said())
        finally:
            self.sweep(stem, c, directory)

    def sweep(self, stem, c, directory):
        old = {n: signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGTERM)}
        for h in c.hosts:
            if h.holder and h.holder.poll() is None:
                h.holder.kill()
                h.holder.wait()
        if os.environ.get("BERTH_KEEP"):
            shutil.copytree(directory, f"{directory}.kept", ignore=shutil.ignore_patterns("*.img", "pg*", "*.sock"),
                            ignore_dangling_symlinks=True)
        stuck = cells.sweep(directory)
        if stuck:
            self.fail(f"{stem}: what is left can be removed", "\n".join(f["what"] for f in stuck))
        subprocess.run(["ip", "link", "del", "br0"], stderr=subprocess.DEVNULL)
        for n, handler in old.items():
            signal.signal(n, handler)

    def all(self):
        start = time.monotonic()
        guard = guardian(self.work)
        try:
            build_rootfs(self.work / "rootfs.tar")
            for stem, tests in find(self.args):
                self.say(f"# {stem}")
                self.file(stem, tests)
        except KeyboardInterrupt:
            self.fail("interrupted", "")
        finally:
            os.write(guard, b"done")
            os.close(guard)
            if not os.environ.get("BERTH_KEEP"):
                shutil.rmtree(self.work, ignore_errors=True)
        for name in self.failed:
            self.say(f"failed: {name}")
        self.say(f"cell: {time.monotonic() - start:.0f} s")
        self.say(f"{self.passed} passed, {len(self.failed)} failed")
        return 1 if self.failed else 0


def guardian(work):
    """A process that sweeps if this one is killed before it said that it is done."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(write)
        os.setsid()
        for n in (signal.SIGINT, signal.SIGTERM):
            signal.signal(n, signal.SIG_IGN)
        done = os.read(read, 16)
        for directory in [] if done else work.iterdir():
            if directory.is_dir():
                cells.sweep(directory)
        if not done:
            shutil.rmtree(work, ignore_errors=True)
        os._exit(0)
    os.close(read)
    os.set_inheritable(write, False)
    return write


def find(args):
    """[(file, [(sentence, function)])], what the command line asks for."""
    out = []
    for path in sorted(HERE.glob("test_*.py")):
        module = importlib.import_module(path.stem)
        tests = [(name.removeprefix("test_").replace("_", " "), test)
                 for name, test in inspect.getmembers(module, inspect.isfunction) if name.startswith("test_")
                 and test.__module__ == path.stem
                 and (not args.names or any(n in name or n in path.stem for n in args.names))]
        tests.sort(key=lambda t: t[1].__code__.co_firstlineno)
        if tests:
            out.append((path.stem, tests))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if not os.environ.get("BERTH_CELL_INSIDE"):
        # A network of its own, for it and everything it starts.
        os.execvpe("unshare", ["unshare", "--net", sys.executable, *sys.argv], {**os.environ, "BERTH_CELL_INSIDE": "1"})
    signal.signal(signal.SIGTERM, on_stop)
    signal.signal(signal.SIGINT, on_stop)
    return Run(args).all()


if __name__ == "__main__":
    sys.exit(main())
