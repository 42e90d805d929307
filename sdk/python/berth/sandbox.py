"""A sandbox and its sessions."""
from __future__ import annotations

import concurrent.futures
import re
import shlex
import threading
import time
import urllib.parse
from typing import Any, BinaryIO, Callable, Dict, Generator, List, Literal, Mapping, NoReturn, Optional, Sequence, Tuple, Union

from . import exec as commands
from . import process as processes
from . import types as wire
from .client import Berth, random_id
from .code import Code, CodeContext, Execution
from .errors import BerthError, ConflictError, InvalidError, NotFoundError, NotYetError, milliseconds
from .exec import ExecResult, Stream
from .files import FileInfo, Files
from .process import Process
from .terminal import Terminals

WORKSPACE = "/workspace"
DELETE_POLL, DELETE_WAIT = 0.5, 120.0

Identity = Mapping[str, str]  # for whom: org, user, bot, session
Command = Union[str, Sequence[str]]  # a line for a shell, or the words of a program
# The whole of it, the names it allows, or a mode that needs no more: every public address, or nothing.
Policy = Union[wire.NetworkPolicy, Sequence[str], Literal["open", "none"]]


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

    def __init__(self, client: Berth) -> None:
        self.client = client

    def _base(self):
        raise NotImplementedError

    def _shell(self):
        raise NotImplementedError

    def _cwd(self):
        self._shell()
        return WORKSPACE

    # -- commands

    def exec(self, command: Command, cwd: Optional[str] = None, env: Optional[Dict[str, str]] = None,
             stdin: Optional[str] = None, timeout: Optional[float] = None,
             on_output: Optional[Callable[[str, bytes], Any]] = None, stop: Optional[threading.Event] = None,
             encoding: Optional[str] = None) -> ExecResult:
        """In this session's shell: what it changes is there for the next one. A command that fails is a
        result; one that ran out of time (seconds), or whose end was not seen, is raised. `stop` is a
        threading.Event that kills it. `encoding` is that of the result's `stdout` and `stderr`: "utf8", or "base64"; `on_output`
        is told bytes, and `stdout_bytes` and `stderr_bytes` are there anyway."""
        encoding = commands.checked_encoding(encoding)
        events = self.exec_stream(command, cwd=cwd, env=env, stdin=stdin, timeout=timeout, stop=stop)
        return commands.collect(events, command, self.session_id, timeout, on_output, encoding)

    def exec_stream(self, command: Command, cwd: Optional[str] = None, env: Optional[Dict[str, str]] = None,
                    stdin: Optional[str] = None, timeout: Optional[float] = None,
                    stop: Optional[threading.Event] = None) -> Stream:
        """("started"|"stdout"|"stderr"|"exit", value) as it happens. Closing it kills the command."""
        shell = self._shell() if isinstance(command, str) else None
        return commands.run(self.client, self._base(), commands.ask_of(command, cwd, env, stdin, timeout, shell), stop)

    def exec_parallel(self, lines: Sequence[Command], concurrency: int = 8, cwd: Optional[str] = None,
                      env: Optional[Dict[str, str]] = None, timeout: Optional[float] = None,
                      encoding: Optional[str] = None) -> List[ExecResult]:
        """Side by side: each by itself, not in the session's shell, at most `concurrency` at a time. Results in the order of the
        commands. What exec() would raise is raised when all have ended."""
        encoding = commands.checked_encoding(encoding)
        base, cwd = self._base(), cwd or self._cwd()

        def one(command):
            events = commands.run(self.client, base, commands.ask_of(command, cwd, env, None, timeout, None))
            return commands.collect(events, command, self.session_id, timeout, None, encoding)

        with concurrent.futures.ThreadPoolExecutor(max(1, min(concurrency, len(lines)))) as pool:
            waiting = [pool.submit(one, command) for command in lines]
        return [w.result() for w in waiting]

    # -- processes

    def start_process(self, command: Command, process_id: Optional[str] = None, cwd: Optional[str] = None,
                      env: Optional[Dict[str, str]] = None, timeout: Optional[float] = None, stdin: bool = False,
                      encoding: Optional[str] = None, auto_cleanup: bool = False) -> Process:
        """With `stdin` it waits for what Process.write() gives it. `encoding` is that of Process.logs(): "utf8", or "base64". With
        `auto_cleanup` its record and output are forgotten as soon as it has ended. This client does it: if it is gone by then, they
        stay until cleanup_completed_processes()."""
        return processes.start(self.client, self._base(), command, process_id, cwd or self._cwd(), env, timeout, stdin,
                               self.session_id, encoding, auto_cleanup)

    def list_processes(self) -> List[Process]:
        base, found, after = self._base(), [], None
        while True:
            page = self.client.json("GET", f"{base}/execs", query={"background": 1, "after": after})
            found += [processes.Process(self.client, base, e) for e in page["execs"]]
            after = page.get("next")
            if not after:
                return found

    def get_process(self, ident: str) -> Optional[Process]:
        """None if there is none."""
        try:
            return processes.Process(self.client, self._base(), self.client.json("GET", f"{self._base()}/execs/{ident}"))
        except NotFoundError:
            return None

    def kill_process(self, ident: str, signal: Optional[str] = None) -> None:
        processes.kill_process(self.client, self._base(), ident, signal)

    _group = None  # whose processes are killed and cleaned up: a sandbox's all

    def kill_all_processes(self) -> int:
        return processes.kill_processes(self.client, self._base(), self._group)

    def cleanup_completed_processes(self) -> int:
        done = [p for p in self.list_processes() if p.record["state"] == "ended" and self._group in (None, p.record.get("group"))]
        for p in done:
            self.client.json("DELETE", f"{self._base()}/execs/{p.id}", key=random_id("rm_"))
        return len(done)

    def get_process_logs(self, ident: str, encoding: Optional[str] = None) -> Tuple[str, str]:
        return processes.encoded_logs(self.client, self._base(), ident, encoding)

    def stream_process_logs(self, ident: str) -> Stream:
        return commands.follow(self.client, self._base(), ident)

    # -- files

    @property
    def files(self) -> Files:
        return Files(self.client, self._base())

    @property
    def terminals(self) -> Terminals:
        """Commands on a pty: to see, and to type into."""
        return Terminals(self.client, self._base())

    def write_file(self, path: str, content: Union[str, bytes, BinaryIO], mode: Optional[int] = None) -> FileInfo:
        return self.files.write(path, content, mode)

    def read_file(self, path: str) -> str:
        """Text. What is not UTF-8: read_file_bytes()."""
        return self.files.read(path).decode()

    def read_file_bytes(self, path: str) -> bytes:
        return self.files.read(path)

    def read_file_stream(self, path: str) -> Generator[bytes, None, None]:
        return self.files.stream(path)

    def delete_file(self, path: str) -> None:
        self.files.remove(path)

    def rename_file(self, old_path: str, new_path: str) -> None:
        self.files.move(old_path, new_path)

    def move_file(self, source: str, target: str) -> None:
        self.files.move(source, target)

    def list_files(self, path: str, recursive: bool = False) -> List[FileInfo]:
        return self.files.list(path, recursive)

    def mkdir(self, path: str, recursive: bool = False) -> None:
        self.files.mkdir(path, recursive)

    def exists(self, path: str) -> bool:
        return self.files.exists(path)

    def git_checkout(self, url: str, branch: Optional[str] = None, target_dir: Optional[str] = None, depth: Optional[int] = None,
                     username: Optional[str] = None, token: Optional[str] = None,
                     timeout: Optional[float] = None, ref: Optional[str] = None, session_branch: Optional[str] = None,
                     reuse: bool = False) -> Dict[str, Any]:
        """`branch` or `ref` must be there remotely. `session_branch` is the one to work on: found here, tracked, or made from them. With
        `reuse` a clone of this repository that is at `target_dir` already is used; without, it is in the way."""
        name = re.sub(r"\.git$", "", url.rstrip("/").rsplit("/", 1)[-1]) or "repository"
        body = {"url": url, "path": target_dir or f"{self._cwd()}/{name}"}
        for word, value in (("branch", branch), ("ref", ref), ("session_branch", session_branch), ("reuse", reuse or None),
                            ("depth", depth), ("username", username), ("token", token)):
            if value is not None:
                body[word] = value
        if timeout is not None:
            body["timeout_ms"] = int(timeout * 1000)
        return self.client.json("POST", f"{self._base()}/git/checkout", body=body, key=random_id("git_"), timeout=(timeout or 600) + 60)

    # -- code

    @property
    def _code(self):
        return Code(self.client, self._base())

    def create_code_context(self, language: str = "python", cwd: Optional[str] = None, env: Optional[Dict[str, str]] = None,
                            timeout: Optional[float] = None) -> CodeContext:
        return self._code.create(language, cwd, env, timeout)

    def run_code(self, code: str, context: Optional[Union[str, CodeContext]] = None, language: str = "python",
                 env: Optional[Dict[str, str]] = None, timeout: Optional[float] = None) -> Execution:
        return self._code.run(code, context=context, language=language, env=env, timeout=timeout)

    def run_code_stream(self, code: str, context: Optional[Union[str, CodeContext]] = None, language: str = "python",
                        env: Optional[Dict[str, str]] = None, timeout: Optional[float] = None) -> Stream:
        return self._code.stream(code, context=context, language=language, env=env, timeout=timeout)

    def list_code_contexts(self) -> List[CodeContext]:
        return self._code.list()

    def delete_code_context(self, ident: Union[str, CodeContext]) -> None:
        self._code.remove(getattr(ident, "id", ident))

    # -- ports: with previews

    def expose_port(self, port: int, hostname: Optional[str] = None, name: Optional[str] = None) -> NoReturn:
        raise NotYetError("expose_port")

    def unexpose_port(self, port: int) -> NoReturn:
        raise NotYetError("unexpose_port")

    def get_exposed_ports(self, hostname: Optional[str] = None) -> NoReturn:
        raise NotYetError("get_exposed_ports")

    def is_port_exposed(self, port: int) -> NoReturn:
        raise NotYetError("is_port_exposed")

    def validate_port_token(self, port: int, token: str) -> NoReturn:
        raise NotYetError("validate_port_token")


