"""Does the suite see what goes wrong, and clean up after it?

Tests that fail on purpose: one leaves a sandbox running and its server's
daemons killed, one hangs, one is interrupted. The runner must report each and
leave nothing on the machine.
"""
import os
import signal
import sys
import time
import types

import server as servers
from marks import limit


def leave_a_mess(s):
    s.api.create()
    s.process.send_signal(signal.SIGSTOP)  # nobody restarts what is killed now
    s.kill("berth-node", "berthd")
    assert False, "on purpose"


@limit(2)
def hang(s):
    s.api.create()
    try:
        time.sleep(60)
    finally:
        time.sleep(600)  # what cleans up after a test hangs as well


def interrupt(s):
    s.api.create()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10)


def leave_a_stray(s):
    """Passes, but a sandbox's process survives the server: only `leftovers` can tell."""
    s.api.create()
    s.process.kill()
    s.process.wait()


def one(args, make, name, test):
    run = make(args)
    run.say = lambda text: print("".join(f"  | {line}\n" for line in text.split("\n")[:12]), end="", flush=True)
    dirs = []
    module = types.ModuleType("test_" + name)
    sys.modules[module.__name__] = module
    opened = run.open

    def remember(*given):
        dirs.append(opened(*given))
        return dirs[-1]
    run.open = remember
    run.prepare()
    try:
        run.file(module.__name__, [(name, test)])
    except KeyboardInterrupt:
        run.failed.append("interrupted")
    left = [f for s in dirs for f in s.leftovers()]
    run.finish()
    assert run.failed, f"{name}: the runner did not see it"
    assert not left, f"{name}: {left}"
    print(f"ok    the suite saw it and left nothing: {name}", flush=True)


def main(args, make):
    servers.STOP_LIMIT = 5  # a server that is stopped on purpose need not be waited for
    for test in (leave_a_mess, hang, leave_a_stray, interrupt):
        one(args, make, test.__name__, test)
    print("4 passed, 0 failed")
    return 0
