"""A sandbox and its sessions."""
import re
import shlex
import threading
import time
import urllib.parse

from . import exec as commands
from . import process as processes
from .client import random_id
from .code import Code
from .errors import BerthError, ConflictError, InvalidError, NotFoundError, NotYetError
from .files import Files

WORKSPACE = "/workspace"
DELETE_POLL, DELETE_WAIT = 0.5, 120.0


def _check_names(env):
    for name in env:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise InvalidError(f"{name!r} is no name of a variable", code="invalid",
                               remediation="Use letters, digits and _, and no digit first.")


def _exports(env):
    return "\n".join(f"unset {k}" if v is None else f"export {k}={shlex.quote(v)}" for k, v in env.items())


class Workspace:
    """Where commands, files and code go: a whole sandbox, or one session of it."""

    session_id = ""

    def __init__(self, client):
        self.client = client

    def _base(self):
        raise NotImplementedError

    def _shell(self):
        raise NotImplementedError

    def _cwd(self):
        self._shell()
        return WORKSPACE

    # -- commands

    def exec(self, command, cwd=None, env=None, stdin=None, timeout=None, on_output=None, stop=None):
        """In this session's shell: what it changes is there for the next one. A command that fails is a
        result; one that ran out of time (seconds), or that nobody saw end, is raised. `stop` is a
        threading.Event that kills it."""
        events = self.exec_stream(command, cwd=cwd, env=env, stdin=stdin, timeout=timeout, stop=stop)
        return commands.collect(events, command, self.session_id, timeout, on_output)

    def exec_stream(self, command, cwd=None, env=None, stdin=None, timeout=None, stop=None):
        """("started"|"stdout"|"stderr"|"exit", value) as it happens. Closing it kills the command."""
        shell = self._shell() if isinstance(command, str) else None
        return commands.run(self.client, self._base(), commands.ask_of(command, cwd, env, stdin, timeout, shell), stop)

    # -- processes

    def start_process(self, command, process_id=None, cwd=None, env=None, timeout=None, stdin=False):
        """With `stdin` it waits for what Process.write() gives it."""
        return processes.start(self.client, self._base(), command, process_id, cwd or self._cwd(), env, timeout, stdin,
                               self.session_id)

    def list_processes(self):
        base, found, after = self._base(), [], None
        while True:
            page = self.client.json("GET", f"{base}/execs", query={"background": 1, "after": after})
            found += [processes.Process(self.client, base, e) for e in page["execs"]]
            after = page.get("next")
            if not after:
                return found

    def get_process(self, ident):
        """None if there is none."""
        try:
            return processes.Process(self.client, self._base(), self.client.json("GET", f"{self._base()}/execs/{ident}"))
        except NotFoundError:
            return None

    def kill_process(self, ident, signal=None):
        processes.kill_process(self.client, self._base(), ident, signal)

    _group = None  # whose processes are killed and cleaned up: a sandbox's all

    def kill_all_processes(self):
        return processes.kill_processes(self.client, self._base(), self._group)

    def cleanup_completed_processes(self):
        done = [p for p in self.list_processes() if p.record["state"] == "ended" and self._group in (None, p.record.get("group"))]
        for p in done:
            self.client.json("DELETE", f"{self._base()}/execs/{p.id}", key=random_id("rm_"))
        return len(done)

    def get_process_logs(self, ident):
        out, err = processes.logs(self.client, self._base(), ident)
        return out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def stream_process_logs(self, ident):
        return commands.follow(self.client, self._base(), ident)

    # -- files

    @property
    def files(self):
        return Files(self.client, self._base())

    def write_file(self, path, content, mode=None):
        return self.files.write(path, content, mode)

    def read_file(self, path):
        """Text. What is not UTF-8: read_file_bytes()."""
        return self.files.read(path).decode()

    def read_file_bytes(self, path):
        return self.files.read(path)

    def read_file_stream(self, path):
        return self.files.stream(path)

    def delete_file(self, path):
        self.files.remove(path)

    def rename_file(self, old_path, new_path):
        self.files.move(old_path, new_path)

    def move_file(self, source, target):
        self.files.move(source, target)

    def list_files(self, path, recursive=False):
        return self.files.list(path, recursive)

    def mkdir(self, path, recursive=False):
        self.files.mkdir(path, recursive)

    def exists(self, path):
        return self.files.exists(path)

    def git_checkout(self, url, branch=None, target_dir=None, depth=None, username=None, token=None, timeout=None):
        name = re.sub(r"\.git$", "", url.rstrip("/").rsplit("/", 1)[-1]) or "repository"
        body = {"url": url, "path": target_dir or f"{self._cwd()}/{name}"}
        for word, value in (("branch", branch), ("depth", depth), ("username", username), ("token", token)):
            if value is not None:
                body[word] = value
        if timeout is not None:
            body["timeout_ms"] = int(timeout * 1000)
        return self.client.json("POST", f"{self._base()}/git/checkout", body=body, key=random_id("git_"), timeout=(timeout or 600) + 60)

    # -- code

    @property
    def _code(self):
        return Code(self.client, self._base())

    def create_code_context(self, language="python", cwd=None, env=None, timeout=None):
        return self._code.create(language, cwd, env, timeout)

    def run_code(self, code, context=None, language="python", env=None, timeout=None):
        return self._code.run(code, context=context, language=language, env=env, timeout=timeout)

    def run_code_stream(self, code, context=None, language="python", env=None, timeout=None):
        return self._code.stream(code, context=context, language=language, env=env, timeout=timeout)

    def list_code_contexts(self):
        return self._code.list()

    def delete_code_context(self, ident):
        self._code.remove(getattr(ident, "id", ident))

    # -- ports: with previews

    def expose_port(self, port, hostname=None, name=None):
        raise NotYetError("expose_port")

    def unexpose_port(self, port):
        raise NotYetError("unexpose_port")

    def get_exposed_ports(self, hostname=None):
        raise NotYetError("get_exposed_ports")

    def is_port_exposed(self, port):
        raise NotYetError("is_port_exposed")

    def validate_port_token(self, port, token):
        raise NotYetError("validate_port_token")


