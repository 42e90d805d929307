"""Several hosts on one machine, as one cell.

Every host has a network namespace of its own with one address on a bridge, its own
berth-node, berthd, berth-egress, pool and directory. The bridge and PostgreSQL are in the runner's
namespace, which is private too (see run.py): no address of a cell is seen outside it, and
links and namespaces are gone with the last process in them, however that ended.
"""
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/system"))

from client import Api  # noqa: E402
from server import die_with_parent, kill_checked, leftovers, wait_until  # noqa: E402

NET = "10.77.0."
PORT, PEER_PORT = 7070, 7071
POSTGRES_BIN = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parts[4]))[-1]
DIVISOR = 10
EGRESS_ID = 65533  # of berth-egress, as `berth dev` has it


def run(*argv, check=True, **more):
    done = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/",
                          **more)
    assert done.returncode == 0 or not check, f"{argv}:\n{done.stdout}{done.stderr}"
    return done.stdout


def as_user(name):
    uid, gid = (name, name) if isinstance(name, int) else pwd.getpwnam(name)[2:4]
    return ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--"]


def service_user():
    names = {p.pw_name for p in pwd.getpwall()}
    return "berth" if "berth" in names else "nobody"


class Daemon:
    """One process in one network namespace, its log, and its end."""

    def __init__(self, argv, log, namespace=None, user=None):
        inside = ["nsenter", f"--net={namespace}", "--"] if namespace else []
        self.way, self.command = [*inside, *(as_user(user) if user else [])], [*map(str, argv)]
        self.log, self.process, self.env, self.told = log, None, {}, False

    @property
    def argv(self):
        """The environment is for the daemon alone, not for who starts it."""
        return [*self.way, "env", *(f"{k}={v}" for k, v in self.env.items()), *self.command]

    def start(self):
        self.told = False
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                                            preexec_fn=die_with_parent, umask=0o077)  # as the shipped units have it
        return self

    @property
    def pid(self):
        return self.process.pid

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def died(self):
        """It ended, and nobody told it to."""
        return self.process is not None and not self.told and self.process.poll() is not None

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.told = True
        if self.runs():
            self.process.kill()
            self.process.wait()

    def stop(self, seconds=30):
        self.told = True
        if self.runs():
            self.process.terminate()
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()

    def said(self, size=3000):
        return pathlib.Path(self.log).read_text(errors="replace")[-size:]


class Postgres:
    """One PostgreSQL at an address of its own on the bridge."""

    def __init__(self, cell, name, address):
        self.cell, self.name, self.address = cell, name, address
        self.dir, self.user = cell.dir / name, "postgres"
        self.daemon = Daemon([POSTGRES_BIN / "postgres", "-D", self.dir, "-k", "", "-c", f"listen_addresses={address}"],
                             cell.dir / f"{name}.log", user=self.user)

    def make(self):
        self.own_directory()
        run(*as_user(self.user), POSTGRES_BIN / "initdb", "-D", self.dir, "-U", "berth", "-A", "trust", "-E", "UTF8",
            "--locale=C.UTF-8", "--no-sync")
        with open(self.dir / "pg_hba.conf", "a") as hba:
            hba.write(f"host all all {NET}0/24 trust\nhost replication all {NET}0/24 trust\n")
        with open(self.dir / "postgresql.auto.conf", "a") as conf:
            conf.write("shared_buffers = 16MB\nmax_connections = 100\nwal_level = replica\nlogging_collector = off\n"
                       "tcp_keepalives_idle = 2\ntcp_keepalives_interval = 1\ntcp_keepalives_count = 3\n")
        return self

    def own_directory(self):
        run("ip", "address", "add", f"{self.address}/24", "dev", "br0")
        self.dir.mkdir(mode=0o700)
        shutil.chown(self.dir, self.user, self.user)

    def copy_of(self, primary):
        """A standby that follows it, and that it waits for."""
        self.own_directory()
        run(*as_user(self.user), POSTGRES_BIN / "pg_basebackup", "-h", primary.address, "-U", "berth", "-D", self.dir,
            "-R", "-X", "stream", "-c", "fast", "-d", f"application_name={self.name}")
        return self

    def start(self):
        self.daemon.start()
        wait_until(self.answers, 60, f"{self.name} up\n{self.daemon.said()}")
        return self

    def answers(self):
        assert self.daemon.runs(), self.daemon.said()
        return subprocess.run([POSTGRES_BIN / "pg_isready", "-q", "-h", self.address, "-t", "1"]).returncode == 0

    def sql(self, text, check=True):
        """Rows as lists of strings."""
        out = run("psql", "-h", self.address, "-U", "berth", "-d", "postgres", "-AtqX", "-F", "\t", "-c", text,
                  check=check)
        return [line.split("\t") for line in out.splitlines() if line]

    def kill(self):
        """The whole of it at once, as a machine that loses its power."""
        children = run("pgrep", "-P", self.daemon.pid, check=False).split()
        self.daemon.kill()
        for pid in map(int, children):
            kill_checked(pid, lambda: str(self.dir) in leftovers.Process(pid).text() or
                         leftovers.Process(pid).name == "postgres")

    def promote(self):
        assert self.sql("SELECT pg_promote(true, 60)") == [["t"]]


