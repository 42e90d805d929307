#!/usr/bin/env python3
"""Figures of Berth beside the bare engine, taken in turns in one run.

    run.py --build build [--against DIR [--turns N]] [NAME[,NAME...]]

Ratios count; absolute times are this machine's at this moment. With --against those of another build are taken too, in turns
and in changing order, and the table has the medians; execs and creates also one by one, both servers up (together.py). Needs root.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time

from bare import Bare
from files import files_large, files_small
from httpcpu import http_small_cpu
from server import Server
from slots import slots
from together import together
from transitions import transitions

ROUNDS = 60
GIB = 1024
CROWD = 500
BARE_CROWD = 150
SAMPLES = 5
SETTLE = 4


def timed(call, *args):
    start = time.perf_counter()
    result = call(*args)
    return (time.perf_counter() - start) * 1000, result


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * q))]


class Bench:
    def __init__(self, server):
        self.server, self.figures = server, {}
        self.client = server.client()
        self.box = self.client.create()
        self.client.run(self.box, "true")
        self.bare = Bare(server, self.box)

    def note(self, name, value, unit, bare=None, target=None):
        row = {"value": round(value, 3), "unit": unit}
        if bare and bare > 0:  # memory can seem to shrink while others work here
            row["bare"], row["ratio"] = round(bare, 3), round(value / bare, 3)
        if target:
            row["target"] = target
        self.figures[name] = row

    def close(self):
        try:
            self.bare.close()
        finally:
            self.client.close()


def first_result(client, **options):
    box = client.create(**options)
    client.run(box, "true")
    return box


def create_first_result_cold(b):
    path = b.bare.bundle("once", ["/bin/true"])
    ours, alone, theirs, gone = [], [], [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        ms, box = timed(b.client.create)
        b.client.run(box, "true")
        ours.append((time.perf_counter() - start) * 1000)
        alone.append(ms)
        gone.append(timed(b.client.delete, box)[0])
        theirs.append(timed(b.bare.once, path, "once")[0])
    b.note("create_first_result_cold", quantile(ours, .5), "ms", quantile(theirs, .5), "<= 3")
    b.note("create_first_result_cold_p99", quantile(ours, .99), "ms", quantile(theirs, .99))
    b.note("create_p50", quantile(alone, .5), "ms")
    b.note("create_p99", quantile(alone, .99), "ms")
    b.note("delete_p50", quantile(gone, .5), "ms")


def exec_true(b):
    b.bare.start("still", ["/bin/sleep", "1000000"])
    ours, theirs = [], []
    for _ in range(ROUNDS * 2):
        ours.append(timed(b.client.run, b.box, "true")[0])
        theirs.append(timed(b.bare.execute, "still", "/bin/true")[0])
    b.bare.stop("still")
    b.note("exec_true", quantile(ours, .5), "ms", quantile(theirs, .5), "<= 0.25")
    b.note("exec_true_p99", quantile(ours, .99), "ms", quantile(theirs, .99))


def stream(b, *argv, **env):
    client = [b.server.build + "/tests/exec-stream", str(b.server.port), b.server.key, b.box]
    ms, got = timed(lambda: subprocess.run([*client, *argv], stdout=subprocess.PIPE, check=True,
                                           env={**os.environ, **env}))
    if int(got.stdout) != GIB << 20:
        raise RuntimeError(f"{int(got.stdout)} bytes came, not {GIB << 20}")
    return ms


def pipe(b):
    pattern = b.server.build + "/tests/pattern"

    def both():
        writer = subprocess.Popen([pattern, "write", str(GIB)], stdout=subprocess.PIPE)
        got = subprocess.run([pattern, "check"], stdin=writer.stdout, stdout=subprocess.PIPE,
                             check=True)
        writer.stdout.close()
        return writer.wait(), got
    ms, (status, got) = timed(both)
    if status != 0 or int(got.stdout) != GIB << 20:
        raise RuntimeError("the bare pipe lost something")
    return ms


def stdout_1gib(b):
    ours, zeros, theirs = [], [], []
    for _ in range(5):
        ours.append(stream(b, "pattern", "write", str(GIB)))
        zeros.append(stream(b, "dd", "if=/dev/zero", "bs=1M", f"count={GIB}", BENCH_ANY="1"))
        theirs.append(pipe(b))
    speed = lambda ms: GIB * 1000 / quantile(ms, .5)
    b.note("stdout_1gib", speed(ours), "MiB/s", speed(theirs), ">= 0.5")
    b.note("stdout_1gib_dd", speed(zeros), "MiB/s")


def million_lines(b):
    """The output of a command that writes a line at a time, whole, beside the command alone."""
    argv, size, ours, theirs = ["busybox", "seq", "1000000"], 6888896, [], []
    client = [b.server.build + "/tests/exec-stream", str(b.server.port), b.server.key, b.box]
    for _ in range(5):
        for times, command, counted in ((ours, [*client, *argv], True), (theirs, argv, False)):
            ms, got = timed(lambda: subprocess.run(command, stdout=subprocess.PIPE, check=True,
                                                   env={**os.environ, "BENCH_ANY": "1"}))
            if (int(got.stdout) if counted else len(got.stdout)) != size:
                raise RuntimeError(f"{command}: not {size} bytes")
            times.append(ms)
    b.note("million_lines", quantile(ours, .5), "ms", quantile(theirs, .5), "<= 1.5")


def in_parallel(server, count, threads, work):
    """work(client, i) for every i, on a few connections; what they returned."""
    results, failures = [None] * count, []

    def lane(first):
        client = server.client()
        try:
            for i in range(first, count, threads):
                results[i] = work(client, i)
        except Exception as e:
            failures.append(e)
        finally:
            client.close()
    lanes = [threading.Thread(target=lane, args=(i,)) for i in range(threads)]
    for t in lanes:
        t.start()
    for t in lanes:
        t.join()
    if failures:
        raise failures[0]
    return results


def kernel_kb():
    """What is neither free, nor cached file data, nor a process's own: tmpfs, tables, objects."""
    with open("/proc/sys/vm/drop_caches", "w") as f:
        f.write("3")
    with open("/proc/meminfo") as f:
        info = {line.split(":")[0]: int(line.split()[1]) for line in f}
    files = info["Buffers"] + info["Cached"] - info["Shmem"]
    return info["MemTotal"] - info["MemFree"] - files - info["AnonPages"]


