"""A memory hog, a fork bomb, a disk filler and a busy loop stay in their box; the neighbour works on."""
import threading
import time

from marks import limit
from server import wait_until


class Meanwhile:
    """A neighbour that runs commands while something bad happens next door."""

    def __init__(self, s):
        self.box, self.times, self.errors, self.on = s.box(), [], [], True
        self.thread = threading.Thread(target=self.work)

    def work(self):
        n = 0
        while self.on:
            start = time.monotonic()
            try:
                r = self.box.exec(f"echo {n} > /root/n; cat /root/n")
                assert (r.kind, r.out) == ("exited", f"{n}\n".encode()), r
            except Exception as e:  # noqa: BLE001 - told at the end
                self.errors.append(e)
            self.times.append(time.monotonic() - start)
            n += 1
            time.sleep(0.1)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.on = False
        self.thread.join()
        self.box.api.delete(self.box.id)

    def was_fine(self, slowest):
        assert not self.errors and self.times, self.errors
        assert max(self.times) < slowest, self.times


@limit(90)
def test_a_memory_hog_stays_in_its_box(s):
    with Meanwhile(s) as neighbour:
        b = s.box(memory_mb=64)
        r = b.exec(["probe", "eat", "1000"], timeout_ms=30000)
        assert r.kind in ("oom", "lost") and b"ate" not in r.out, r
        s.api.delete(b.id)
    neighbour.was_fine(5)


@limit(90)
def test_a_hog_of_shared_memory_and_tmpfs_stays_in_its_box(s):
    with s.box(memory_mb=64) as b:
        r = b.exec("dd if=/dev/zero of=/dev/shm/x bs=1M count=500 2>&1", timeout_ms=30000)
        assert r.kind != "exited" or r.exit_code != 0, r


@limit(120)
def test_a_fork_bomb_stays_in_its_box(s):
    with Meanwhile(s) as neighbour:
        b = s.box(pids=64)
        # The command itself stays, so that what ends is the timeout's doing and takes the bomb with it.
        r = b.exec("f() { while :; do (f) & sleep 0.05; done 2>/dev/null; }; f & exec sleep 100", timeout_ms=4000)
        assert r.kind == "timed_out" or s.runtime == "runsc" and r.kind == "lost", r
        if s.runtime == "crun":
            assert len(s.cgroup_pids(b.id)) < 64
            wait_until(lambda: len(s.cgroup_pids(b.id)) <= 2, 15, "the bomb is gone")
            assert b.exec(["echo", "ok"]).out == b"ok\n"
        gone = s.api.delete(b.id)
        assert gone["state"] == "gone", gone
    neighbour.was_fine(10)


@limit(120)
def test_a_disk_filler_stops_at_its_quota_and_the_neighbour_can_write(s):
    with Meanwhile(s) as neighbour:
        b = s.box(disk_mb=64)
        r = b.exec("dd if=/dev/zero of=/root/big bs=1M count=500; sync; ls -l /root/big | awk '{print $5}'",
                   timeout_ms=60000)
        size = int(r.out.split()[-1])
        assert 40 << 20 < size <= 65 << 20, r
        assert b"space" in r.err.lower() or b"quota" in r.err.lower(), r
        # Many small files are metadata too, and count.
        r = b.exec("mkdir /root/d; cd /root/d; i=0; while [ $i -lt 2000 ] && echo x > f$i; do i=$((i+1)); done; echo $i",
                   timeout_ms=30000)
        b.exec("rm -rf /root/big /root/d; sync", timeout_ms=60000)
        wait_until(lambda: b.exec("echo again > /root/again").exit_code == 0, 15, "room again after rm")
        s.api.delete(b.id)
    neighbour.was_fine(15)


@limit(60)
def test_a_busy_loop_gets_only_its_share_of_the_cpu(s):
    with s.box(cpu_milli=200) as b:
        r = b.exec("t=$(cut -d. -f1 /proc/uptime); while [ $(($(cut -d. -f1 /proc/uptime) - t)) -lt 3 ]; do :; done"
                   if s.runtime == "crun" else "while :; do :; done", timeout_ms=3500)
        used = host_cpu_seconds(s, b)
        assert used < 3.5 * 0.2 * 2.0 + 0.5, (used, r)


def host_cpu_seconds(s, box):
    path = f"/sys/fs/cgroup/cpuacct/berth.{s.instance()}/{s.allocation(box.id)}/cpuacct.usage"
    try:
        return int(open(path).read()) / 1e9
    except OSError:
        stat = open(f"/sys/fs/cgroup/berth.{s.instance()}/{s.allocation(box.id)}/cpu.stat").read()
        return int(stat.split()[1]) / 1e6


@limit(60)
def test_many_open_files_stay_in_their_box(s):
    with Meanwhile(s) as neighbour:
        with s.box() as b:
            b.exec("i=10; while [ $i -lt 2000 ]; do eval \"exec $i<>/dev/null\" || break; i=$((i+1)); done; echo $i",
                   timeout_ms=10000)
    neighbour.was_fine(5)
