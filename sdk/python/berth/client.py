"""One server and one key."""
from __future__ import annotations

import base64
import http.client
import json
import os
import secrets
import time
import urllib.parse
from typing import Any, Dict, Iterator, Optional, Tuple

from .errors import BerthError, ConnectionError, error_from, is_not_yet

PAUSE_FIRST, PAUSE_MAX = 0.1, 3.0
READY_BUDGET = 60.0
READY_PAUSE_FIRST, READY_PAUSE_MAX = 2.0, 16.0  # where the server names no time
READY_LEAST_PART = 1 / 6  # of the budget, that must be left for one more request
BLOCK = 64 * 1024


def backoff(attempt):
    return min(PAUSE_FIRST * 2 ** attempt, PAUSE_MAX)


def ready_pause(attempt, spent, budget, retry_after=None):
    """How long until what is not ready is asked for again; None: the budget has no room for that."""
    pause = min(READY_PAUSE_FIRST * 2 ** attempt, READY_PAUSE_MAX) if retry_after is None else max(retry_after, PAUSE_FIRST)
    return pause if budget - spent - pause >= budget * READY_LEAST_PART else None


def retry_after(headers):
    """Seconds, or None."""
    told = headers.get("Retry-After", "")
    return int(told) if told.isdigit() else None


def random_id(prefix):
    return prefix + secrets.token_hex(10)


def data_of(event):
    """The bytes of a member that is `data` or `data_base64`."""
    if "data_base64" in event:
        return base64.b64decode(event["data_base64"])
    return event.get("data", "").encode()


class Answer:
    """A response whose body is read piece by piece; closes its connection."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self.connection, self.response = connection, response
        self.status, self.headers = response.status, response.headers

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    def read(self, size: Optional[int] = None) -> bytes:
        try:
            return self.response.read() if size is None else self.response.read1(size)
        except (OSError, http.client.HTTPException) as why:
            raise ConnectionError(f"the answer broke off: {why}", code="connection") from why

    def events(self) -> Iterator[Tuple[str, str, Any]]:
        """(name, id, data) of server-sent events; one that was cut off is not given."""
        name, ident, lines, rest = "message", "", [], b""
        while True:
            block = self.read(BLOCK)
            if not block:
                return
            *whole, rest = (rest + block).split(b"\n")
            for raw in whole:
                line = raw.rstrip(b"\r").decode("utf-8", "replace")
                if line == "":
                    if lines:
                        yield name, ident, json.loads("\n".join(lines))
                    name, lines = "message", []
                elif not line.startswith(":"):
                    field, _, text = line.partition(":")
                    text = text[1:] if text.startswith(" ") else text
                    if field == "event":
                        name = text
                    elif field == "id":
                        ident = text
                    elif field == "data":
                        lines.append(text)


class Berth:
    """`url` and `api_key` default to BERTH_URL and BERTH_API_KEY of the environment. `retries`: how often a request that may be
    repeated is sent again after its connection failed. `ready_budget`: seconds in which it is sent again while the server answers that
    its sandbox is being made ready; any other 503 is raised at once."""

    def __init__(self, url: Optional[str] = None, api_key: Optional[str] = None, image: str = "base", timeout: float = 120,
                 retries: int = 5, ready_budget: float = READY_BUDGET) -> None:
        url = url or os.environ.get("BERTH_URL")
        if not url:
            raise BerthError("no server was named", code="invalid", remediation="Give url, or set BERTH_URL.")
        self.url = url.rstrip("/")
        self.api_key = api_key if api_key is not None else os.environ.get("BERTH_API_KEY", "")
        self.image, self.timeout, self.retries, self.ready_budget = image, timeout, retries, ready_budget
        parts = urllib.parse.urlsplit(self.url)
        self._prefix = parts.path.rstrip("/")
        self._where = (http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection, parts.netloc)

    def send(self, method: str, path: str, query: Optional[Dict[str, Any]] = None, body: Any = None,
             data: Any = None, headers: Optional[Dict[str, str]] = None, key: Optional[str] = None,
             timeout: Optional[float] = None) -> Answer:
        """The Answer as it comes; a status of 400 and above is raised. With a key (or GET) it is repeated when no answer comes."""
        again = (method == "GET" or key is not None) and not hasattr(data, "read")
        began, lost, early = time.monotonic(), 0, 0  # answers that did not come; that came too early
        while True:
            try:
                return self._once(method, path, query, body, data, headers, key, timeout)
            except BerthError as why:
                pause = None
                if not again:
                    raise
                if is_not_yet(why):
                    pause = ready_pause(early, time.monotonic() - began, self.ready_budget, why.retry_after)
                    early += 1
                # A server that comes back may be busy for a moment, and whether the first request was carried out is to be found out.
                elif (isinstance(why, ConnectionError) or (lost and why.status == 503)) and lost < self.retries:
                    pause = backoff(lost)
                    lost += 1
                if pause is None:
                    raise
            time.sleep(pause)

    def _once(self, method, path, query, body, data, headers, key, timeout):
        query = {k: "1" if v is True else str(v) for k, v in (query or {}).items() if v is not None and v is not False}
        target = self._prefix + path + ("?" + urllib.parse.urlencode(query, quote_via=urllib.parse.quote) if query else "")
        head = {"Authorization": "Bearer " + self.api_key} if self.api_key else {}
        if body is not None:
            data, head["Content-Type"] = json.dumps(body).encode(), "application/json"
        if key is not None:
            head["Idempotency-Key"] = key
        make, where = self._where
        connection = make(where, timeout=timeout or self.timeout)
        try:
            connection.request(method, target, data, {**head, **(headers or {})}, encode_chunked=False)
            answer = Answer(connection, connection.getresponse())
        except (OSError, http.client.HTTPException) as why:
            connection.close()
            raise ConnectionError(f"no answer from {self.url}: {why}", code="connection",
                                  remediation="Is the server up, and is this its address?") from why
        if answer.status < 400:
            return answer
        with answer:
            try:
                told = json.loads(answer.read())
            except (ValueError, BerthError):
                told = None
        raise error_from(told, answer.status, retry_after(answer.headers))

    def json(self, method: str, path: str, **call: Any) -> Any:
        again = method == "GET" or call.get("key") is not None
        attempt = 0
        while True:
            with self.send(method, path, **call) as answer:
                try:
                    return json.loads(answer.read() or b"null")
                except (ValueError, ConnectionError) as why:
                    if not again or attempt >= self.retries:
                        raise ConnectionError(f"the answer to {method} {path} broke off", code="connection") from why
            time.sleep(backoff(attempt))
            attempt += 1
