"""A command in the background."""
from __future__ import annotations

import base64
import re
import threading
from typing import Any, Dict, Optional, Pattern, Tuple, Union

from .client import Berth, random_id
from .errors import BerthError, ProcessExitedBeforeReadyError, ProcessReadyTimeoutError, milliseconds
from .exec import Stream, checked_encoding, encoded, follow, kill

KILL_GRACE = 5.0


def command_of(argv):
    """What was asked for, without the shell that a text is given to."""
    return argv[2] if argv[:2] == ["/bin/sh", "-c"] and len(argv) == 3 else " ".join(argv)


def status_of(e):
    """`running`; `completed`: it exited with 0; `failed`: with another code; `killed`: by a signal, at its timeout, or for memory;
    `error`: it was started, and its end was not seen. One that could not be started is no process: starting it raises."""
    if e["state"] == "running":
        return "running"
    if e["kind"] == "exited":
        return "completed" if e["exit_code"] == 0 else "failed"
    return "error" if e["kind"] == "lost" else "killed"


def kill_process(client, base, ident, signal=None):
    """The given signal to all of it; without one TERM, and KILL after five seconds."""
    return kill(client, base, ident, "TERM", KILL_GRACE) if signal is None else kill(client, base, ident, signal)


def kill_processes(client, base, group=None):
    """All of a group, or all in the background."""
    body = {"scope": "background"} if group is None else {"scope": "group", "group": group}
    return client.json("POST", f"{base}/execs/kill", body=body, key=random_id("kill_"))["killed"]


def logs(client, base, ident):
    """(stdout, stderr) so far, as bytes."""
    out, position = {"stdout": b"", "stderr": b""}, 0
    while True:
        o = client.json("GET", f"{base}/execs/{ident}/output", query={"from": position})
        for stream in out:
            coded = o.get(stream + "_base64")
            out[stream] += base64.b64decode(coded) if coded is not None else (o.get(stream) or "").encode()
        if o["next"] == position:
            return out["stdout"], out["stderr"]
        position = o["next"]


def encoded_logs(client, base, ident, encoding):
    encoding = checked_encoding(encoding)
    out, err = logs(client, base, ident)
    return encoded(out, encoding), encoded(err, encoding)


def _forget_at_end(client, base, ident):
    """What is not reached any more is not forgotten: cleanup_completed_processes() finds it."""
    try:
        for _ in follow(client, base, ident):
            pass
        client.json("DELETE", f"{base}/execs/{ident}", key=random_id("rm_"))
    except BerthError:
        pass


class Process:
    def __init__(self, client: Berth, base: str, record: Dict[str, Any], encoding: str = "utf8") -> None:
        self._client, self._base, self._encoding = client, base, encoding
        self.id, self.pid = record["id"], record.get("pid")
        self.command = command_of(record["argv"])
        self.session_id = record.get("shell") or record.get("group") or None
        self._take(record)

    def _take(self, record):
        self.record = record
        self.status = status_of(record)
        self.started_at, self.ended_at = record["started_at"], record.get("ended_at")
        self.exit_code = record.get("exit_code") if record["state"] == "ended" else None
        return self

    def __repr__(self):
        return f"<Process {self.id} {self.status}: {self.command}>"

    @property
    def _path(self):
        return f"{self._base}/execs/{self.id}"

    def refresh(self) -> Process:
        return self._take(self._client.json("GET", self._path))

    def kill(self, signal: Optional[str] = None) -> Process:
        return self._take(kill_process(self._client, self._base, self.id, signal))

    def logs(self, encoding: Optional[str] = None) -> Tuple[str, str]:
        """(stdout, stderr) so far, as text or "base64"; without `encoding` as it was started with."""
        return encoded_logs(self._client, self._base, self.id, encoding or self._encoding)

    def stream_logs(self) -> Stream:
        """("stdout"|"stderr", bytes) from the beginning, and at last ("exit", record)."""
        return follow(self._client, self._base, self.id)

    def write(self, data: bytes, end: bool = False) -> None:
        """Bytes to its standard input."""
        self._client.json("POST", self._path + "/stdin", query={"end": end}, data=data,
                          headers={"Content-Type": "application/octet-stream"})

    def wait(self, timeout: Optional[float] = None) -> Process:
        return self._wait({"for": "exit"}, timeout)

    def wait_for_log(self, pattern: Union[str, Pattern[str]], timeout: Optional[float] = None) -> Process:
        text = pattern if isinstance(pattern, str) else f"/{pattern.pattern}/{'i' if pattern.flags & re.IGNORECASE else ''}"
        return self._wait({"for": "log", "pattern": text}, timeout)

    def wait_for_port(self, port: int, timeout: Optional[float] = None) -> Process:
        return self._wait({"for": "port", "port": port}, timeout)

    def _wait(self, query, timeout):
        if timeout is not None:
            query["timeout_ms"] = milliseconds(timeout)
        answer = self._client.json("GET", self._path + "/wait", query=query, timeout=(timeout or 600) + 60)
        self._take(answer["exec"])
        if answer["ready"]:
            return self
        why = f"{self.command}: {answer['why']}"
        if self.record["state"] == "ended":
            raise ProcessExitedBeforeReadyError(why, code="process_exited_before_ready")
        raise ProcessReadyTimeoutError(why, code="process_ready_timeout")


def start(client, base, command, process_id=None, cwd=None, env=None, timeout=None, stdin=False, group=None,
          encoding=None, auto_cleanup=False):
    encoding = checked_encoding(encoding)
    body = {"command": command} if isinstance(command, str) else {"argv": list(command)}
    body.update(id=process_id or random_id("proc_"), background=True)
    if stdin:
        body["stdin_open"] = True
    for name, value in (("cwd", cwd), ("env", env), ("group", group)):
        if value is not None:
            body[name] = value
    if timeout is not None:
        body["timeout_ms"] = milliseconds(timeout)
    process = Process(client, base, client.json("POST", f"{base}/exec", body=body, key=random_id("start_")), encoding)
    if auto_cleanup:
        threading.Thread(target=_forget_at_end, args=(client, base, process.id), daemon=True).start()
    return process
