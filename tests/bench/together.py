"""Two builds, both servers up, one operation of each in turns: what else the machine does meets both alike."""
import contextlib
import sys
import time

from server import Server

ROUNDS = 400
WARM = 30


def step(client, box, name):
    if name == "exec":
        client.run(box, "true")
    else:
        client.delete(client.create())


@contextlib.contextmanager
def serving(build):
    server, client = Server(build), None
    try:
        server.start()
        client = server.client()
        yield client, client.create()
    finally:
        if client:
            client.close()
        if not server.stop():
            sys.exit("bench: something was left behind in " + server.base)


def together(build, against):
    """Rows like those of run.py: our first quartile in ms, and the other's as `old`. What others take shows above it."""
    rows = {}
    with serving(build) as ours, serving(against) as theirs:
        for name, rounds in (("exec", ROUNDS), ("create_delete", ROUNDS // 8)):
            ms = {ours: [], theirs: []}
            for i in range(WARM + rounds):
                for side in (ours, theirs) if i % 2 else (theirs, ours):
                    start = time.perf_counter()
                    step(*side, name)
                    ms[side].append((time.perf_counter() - start) * 1000)
            quartile = lambda values: round(sorted(values)[len(values) // 4], 3)
            new, old = quartile(ms[ours][WARM:]), quartile(ms[theirs][WARM:])
            rows["together_" + name] = {"value": new, "unit": "ms", "old": old, "of_old": round(new / old, 3)}
    return rows
