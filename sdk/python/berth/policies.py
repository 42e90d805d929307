"""Which sandbox, limits and engine agent sessions get: for admins."""
from __future__ import annotations

from typing import List, Optional

from . import types as wire
from .client import Berth, random_id


class Policies:
    def __init__(self, client: Berth) -> None:
        self.client = client

    def list(self) -> List[wire.Policy]:
        """All of them, the oldest first."""
        return self.client.json("GET", "/v1/policies")["policies"]

    def add(self, scope: str, subject: str, isolation: Optional[str] = None, profile: Optional[str] = None,
            runtime: Optional[str] = None) -> wire.Policy:
        """About sessions that come later: what was decided for one before stays."""
        given = {"isolation": isolation, "profile": profile, "runtime": runtime}
        return self.client.json("POST", "/v1/policies",
                                body={"scope": scope, "subject": subject, **{k: v for k, v in given.items() if v is not None}})

    def remove(self, ident: int) -> wire.Policy:
        """As it was."""
        return self.client.json("DELETE", f"/v1/policies/{ident}", key=random_id("rm_"))