class Host:
    def __init__(self, cell, number):
        self.cell, self.name = cell, f"h{number}"
        self.address = f"{NET}{10 + number}"
        self.dir = cell.dir / self.name
        self.instance = cell.tag + self.name
        self.settings = {}
        self.holder = self.node = self.egress = self.berthd = self.api = None

    @property
    def daemons(self):
        return self.node, self.egress, self.berthd

    # -- making it ------------------------------------------------------------------------------

    def make(self):
        self.dir.mkdir(mode=0o711)
        for name, mode, service in (("run", 0o711, False), ("log", 0o700, False), ("node", 0o700, False),
                                    ("state", 0o700, True)):
            (self.dir / name).mkdir(mode=mode)
            (self.dir / name).chmod(mode)
            if service:
                shutil.chown(self.dir / name, service_user())
        (self.dir / "run/egress").mkdir()
        (self.dir / "run/egress").chmod(0o710)
        os.chown(self.dir / "run/egress", EGRESS_ID, pwd.getpwnam(service_user()).pw_gid)
        self.make_network()
        build = self.cell.build
        self.write("node.conf", {
            "instance": self.instance, "socket": self.dir / "run/node.sock", "socket_user": service_user(),
            "egress_socket": self.dir / "run/egress.sock", "egress_user": EGRESS_ID,
            "run_dir": self.dir / "node", "pool": self.dir / "pool.img", "pool_size": "4g",
            "init": build / "src/init/berth-init", "image_helper": build / "src/image/berth-image"})
        self.write("egress.conf", {
            "socket": self.dir / "run/egress/policy.sock", "node_socket": self.dir / "run/egress.sock",
            "socket_user": service_user(), **self.cell.egress_settings()})
        self.configure()
        self.node = Daemon([build / "src/node/berth-node", "--config", self.dir / "node.conf"],
                           self.dir / "log/berth-node.log", self.namespace)
        self.egress = Daemon([build / "src/egress/berth-egress", "--config", self.dir / "egress.conf"],
                             self.dir / "log/berth-egress.log", self.namespace, EGRESS_ID)
        self.berthd = Daemon([build / "src/berthd/berthd", "--config", self.dir / "berthd.conf"],
                             self.dir / "log/berthd.log", self.namespace, service_user())
        return self

    def make_network(self):
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], stdin=subprocess.DEVNULL,
                                       preexec_fn=die_with_parent, cwd="/")
        self.namespace = f"/proc/{self.holder.pid}/ns/net"
        own = os.readlink("/proc/self/ns/net")
        wait_until(lambda: os.readlink(self.namespace) != own, 10, "a network namespace")
        link = "v" + self.name
        run("ip", "link", "del", link, check=False)  # the kernel takes its time with a namespace that is gone
        run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", self.holder.pid)
        run("ip", "link", "set", link, "master", "br0", "up")
        for line in (["link", "set", "lo", "up"], ["address", "add", f"{self.address}/24", "dev", "eth0"],
                     ["link", "set", "eth0", "up"]):
            self.inside("ip", *line)
        self.inside("nft", "add table inet cut; add chain inet cut in { type filter hook input priority 0; }")

    def inside(self, *argv, **more):
        return run("nsenter", f"--net={self.namespace}", "--", *argv, **more)

    def write(self, name, settings):
        (self.dir / name).write_text("".join(f"{k} = {v}\n" for k, v in settings.items()))
        (self.dir / name).chmod(0o644)

    def configure(self, **more):
        self.settings.update(more)
        self.write("berthd.conf", {
            "listen": f"{self.address}:{PORT}", "database": self.cell.database(), "host": self.name,
            "node_socket": self.dir / "run/node.sock", "egress_socket": self.dir / "run/egress/policy.sock",
            "state_dir": self.dir / "state",
            "timer_divisor": DIVISOR, "loops": 1, "store_workers": 2, **self.cell.settings_of(self), **self.settings})

    # -- its life -------------------------------------------------------------------------------

    def start(self, wait=True):
        for d in self.daemons:
            if not d.runs():
                d.start()
        if wait:
            self.wait_healthy()
        return self

    def healthy(self):
        assert self.berthd.runs(), self.berthd.said()
        try:
            return Api(PORT, None, 5, self.address).request("GET", "/v1/health")[0] == 200
        except (OSError, ValueError):
            return False

    def wait_healthy(self, seconds=60):
        wait_until(self.healthy, seconds, f"{self.name} healthy")

    def kill(self, *daemons):
        """SIGKILL; all of them without names."""
        for d in daemons or ("berthd", "node", "egress"):
            getattr(self, d).kill()

    def stop(self):
        for d in reversed(self.daemons):
            d.stop()

    def restart(self, *daemons):
        self.kill(*daemons)
        return self.start()

    # -- its network ----------------------------------------------------------------------------

    def drop_from(self, *addresses):
        """From now on nothing arrives from there; nobody is told."""
        for a in addresses:
            self.inside("nft", f"add rule inet cut in ip saddr {a} drop")

    def cut_off(self):
        """Nothing arrives from anywhere, but from itself."""
        self.inside("nft", "add rule inet cut in iif != lo drop")

    def join(self):
        self.inside("nft", "flush chain inet cut in")

    # -- looking at it --------------------------------------------------------------------------

    def allocations(self):
        """{sandbox: [generation]} by berth-node's own records."""
        out = {}
        for name in leftovers.names(self.dir / "node/alloc"):
            ident, _, generation = name.rpartition(".")
            out.setdefault(ident, []).append(int(generation))
        return out

    def pids(self, ident):
        want = f"/berth.{self.instance}/{ident}."
        return [int(p) for p in os.listdir("/proc") if p.isdigit() and want in leftovers.read(f"/proc/{p}/cgroup")
                and not leftovers.Process(int(p)).dead]

    def alive(self):
        """Sandboxes with at least one process, by the kernel."""
        found = set()
        mark = f"/berth.{self.instance}/"
        for p in os.listdir("/proc"):
            if not p.isdigit():
                continue
            text = leftovers.read(f"/proc/{p}/cgroup")
            if mark in text and not leftovers.Process(int(p)).dead:
                found.add(text.split(mark, 1)[1].split("\n")[0].split("/")[0].rsplit(".", 1)[0].split(".")[0])
        return found

    def log(self):
        return pathlib.Path(self.berthd.log).read_text(errors="replace")