def policy_of(network):
    """A list of names is the policy that allows them, and nothing else."""
    if isinstance(network, dict):
        return network
    return {"mode": "allow", "rules": [{"host": host} for host in network]} if network else {"mode": "none"}


class Session(Workspace):
    def __init__(self, sandbox, ident, cwd):
        super().__init__(sandbox.client)
        self.sandbox, self.id, self.session_id, self._group, self._start = sandbox, ident, ident, ident, cwd

    def _base(self):
        return self.sandbox._base()

    def _shell(self):
        return self.id

    def _cwd(self):
        return self._start

    def set_env_vars(self, env):
        _check_names(env)
        _must(self.exec(_exports(env)))


def _must(result):
    if not result.success:
        raise BerthError(f"the variables could not be set: {result.stderr}", code="invalid")


class Sandbox(Workspace):
    """The sandbox of this name (or id), made by its first use. As a context manager it is destroyed at the end."""

    def __init__(self, client, ident, image=None, sleep_after=None, keep_alive=None, labels=None, profile=None, limits=None,
                 network=None):
        """`image`, `profile`, `limits` and `network` are of a new one."""
        super().__init__(client)
        self.id, self.session_id = ident, f"sandbox-{ident}"[:63]
        self._sleep_after, self._keep_alive, self._labels = sleep_after, keep_alive, labels
        self._new = {"image": image or client.image, "name": ident, **(limits or {})}
        if profile is not None:
            self._new["profile"] = profile
        if network is not None:
            self._new["network"] = policy_of(network)
        self._lock, self._path, self._gone, self._has_shell = threading.RLock(), None, None, False

    def __enter__(self):
        self._base()
        return self

    def __exit__(self, *_):
        self.destroy()

    def _base(self):
        with self._lock:
            if self._path is None:
                self._path = "/v1/sandboxes/" + self._ensure()["id"]
            return self._path

    def _ensure(self):
        wanted = {}
        if self._sleep_after is not None:
            wanted["sleep_after_ms"] = int(self._sleep_after * 1000)
        if self._keep_alive is not None:
            wanted["keep_alive"] = self._keep_alive
        if self._labels is not None:
            wanted["labels"] = self._labels
        if self.id.startswith("sb_"):
            record = self.client.json("GET", "/v1/sandboxes/" + self.id)
        else:
            record = self.client.json("POST", "/v1/sandboxes", key=random_id("create_"), body={**self._new, **wanted})
        if any(k in wanted and wanted[k] != record.get(k) for k in ("sleep_after_ms", "keep_alive")):
            record = self.client.json("PATCH", "/v1/sandboxes/" + record["id"], body=wanted, key=random_id("patch_"))
        return record

    def info(self):
        return self.client.json("GET", self._base())

    def _shell(self):
        with self._lock:
            if not self._has_shell:
                self._make_shell(self.session_id, WORKSPACE, None)
                self._has_shell = True
        return self.session_id

    def _make_shell(self, name, cwd, env):
        if cwd == WORKSPACE:
            self.files.mkdir(WORKSPACE, parents=True)
        body = {"name": name, "cwd": cwd, **({} if env is None else {"env": env})}
        try:
            self.client.json("POST", self._base() + "/shells", body=body, key=random_id("shell_"))
        except ConflictError:
            if name != self.session_id:
                raise

    def create_session(self, ident=None, env=None, cwd=None):
        """A shell of its own with the whole API: same files and processes, other directory and variables."""
        ident, cwd = ident or random_id("session-"), cwd or WORKSPACE
        _check_names(env or {})
        self._make_shell(ident, cwd, env)
        return Session(self, ident, cwd)

    def get_session(self, ident):
        """One that is there; NotFoundError otherwise."""
        shell = self.client.json("GET", f"{self._base()}/shells/{ident}")
        return Session(self, shell["name"], shell.get("cwd") or WORKSPACE)

    def delete_session(self, ident):
        """With the processes it started."""
        processes.kill_processes(self.client, self._base(), ident)
        self.client.send("DELETE", f"{self._base()}/shells/{ident}", key=random_id("rm_")).close()

    def set_env_vars(self, env):
        """For everything that starts from now on, in this sandbox's record: a restart does not lose them."""
        _check_names(env)
        now = {**(self.info().get("env") or {}), **env}
        self.client.json("PATCH", self._base(), body={"env": {k: v for k, v in now.items() if v is not None}}, key=random_id("env_"))
        _must(self.exec(_exports(env)))

    # -- what it may use and reach, and what it did

    def set_limits(self, **limits):
        """At once, while it runs: `memory_mb=1024`, or all of a `profile`. The record, with `limits_in_force`."""
        return self.client.json("PATCH", self._base(), body=limits, key=random_id("limits_"))

    def get_network(self):
        """The policy, whether it is in force and why not, and what was used of it."""
        return self.client.json("GET", self._known() + "/network")

    def set_network(self, policy):
        """The whole policy, or a list of the names it may reach. It holds if the answer says `in_force`."""
        return self.client.json("PUT", self._base() + "/network", body=policy_of(policy), key=random_id("network_"))

    def lock_network(self):
        """What is allowed for the `bootstrap` only, no longer is."""
        return self.client.json("POST", self._base() + "/network/lock", key=random_id("lock_"))

    def get_security_events(self, after=0):
        """What it was refused, in order, behind the one with this `seq`."""
        return self.client.json("GET", self._known() + "/security", query={"after": after})["events"]

    def get_events(self, after=0):
        """What happened to it, in order, behind the one with this `seq`."""
        return self.client.json("GET", self._known() + "/events", query={"after": after})["events"]

    def get_usage(self):
        """What it used in all its lives, also when it is gone."""
        return self.client.json("GET", self._known() + "/usage")

    def _known(self):
        """Where its record is: nothing is made for that, if it was destroyed; one that failed is no longer handed out, but there."""
        with self._lock:
            if self._gone and self._path is None:
                return self._gone
        try:
            return self._base()
        except ConflictError:
            return "/v1/sandboxes/" + urllib.parse.quote(self.id, safe="")

    def destroy(self):
        """Gone, and proven: the receipt."""
        until = time.monotonic() + DELETE_WAIT
        path = self._known()
        while True:
            answer = self.client.json("DELETE", path, key=random_id("rm_"))
            path = "/v1/sandboxes/" + answer["id"]  # its name may be another's by now
            if answer["state"] == "gone":
                self._path, self._gone, self._has_shell = None, path, False
                return answer
            if time.monotonic() > until:
                raise BerthError(f"{self.id} is not proven gone yet: {answer.get('reason')}", code="busy",
                                 remediation="The wish is on record and tried again by itself; destroy() again to look.")
            time.sleep(DELETE_POLL)


def get_sandbox(client, ident, **options):
    return Sandbox(client, ident, **options)