def private_kb(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss_Anon:"))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(child) for child in f.read().split()]


def daemons_kb(server):
    pids = {name: [server.pid(name)] for name in ("berthd", "berth-node", "postgres")}
    pids["postgres"] += children(pids["postgres"][0])
    return {name: sum(private_kb(pid) for pid in each) for name, each in pids.items()}


def members_kb(server):
    """Of all processes in our sandboxes and in bare containers."""
    groups = (f"/berth.{server.instance()}/", f"/berth-bench.{os.getpid()}/")
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cgroup") as f:
                path = f.read()
            if any(group in path for group in groups):
                total += private_kb(pid)
        except OSError:
            pass  # it ended meanwhile
    return total


def memory_used_kb(server):
    """
    All that came with our processes: the kernel's share of the whole machine, with everything
    that can be dropped dropped first, and their own. "MemAvailable" would hide the inodes and
    dentries a living sandbox pins. The least of a few looks: others work here too.
    """
    os.sync()
    kernel = []
    for _ in range(SAMPLES):
        kernel.append(kernel_kb())
        time.sleep(0.6)
    return min(kernel) + sum(daemons_kb(server).values()) + members_kb(server)


def memory_bare(b):
    path = b.bare.bundle("crowd", b.bare.config["process"]["args"])
    before = memory_used_kb(b.server)
    for i in range(BARE_CROWD):
        b.bare.start(f"crowd{i}", None, path)
    used = memory_used_kb(b.server) - before
    for i in range(BARE_CROWD):
        b.bare.stop(f"crowd{i}")
    return used / BARE_CROWD / 1000


def memory_idle_500(b):
    theirs = memory_bare(b)
    time.sleep(SETTLE)  # namespaces are taken apart after their last process
    before, own = memory_used_kb(b.server), daemons_kb(b.server)
    boxes = in_parallel(b.server, CROWD, 4, lambda client, i: client.create())
    ours, own_after = memory_used_kb(b.server) - before, daemons_kb(b.server)
    in_parallel(b.server, CROWD, 4, lambda client, i: client.delete(boxes[i]))
    b.note("memory_idle_500", ours / CROWD / 1000, "MB", theirs, "<= 1.5 MB")
    for name in own:
        b.note("memory_idle_500_" + name, (own_after[name] - own[name]) / CROWD, "KiB each")


def transactions(server):
    """(all, those that wrote). Idle backends tell their count after ten seconds."""
    wrote = int(server.sql("select pg_snapshot_xmax(pg_current_snapshot())"))
    time.sleep(10.5)
    return int(server.sql("select sum(xact_commit) from pg_stat_database")), wrote


def pg_transactions_per_create(b):
    count = 100
    t0 = transactions(b.server)
    start = transactions(b.server)
    boxes = [b.client.create() for _ in range(count)]
    made = transactions(b.server)
    for box in boxes:
        b.client.delete(box)
    gone = transactions(b.server)
    idle = start[0] - t0[0]
    b.note("pg_transactions_per_create", (made[0] - start[0] - idle) / count, "transactions")
    b.note("pg_transactions_per_delete", (gone[0] - made[0] - idle) / count, "transactions")
    b.note("pg_writes_per_create", (made[1] - start[1]) / count, "transactions")
    b.note("pg_writes_per_delete", (gone[1] - made[1]) / count, "transactions")


def burst(b):
    """A hundred at once, each from its request to its first command's result."""
    count = 100
    times = in_parallel(b.server, count, count, lambda client, i: timed(first_result, client))
    b.note("burst_100_first_result_p50", quantile([ms for ms, _ in times], .5), "ms")
    b.note("burst_100_first_result_p99", quantile([ms for ms, _ in times], .99), "ms")
    in_parallel(b.server, count, 4, lambda client, i: client.delete(times[i][1]))


def thousand_execs(b):
    """A thousand commands at once in a hundred sandboxes."""
    count = 100
    boxes = in_parallel(b.server, count, 8, lambda client, i: client.create(memory_mb=64))
    times = in_parallel(b.server, 10 * count, 10 * count, lambda client, i: timed(client.run, boxes[i % count], "true")[0])
    b.note("thousand_execs_p50", quantile(times, .5), "ms")
    b.note("thousand_execs_p99", quantile(times, .99), "ms")
    in_parallel(b.server, count, 4, lambda client, i: client.delete(boxes[i]))


def runsc(b):
    made, ran = [], []
    for _ in range(5):
        ms, box = timed(lambda: b.client.create(runtime="runsc"))
        made.append(ms)
        ran += [timed(b.client.run, box, "true")[0] for _ in range(5)]
        b.client.delete(box)
    b.note("runsc_create_p50", quantile(made, .5), "ms")
    b.note("runsc_exec_true_p50", quantile(ran, .5), "ms")


FIGURES = {f.__name__: f for f in (create_first_result_cold, exec_true, stdout_1gib, million_lines, thousand_execs,
                                   memory_idle_500, http_small_cpu, pg_transactions_per_create,
                                   burst, files_small, files_large, transitions, slots, runsc)}


def met(row):
    how, limit, *absolute = row["target"].split()
    got = row["value"] if absolute else row.get("ratio", row["value"])
    return got <= float(limit) if how == "<=" else got >= float(limit)


def table(figures):
    form = "{:<32} {:>10} {:<12} {:>10} {:>7} {:>10} {:>10} {:>7}  {}"
    print(form.format("figure", "value", "unit", "bare", "ratio", "target", "old", "of old", ""))
    for name, row in figures.items():
        verdict = ("ok" if met(row) else "MISSED") if "target" in row else ""
        print(form.format(name, row["value"], row["unit"], row.get("bare", ""),
                          row.get("ratio", ""), row.get("target", ""), row.get("old", ""), row.get("of_old", ""), verdict))


def take(bench, name):
    """One figure; that it failed is said, and does not cost the others."""
    print(f"bench: {name}", file=sys.stderr, flush=True)
    try:
        FIGURES[name](bench)
        return True
    except Exception as e:
        print(f"bench: {name} FAILED: {e!r}", file=sys.stderr, flush=True)
        return False


def measure(build, names):
    server, bench = Server(build), None
    try:
        server.start()
        bench = Bench(server)
        failed = [name for name in names if not take(bench, name)]
        return bench.figures, failed
    finally:
        try:
            if bench:
                bench.close()
        finally:
            if not server.stop():
                sys.exit("bench: something was left behind in " + server.base)


def one_turn(build, names):
    """(figures, it went well) of a run of its own: the bare engine's part moves its process into a server's mounts."""
    path = build + "/bench/figures.json"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    print(f"bench: {build}", file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, __file__, "--build", build, ",".join(names)], stdout=subprocess.DEVNULL)
    with contextlib.suppress(FileNotFoundError), open(path) as f:
        return json.load(f), done.returncode == 0
    return {}, False