class Cell:
    def __init__(self, build, directory, hosts=2, standby=False):
        self.build = pathlib.Path(build).resolve()
        self.dir = pathlib.Path(directory)
        self.tag = "c" + os.urandom(3).hex()
        self.postgres = [Postgres(self, "pg1", NET + "1")]
        if standby:
            self.postgres.append(Postgres(self, "pg2", NET + "2"))
        self.hosts = [Host(self, n + 1) for n in range(hosts)]
        self.by_name = {h.name: h for h in self.hosts}
        self.rootfs = None
        self.proxies = []

    def database(self):
        where = ",".join(p.address for p in self.postgres)
        more = " target_session_attrs=read-write" if len(self.postgres) > 1 else ""
        return f"host={where} user=berth dbname=postgres{more}"

    def settings_of(self, host):
        return {"peer_listen": f"{host.address}:{PEER_PORT}"}

    def egress_settings(self):
        return {}

    @property
    def primary(self):
        return self.postgres[0]

    def start(self):
        self.dir.mkdir(mode=0o711, exist_ok=True)
        self.dir.chmod(0o711)
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "br0", "type", "bridge")
        run("ip", "link", "set", "br0", "up")
        self.primary.make().start()
        for standby in self.postgres[1:]:
            standby.copy_of(self.primary).start()
            self.primary.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{standby.name}'")
            self.primary.sql("SELECT pg_reload_conf()")
            wait_until(lambda: self.primary.sql("SELECT sync_state FROM pg_stat_replication") == [["sync"]], 30,
                       "a synchronous standby")
        for h in self.hosts:
            h.make()
        for h in self.hosts:
            h.node.start()
            h.egress.start()
        self.key = self.make_key()
        for h in self.hosts:
            h.berthd.start()
            h.api = Api(PORT, self.key, address=h.address)
        for h in self.hosts:
            h.wait_healthy()
        return self

    def make_key(self, name="first", role="admin"):
        first = self.hosts[0].berthd.argv
        return run(*first, "--create-key", name, "--role", role).strip()

    def import_image(self, name="base", hosts=None):
        for h in hosts or self.hosts:
            with open(self.rootfs, "rb") as tar:
                h.api.call("PUT", f"/v1/images/{name}", tar)

    def rows(self):
        """[(sandbox, host, generation, state)]"""
        for p in self.postgres:
            if p.daemon.runs() and p.sql("SELECT pg_is_in_recovery()") == [["f"]]:
                return [(i, h, int(g), s) for i, h, g, s in p.sql("SELECT id, host, generation, state FROM sandbox")]
        raise AssertionError("no PostgreSQL to ask")

    def differences(self):
        """Where records and kernels differ. Nothing is to be said of what is on its way."""
        out, seen = [], {}
        rows = {ident: (host, generation, state) for ident, host, generation, state in self.rows()}
        for h in self.hosts:
            have, alive = h.allocations(), h.alive()
            for ident in sorted(alive | set(have)):
                seen.setdefault(ident, []).append(h.name)
                if ident not in rows:
                    out.append(f"{ident} is on {h.name}, and no record says so")
                elif rows[ident][0] != h.name:
                    out.append(f"{ident} is on {h.name}, its record says {rows[ident][0]}")
                elif len(have.get(ident, [])) != 1:
                    out.append(f"{ident} has {len(have.get(ident, []))} records on {h.name}")
        for ident, (host, generation, state) in rows.items():
            if state == "ready" and ident not in self.by_name[host].alive():
                out.append(f"{ident} should run on {host} and does not")
            if len(seen.get(ident, [])) > 1:
                out.append(f"{ident} is on {' and '.join(seen[ident])}")
        return out

    def check(self, seconds=60):
        """Records and kernels agree, soon: what was begun may take a moment to end. No daemon fell over."""
        for h in self.hosts:
            for d in h.daemons:
                assert not d.died(), f"{h.name}: {d.argv[-3]} ended with {d.process.returncode}\n{d.said()}"
        try:
            wait_until(lambda: not self.differences(), seconds, "records as the kernels are")
        except AssertionError:
            raise AssertionError("\n".join(self.differences()) or "they differed for too long") from None

    def tidy(self):
        """No sandbox of a test stays for the next one."""
        for h in self.hosts:
            h.join()
            h.start(wait=False)
        for h in self.hosts:
            h.wait_healthy()
        wait_until(self.delete_all, 120, "all sandboxes deleted")
        self.check()

    def delete_all(self):
        rows = self.rows()
        for ident, host, _, _ in rows:
            self.by_name[host].api.request("DELETE", f"/v1/sandboxes/{ident}")
        return not rows

    def leftovers(self):
        return leftovers.find(dirs=[str(h.dir) for h in self.hosts] + [str(self.dir)],
                              instances=[h.instance for h in self.hosts])

    def stop(self):
        """As an operator would: what is left afterwards is a fault of Berth's."""
        for h in self.hosts:
            h.stop()
            h.holder.kill()
            h.holder.wait()
        for p in reversed(self.postgres):
            if p.daemon.runs():
                p.daemon.signal(signal.SIGINT)
                p.daemon.process.wait(60)
        for p in self.proxies:
            p.stop()
        return self.leftovers()

    def said(self):
        parts = [f"--- {h.name}\n{h.berthd.said()}" for h in self.hosts if h.berthd and os.path.exists(h.berthd.log)]
        return "\n".join(parts)


