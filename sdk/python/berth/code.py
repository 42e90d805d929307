"""Code contexts."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Union

from .client import Berth, data_of, random_id
from .errors import ConnectionError, error_from, milliseconds
from .exec import Stream

ALIASES = {"python3": "python", "js": "javascript", "node": "javascript", "ts": "typescript"}


@dataclass
class CodeContext:
    id: str
    language: str
    cwd: str
    created_at: str


@dataclass
class Execution:
    code: str
    kind: str = "lost"
    stdout: str = ""
    stderr: str = ""
    results: list = field(default_factory=list)
    error: Optional[dict] = None

    @property
    def text(self) -> Optional[str]:
        """Of the last result, if it has one."""
        return self.results[-1].get("text") if self.results else None


def context_of(c):
    return CodeContext(c["id"], c["language"], c.get("cwd", ""), c.get("created_at", ""))


class Code:
    def __init__(self, client: Berth, base: str) -> None:
        self.client, self.base = client, base

    def create(self, language: str = "python", cwd: Optional[str] = None, env: Optional[Dict[str, str]] = None,
               timeout: Optional[float] = None) -> CodeContext:
        body = {"language": ALIASES.get(language, language)}
        for name, value in (("cwd", cwd), ("env", env)):
            if value is not None:
                body[name] = value
        if timeout is not None:
            body["timeout_ms"] = milliseconds(timeout)
        return context_of(self.client.json("POST", f"{self.base}/contexts", body=body, key=random_id("ctx_")))

    def list(self) -> List[CodeContext]:
        return [context_of(c) for c in self.client.json("GET", f"{self.base}/contexts")["contexts"]]

    def remove(self, ident: str) -> None:
        self.client.send("DELETE", f"{self.base}/contexts/{ident}", key=random_id("rm_")).close()

    def stream(self, code: str, context: Optional[Union[str, CodeContext]] = None, language: str = "python",
               env: Optional[Dict[str, str]] = None, timeout: Optional[float] = None) -> Stream:
        """(type, value): stdout and stderr (bytes), result, error (dicts), and at last end."""
        body = {"code": code}
        if context is not None:
            body["context"] = getattr(context, "id", context)
        else:
            body["language"] = ALIASES.get(language, language)
        if env is not None:
            body["env"] = env
        if timeout is not None:
            body["timeout_ms"] = milliseconds(timeout)
        with self.client.send("POST", f"{self.base}/code", body=body, headers={"Accept": "text/event-stream"}) as answer:
            for name, _, data in answer.events():
                if name in ("stdout", "stderr"):
                    yield name, data_of(data)
                elif name == "result":
                    yield name, data
                elif name == "error_output":
                    yield "error", data
                elif name == "error":
                    raise error_from(data, 500)
                elif name == "end":
                    yield name, data
                    return
        raise ConnectionError("the run broke off, and its end was not seen", code="connection")

    def run(self, code: str, **options: Any) -> Execution:
        out, streams = Execution(code), {"stdout": b"", "stderr": b""}
        for name, value in self.stream(code, **options):
            if name in streams:
                streams[name] += value
            elif name == "result":
                out.results.append(value)
            elif name == "error":
                out.error = value
            elif name == "end":
                out.kind = value["kind"]
        out.stdout, out.stderr = (streams[s].decode("utf-8", "replace") for s in ("stdout", "stderr"))
        return out
