"""To go on when a sandbox failed under the work, and to say what that cost."""
from __future__ import annotations

import random
import time
from typing import Any, Callable, Dict, List, Optional, TypeVar

from .client import backoff
from .errors import BerthError, BusyError, CommandLostError, ConflictError, ConnectionError, InternalError, NotFoundError
from .sandbox import Sandbox

# What may be over with another sandbox, or in a moment. What the work itself got wrong fails again, and is raised.
WORTH_IT = (ConnectionError, BusyError, ConflictError, CommandLostError, InternalError, NotFoundError)

Result = TypeVar("Result")


class RecoveryError(BerthError):
    """Every attempt failed; `causes` has all their errors in order, `recovered` what was lost on the way."""

    def __init__(self, causes: List[BerthError], recovered: List[Dict[str, Any]]) -> None:
        last = causes[-1]
        super().__init__(f"{len(causes)} attempts failed: {'; '.join(e.message for e in causes)}", code=last.code, status=last.status,
                         remediation=last.remediation)
        self.causes, self.recovered = causes, recovered


def recovery_pause(attempt, rand=random.random):
    """From half to all of it, so that many that failed together do not come back together."""
    return backoff(attempt) * (0.5 + rand() / 2)


# Refusals of the request itself: another try is refused, too.
FINAL = ("options_differ", "another_identity", "engine_missing")


def _is_worth_it(error):
    return isinstance(error, WORTH_IT) and error.reason not in FINAL


def with_sandbox_recovery(sandbox: Sandbox, work: Callable[[Sandbox, Callable[[], None]], Result], max_retries: int = 3,
                          on_recovered: Optional[Callable[[Dict[str, Any]], Any]] = None) -> Result:
    """Do the work, work(sandbox, progress), and if its sandbox failed or is gone, recover that and do the work from its beginning: one
    whose files are kept is woken, any other is made anew. `on_recovered` is told what was done and what is lost. Once the work has called
    progress(), nothing is repeated any more: its error is raised as it is."""
    causes: List[BerthError] = []
    recovered: List[Dict[str, Any]] = []
    begun: List[bool] = []
    while True:
        try:
            return work(sandbox, lambda: begun.append(True))
        except BerthError as why:
            if begun or not _is_worth_it(why):
                raise
            causes.append(why)
        if len(causes) > max_retries:
            raise RecoveryError(causes, recovered) from causes[-1]
        time.sleep(recovery_pause(len(causes) - 1))
        try:
            what = sandbox.recover()
        except BerthError as why:
            if not _is_worth_it(why):
                raise
            what = {"how": "unknown", "lost": "unknown", "why": why.message}
        recovered.append(what)
        if on_recovered:
            on_recovered({**what, "attempt": len(causes), "error": causes[-1]})