def sweep(directory, seconds=60):
    """Everything of the cell in this directory is ended and removed by force; what stays is returned."""
    directory = pathlib.Path(directory)
    dirs = [str(d) for d in [directory, *directory.glob("h*")]]
    kinds = ("process", "cgroup", "mount", "loop")
    end = time.monotonic() + seconds
    while True:
        found = [f for f in leftovers.find(dirs=dirs) if f["kind"] in kinds]
        if not found or time.monotonic() > end:
            break
        for f in found:
            sweep_one(f, dirs)
        time.sleep(0.1)
    if not found:
        shutil.rmtree(directory, ignore_errors=True)
    return found


def sweep_one(found, dirs):
    if "pid" in found:
        kill_checked(found["pid"], lambda: found["pid"] in [f.get("pid") for f in leftovers.find(dirs=dirs)])
    elif found.get("path"):
        try:
            os.rmdir(found["path"])
        except OSError:
            pass  # still busy: the next round
    elif found["kind"] == "cgroup":
        leftovers.remove_hidden(found["what"])
    elif "dev" in found:
        subprocess.run(["losetup", "-d", found["dev"]], stderr=subprocess.DEVNULL)


def error_of(answer):
    status, body, _ = answer
    return status, body.get("code"), body.get("message")


def show(rows):
    print(json.dumps(rows, indent=1))