def policy_of(network):
    """A list of names is the policy that allows them, and nothing else."""
    if isinstance(network, dict):
        return network
    if isinstance(network, str):  # a sequence of names, too, if it were not looked at
        return {"mode": network}
    return {"mode": "allow", "rules": [{"host": host} for host in network]} if network else {"mode": "none"}


class Session(Workspace):
    def __init__(self, sandbox: Sandbox, ident: str, cwd: str) -> None:
        super().__init__(sandbox.client)
        self.sandbox, self.id, self.session_id, self._group, self._start = sandbox, ident, ident, ident, cwd

    def _base(self):
        return self.sandbox._base()

    def _shell(self):
        return self.id

    def _cwd(self):
        return self._start

    def set_env_vars(self, env: Mapping[str, Optional[str]]) -> None:
        _check_names(env)
        _must(self.exec(_exports(env)))


def _must(result):
    if not result.success:
        raise BerthError(f"the variables could not be set: {result.stderr}", code="invalid")


class Sandbox(Workspace):
    """The sandbox of this name (or id), made by its first use. As a context manager it is destroyed at the end."""

    def __init__(self, client: Berth, ident: Union[str, Identity], image: Optional[str] = None, sleep_after: Optional[float] = None,
                 keep_alive: Optional[bool] = None, labels: Optional[Dict[str, str]] = None, profile: Optional[str] = None,
                 limits: Optional[Dict[str, int]] = None, network: Optional[Policy] = None, runtime: Optional[str] = None,
                 env: Optional[Dict[str, str]] = None, lifetime: Optional[float] = None) -> None:
        """`ident` is a name, an id, or an identity: {"org": ..., "user": ..., "bot": ..., "session": ...}. `lifetime` is in seconds, of
        a new one. Of one that is there, `sleep_after`, `keep_alive`, `labels` and the variables of `env` are changed if they differ;
        `image`, `runtime`, `profile`, `limits` and `network` must be as it has them (ConflictError, `reason` "options_differ"), or be
        left out."""
        super().__init__(client)
        self._identity = None if isinstance(ident, str) else dict(ident)
        # Of one for an identity the id is known once it is there.
        self.id, self.session_id = (ident, f"sandbox-{ident}"[:63]) if isinstance(ident, str) else ("", "sandbox-identity")
        self._sleep_after, self._keep_alive, self._labels, self._env = sleep_after, keep_alive, labels, env
        self._image = image
        _check_names(env or {})
        self._new = {**({"name": ident} if self._identity is None else {"identity": self._identity}), **(limits or {})}
        if runtime is not None:
            self._new["runtime"] = runtime
        if lifetime is not None:
            self._new["lifetime_ms"] = milliseconds(lifetime)
        if profile is not None:
            self._new["profile"] = profile
        if network is not None:
            self._new["network"] = policy_of(network)
        self._lock, self._path, self._gone, self._has_shell = threading.RLock(), None, None, False

    def __enter__(self) -> Sandbox:
        self._base()
        return self

    def __exit__(self, *_: Any) -> None:
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
        if self._identity is None and self.id.startswith("sb_"):
            record = self.client.json("GET", "/v1/sandboxes/" + self.id)
        else:
            record = self._create(wanted if self._env is None else {**wanted, "env": self._env})
        if self._identity is not None:
            self.id = record["id"]
        env, has = self._env or {}, record.get("env") or {}
        if any(value != record.get(k) for k, value in wanted.items()) or any(value != has.get(k) for k, value in env.items()):
            body = {**wanted, "set_env": env} if env else wanted
            record = self.client.json("PATCH", "/v1/sandboxes/" + record["id"], body=body, key=random_id("patch_"))
        return record

    def _create(self, wanted):
        """A new one with all options, or the one that is there: what can be changed of it need not be as wanted, the rest must."""
        try:
            return self._post(self._image or self.client.image, wanted)
        except ConflictError as e:
            if e.reason != "options_differ":
                raise
        if self._identity is not None:  # its key is the server's to make: nothing is said that could differ but the image
            return self._post(self._image or self.client.image, {})
        there = self.client.json("GET", "/v1/sandboxes/" + urllib.parse.quote(self.id, safe=""))
        return self._post(self._image or there["image"], {})

    def _post(self, image, wanted):
        return self.client.json("POST", "/v1/sandboxes", key=random_id("create_"), body={"image": image, **self._new, **wanted})

    def info(self) -> wire.Sandbox:
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

    def create_session(self, ident: Optional[str] = None, env: Optional[Dict[str, str]] = None,
                       cwd: Optional[str] = None) -> Session:
        """A shell of its own with the whole API: same files and processes, other directory and variables."""
        ident, cwd = ident or random_id("session-"), cwd or WORKSPACE
        _check_names(env or {})
        self._make_shell(ident, cwd, env)
        return Session(self, ident, cwd)

    def get_session(self, ident: str) -> Session:
        """One that is there; NotFoundError otherwise."""
        shell = self.client.json("GET", f"{self._base()}/shells/{ident}")
        return Session(self, shell["name"], shell.get("cwd") or WORKSPACE)

    def delete_session(self, ident: str) -> None:
        """With the processes it started."""
        processes.kill_processes(self.client, self._base(), ident)
        self.client.send("DELETE", f"{self._base()}/shells/{ident}", key=random_id("rm_")).close()

    def set_env_vars(self, env: Mapping[str, Optional[str]]) -> None:
        """For everything that starts from now on, in this sandbox's record: a restart does not lose them, nor what others set
        meanwhile."""
        _check_names(env)
        body = {"set_env": {k: v for k, v in env.items() if v is not None}, "unset_env": [k for k, v in env.items() if v is None]}
        self.client.json("PATCH", self._base(), body=body, key=random_id("env_"))
        _must(self.exec(_exports(env)))

    # -- what it may use and reach, and what it did

    def set_limits(self, **limits: Union[int, str]) -> wire.Sandbox:
        """At once, while it runs: `memory_mb=1024`, or all of a `profile`. The record, with `limits_in_force`."""
        return self.client.json("PATCH", self._base(), body=limits, key=random_id("limits_"))

    def get_network(self) -> wire.Network:
        """The policy, whether it is in force and why not, and what was used of it."""
        return self.client.json("GET", self._known() + "/network")

    def set_network(self, policy: Policy) -> wire.Network:
        """The whole policy, or a list of the names it may reach. It holds if the answer says `in_force`."""
        return self.client.json("PUT", self._base() + "/network", body=policy_of(policy), key=random_id("network_"))

    def lock_network(self) -> wire.Network:
        """What is allowed for the `bootstrap` only, no longer is."""
        return self.client.json("POST", self._base() + "/network/lock", key=random_id("lock_"))

    def get_security_events(self, after: int = 0) -> List[wire.SecurityEvent]:
        """What it was refused, in order, behind the one with this `seq`."""
        return self.client.json("GET", self._known() + "/security", query={"after": after})["events"]

    def get_events(self, after: int = 0) -> List[wire.LogEntry]:
        """What happened to it, in order, behind the one with this `seq`."""
        return self.client.json("GET", self._known() + "/events", query={"after": after})["events"]

    def get_usage(self, fresh: bool = False) -> wire.Usage:
        """What it used in all its lives, also when it is gone. `fresh`: what is on its disk is counted now, not as of up to a
        minute ago."""
        return self.client.json("GET", self._known() + "/usage", query={"fresh": fresh})

    def _known(self):
        """Where its record is: nothing is made for that, if it was destroyed; one that failed is no longer handed out, but there."""
        with self._lock:
            if self._gone and self._path is None:
                return self._gone
        try:
            return self._base()
        except ConflictError:
            if not self.id:
                raise
            return "/v1/sandboxes/" + urllib.parse.quote(self.id, safe="")

    def wake(self) -> wire.Sandbox:
        """Start it with its files: one that is asleep, or has failed. The record; its `last_failure` says what was lost."""
        return self._rest("wake")

    def sleep(self) -> wire.Sandbox:
        """End its processes and keep its files; whatever uses it wakes it. The record."""
        return self._rest("sleep")

    def recover(self) -> Dict[str, str]:
        """If it failed: one whose files are kept is woken, and what ran in it is lost; of any other, and of one that is gone, everything
        is lost, and the next use makes a new one. `how`: there, woken or new; `lost`: nothing, processes or everything; `why`. One that
        was named by its id cannot be made anew: NotFoundError."""
        made = self._path
        record = {"state": "gone", "reason": "it is gone"}
        try:
            if made or self.id:
                record = self.client.json("GET", made or "/v1/sandboxes/" + urllib.parse.quote(self.id, safe=""))
        except NotFoundError:
            pass
        failure = record.get("last_failure") or {}
        if record["state"] == "failed" and failure.get("files_kept"):
            self.wake()
            return {"how": "woken", "lost": "processes", "why": failure["why"]}
        if record["state"] not in ("failed", "deleting", "gone"):
            return {"how": "there", "lost": "nothing", "why": ""}
        why = failure.get("why") or record.get("reason") or "it is gone"
        if self._identity is None and self.id.startswith("sb_"):
            raise NotFoundError(f"{self.id} cannot be brought back: {why}", code="not_found", status=404,
                                remediation="Name a sandbox by a name of yours: a new one can be made of that.")
        with self._lock:
            self._path, self._has_shell = None, False
        return {"how": "new", "lost": "everything" if made or record["state"] != "gone" else "nothing", "why": why}

    def _rest(self, verb):
        record = self.client.json("POST", f"{self._known()}/{verb}", key=random_id(verb + "_"))
        with self._lock:
            self._has_shell = False  # it ended with the processes
        return record

    def destroy(self) -> wire.Gone:
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


def get_sandbox(client: Berth, ident: Union[str, Identity], **options: Any) -> Sandbox:
    return Sandbox(client, ident, **options)


def list_sandboxes(client: Berth, labels: Optional[Mapping[str, str]] = None, selector: Optional[str] = None,
                   state: Optional[str] = None) -> List[wire.Sandbox]:
    """The records of all that this key may see: those with all of these labels (or what `selector` says: "repo=berth,env!=prod")."""
    terms = [f"{k}={v}" for k, v in (labels or {}).items()] + ([selector] if selector else [])
    found: List[wire.Sandbox] = []
    after = None
    while True:
        page = client.json("GET", "/v1/sandboxes", query={"selector": ",".join(terms) or None, "state": state, "after": after})
        found += page["sandboxes"]
        after = page.get("next")
        if not after:
            return found
