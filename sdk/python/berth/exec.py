"""One command. The server journals it under an id that is chosen here, so a connection that
breaks is only a pause: it goes on from its position, and nothing is run twice."""
import base64
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Generator, Optional, Tuple

from .client import backoff, data_of, random_id
from .errors import BerthError, CommandLostError, CommandTimeoutError, ConnectionError, InvalidError, NotFoundError, error_from, milliseconds

PATIENCE = 8  # how often a stream is tried again without a single event in between, or lasting
A_WHILE = 10.0  # seconds

Stream = Generator[Tuple[str, Any], None, None]  # (type, value), as it happens


ENCODINGS = {None: "utf8", "utf8": "utf8", "utf-8": "utf8", "base64": "base64"}


def checked_encoding(given):
    """Before anything runs: an encoding that is none is said, and not taken for another."""
    if given not in ENCODINGS:
        raise InvalidError(f"{given!r} is no encoding of output", code="invalid",
                           remediation="Give utf8 or base64; the bytes are in stdout_bytes and stderr_bytes.")
    return ENCODINGS[given]


def encoded(data, encoding):
    """As text, in which what is no UTF-8 becomes U+FFFD, or as base64, in which every byte is."""
    return base64.b64encode(data).decode() if encoding == "base64" else data.decode("utf-8", "replace")


@dataclass
class ExecResult:
    """How a command ended, and all it wrote."""
    command: str
    id: str
    session_id: str
    kind: str
    exit_code: Optional[int]  # None unless it exited by itself: a missing exit code is never 0
    signal: int
    stdout_bytes: bytes
    stderr_bytes: bytes
    duration: float  # seconds
    gap_bytes: int = 0  # not kept, because the output was longer than a journal may be
    restarted: bool = False
    exit: dict = field(default_factory=dict, repr=False)
    encoding: str = "utf8"  # of stdout and stderr: utf8 or base64

    @property
    def success(self) -> bool:
        return self.kind == "exited" and self.exit_code == 0

    @property
    def stdout(self) -> str:
        return encoded(self.stdout_bytes, self.encoding)

    @property
    def stderr(self) -> str:
        return encoded(self.stderr_bytes, self.encoding)


def follow(client, base, ident, position=0, first=None, stop=None):
    """(type, value) of one exec from a position on, over as many connections as it takes."""
    failures, known = 0, first is None  # known: it may run; what is refused now is not its start
    while True:
        began = time.monotonic()
        try:
            answer = first() if first else client.send(
                "GET", f"{base}/execs/{ident}/output", query={"from": position, "follow": 1}, headers={"Accept": "text/event-stream"})
            first = None
            with answer:
                for name, at, data in answer.events():
                    if stop is not None and stop.is_set():
                        return
                    if name in ("stdout", "stderr"):
                        piece = data_of(data)
                        position = int(at) if at else position + len(piece)
                        failures = 0
                        yield name, piece
                    elif name == "gap":
                        position = int(at) if at else position + data["bytes"]
                        yield name, data["bytes"]
                    elif name == "started":
                        yield name, data
                    elif name == "exit":
                        yield name, data
                        return
                    elif name == "error":
                        raise error_from(data, 500)
            raise ConnectionError(f"the stream of {ident} ended, and how it ended was not in it", code="connection")
        except BerthError as why:
            if not isinstance(why, ConnectionError) and not (known and why.status in (502, 503, 504)):
                raise
            known = True
            failures = 1 if time.monotonic() - began > A_WHILE else failures + 1
            if failures > PATIENCE:
                raise
        time.sleep(backoff(failures))


def kill(client, base, ident, signal="KILL", grace=None):
    body = {"signal": signal} if grace is None else {"signal": signal, "grace_ms": int(grace * 1000)}
    return client.json("POST", f"{base}/execs/{ident}/kill", body=body, key=random_id("kill_"))


def ask_of(command, cwd=None, env=None, stdin=None, timeout=None, shell=None):
    ask = {"command": command} if isinstance(command, str) else {"argv": list(command)}
    for name, value in (("cwd", cwd), ("env", env), ("stdin", stdin), ("shell", shell)):
        if value is not None:
            ask[name] = value
    if timeout is not None:
        ask["timeout_ms"] = milliseconds(timeout)
    return ask


def run(client, base, ask, stop=None):
    """Start a command and follow it to its end. Who stops listening wants it stopped."""
    ident, over = random_id("ex_"), False
    watch = None
    if stop is not None:
        watch = threading.Thread(target=_kill_when, args=(stop, client, base, ident), daemon=True)
        watch.start()
    try:
        for name, value in follow(client, base, ident, 0, lambda: client.send(
                "POST", f"{base}/exec", body={**ask, "id": ident, "keep": True}, key=ident, headers={"Accept": "text/event-stream"})):
            over = over or name == "exit"
            yield name, value
    except BerthError:
        over = True
        raise
    finally:
        if watch is not None:
            watch.ended = True
        if not over:
            _kill_quietly(client, base, ident)


def _kill_quietly(client, base, ident):
    """False: there is no such command, or not yet."""
    try:
        kill(client, base, ident)
    except NotFoundError:
        return False
    return True


def _kill_when(stop, client, base, ident):
    me = threading.current_thread()
    while not getattr(me, "ended", False):
        if stop.wait(0.2):
            try:
                if _kill_quietly(client, base, ident):
                    return
            except BerthError:
                pass  # a server that is away comes back, or run() ends
            time.sleep(0.2)  # the start of the command may be under way


def collect(events, command, session_id, timeout=None, on_output=None, encoding="utf8"):
    parts, ident, gap = {"stdout": [], "stderr": []}, "", 0
    for name, value in events:
        if name in parts:
            parts[name].append(value)
            if on_output:
                on_output(name, value)
        elif name == "started":
            ident = value.get("id", "")
        elif name == "gap":
            gap += value
        elif name == "exit":
            result = ExecResult(command if isinstance(command, str) else " ".join(command), ident, session_id, value["kind"],
                                value["exit_code"], value.get("signal") or 0, b"".join(parts["stdout"]), b"".join(parts["stderr"]),
                                value["wall_ms"] / 1000, gap, value.get("restarted", False), value, encoding)
            if result.kind == "timed_out":
                raise CommandTimeoutError(result, timeout)
            if result.kind == "lost":
                raise CommandLostError(result)
            return result
    raise ConnectionError(f"{command}: the stream ended without its end", code="connection")