def medians(turns):
    """One row for each figure: the medians of what it was in each turn."""
    figures = {}
    for name in dict.fromkeys(name for turn in turns for name in turn):
        rows = [turn[name] for turn in turns if name in turn]
        numbers = {key: round(statistics.median(row[key] for row in rows if key in row), 3)
                   for key in ("value", "bare", "ratio") if key in rows[0]}
        figures[name] = {**rows[0], **numbers}
    return figures


def measure_both(build, against, names, turns):
    """
    The figures of both, in turns: (ours, with the other's value as `old`; builds of which a turn failed). Where there is a bare
    one, taken within the turn, of_old compares what each build is beside it: a turn is long, and the machine changes meanwhile.
    """
    taken, failed = {build: [], against: []}, []
    for i in range(turns):
        for each in (build, against) if i % 2 else (against, build):
            figures, well = one_turn(each, names)
            taken[each].append(figures)
            failed += [] if well else [each]
    new, old = medians(taken[build]), medians(taken[against])
    for name, row in new.items():
        was = old.get(name, {})
        key = "ratio" if row.get("ratio") and was.get("ratio") else "value"
        if was.get(key):
            row["old"], row["of_old"] = was["value"], round(row[key] / was[key], 3)
    return {**together(build, against), **new}, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--against", help="the build directory of another version, measured in turns with this one")
    parser.add_argument("--turns", type=int, default=5, help="how often each build's turn comes")
    parser.add_argument("figures", nargs="?", default=",".join(FIGURES))
    options = parser.parse_args()
    names = options.figures.split(",")
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        sys.exit(f"bench: no such figure: {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    if os.geteuid() != 0:
        sys.exit("bench: must be root, to run the bare engine and drop caches")
    if options.against:
        figures, failed = measure_both(options.build, options.against, names, options.turns)
    else:
        figures, failed = measure(options.build, names)
    os.makedirs(options.build + "/bench", exist_ok=True)
    with open(options.build + "/bench/figures.json", "w") as f:
        json.dump(figures, f, indent=1)
        f.write("\n")
    table(figures)
    if failed:
        sys.exit("bench: failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
