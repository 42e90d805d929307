"""Credentials that are added to requests outside of sandboxes."""
from __future__ import annotations

from typing import Iterable, List
from urllib.parse import quote

from . import types as wire
from .client import Berth, random_id


class Secrets:
    def __init__(self, client: Berth) -> None:
        self.client = client

    def list(self) -> List[wire.Secret]:
        """All of this key's owner, without their values."""
        return self.client.json("GET", "/v1/secrets")["secrets"]

    def set(self, name: str, host: str, value: str, header: str = "Authorization", methods: Iterable[str] = (),
            paths: Iterable[str] = ()) -> wire.Secret:
        """Goes to `host` with the next request of every sandbox whose policy names it; nobody is told the value again."""
        body = {"host": host, "header": header, "value": value, "methods": list(methods), "paths": list(paths)}
        return self.client.json("PUT", "/v1/secrets/" + quote(name, safe=""), body=body, key=random_id("secret_"))

    def remove(self, name: str) -> wire.Secret:
        """A sandbox whose policy names it reaches nothing until it does not."""
        return self.client.json("DELETE", "/v1/secrets/" + quote(name, safe=""))
