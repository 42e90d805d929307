"""What went wrong, as the server says it: one class for every code, and for what a file or git call can meet."""
import builtins
import math


class BerthError(Exception):
    """`code` is the server's word, `remediation` what to do about it, `reason` the exact cause of a file or git call."""

    def __init__(self, message, code="internal", status=0, remediation="", request_id="", reason="", retry_after=None):
        super().__init__(message)
        self.message, self.code, self.status = message, code, status
        self.remediation, self.request_id, self.reason = remediation, request_id, reason
        self.retry_after = retry_after  # of a 503: not before so many seconds; None if the server does not say

    def __str__(self):
        return f"{self.message} ({self.remediation})" if self.remediation else self.message


class InvalidError(BerthError):
    pass


class UnauthenticatedError(BerthError):
    pass


class DeniedError(BerthError):
    pass


class NotFoundError(BerthError):
    pass


class ConflictError(BerthError):
    pass


class TooLargeError(BerthError):
    pass


class LimitError(BerthError):
    pass


class BusyError(BerthError):
    pass


class DeadlineError(BerthError):
    pass


class UnsupportedError(BerthError):
    pass


class InternalError(BerthError):
    pass


class ConnectionError(BerthError, builtins.ConnectionError):  # noqa: A001 - whoever catches the builtin gets it, too
    """No answer, or half of one. What was asked for may or may not have happened."""


class FileError(BerthError):
    pass


class FileNotFoundError(FileError, builtins.FileNotFoundError):  # noqa: A001
    pass


class FileExistsError(FileError, builtins.FileExistsError):  # noqa: A001
    pass


class IsDirectoryError(FileError, builtins.IsADirectoryError):
    pass


class NotDirectoryError(FileError, builtins.NotADirectoryError):
    pass


class PermissionDeniedError(FileError, builtins.PermissionError):
    pass


class NoSpaceError(FileError):
    pass


class GitError(BerthError):
    pass


class GitAuthError(GitError):
    pass


class GitRepositoryNotFoundError(GitError):
    pass


class GitRefNotFoundError(GitError):
    pass


class GitNetworkError(GitError):
    pass


class NotYetError(BerthError):
    """A method that this server has no answer for yet."""

    def __init__(self, what):
        super().__init__(f"{what} is not there yet", code="not_yet", remediation="It comes with previews.")


class CommandTimeoutError(BerthError):
    """It did not end in its time, and was killed with everything it had started. Its output is in `result`."""

    def __init__(self, result, timeout):
        super().__init__(f"{result.command}: Command timeout after {timeout} s", code="timed_out",
                         remediation="Give it more time. Its output until then is in result.")
        self.result = result


class CommandLostError(BerthError):
    """Nobody saw how it ended. It may have done all, some or nothing of its work."""

    def __init__(self, result):
        super().__init__(f"{result.command}: its end was not seen", code="lost",
                         remediation="Look at what it should have done. Its output until then is in result.")
        self.result = result


class ProcessReadyTimeoutError(BerthError):
    """It did not get ready in the time it was given."""


class ProcessExitedBeforeReadyError(BerthError):
    """It ended before it was ready."""


BY_CODE = {
    "invalid": InvalidError, "unauthenticated": UnauthenticatedError, "denied": DeniedError, "not_found": NotFoundError,
    "conflict": ConflictError, "too_large": TooLargeError, "limit": LimitError, "busy": BusyError, "timeout": DeadlineError,
    "unsupported": UnsupportedError, "internal": InternalError,
}
BY_REASON = {
    "no_such_file": FileNotFoundError, "exists": FileExistsError, "is_a_directory": IsDirectoryError,
    "not_a_directory": NotDirectoryError, "permission_denied": PermissionDeniedError, "no_space": NoSpaceError,
    "too_many_links": FileError, "not_empty": FileError, "in_use": FileError, "too_many_files": FileError, "read_only": FileError, "not_a_file": FileError,
    "name_too_long": FileError, "auth_failed": GitAuthError, "no_such_repository": GitRepositoryNotFoundError,
    "no_such_ref": GitRefNotFoundError, "network": GitNetworkError, "target_exists": GitError, "no_git": GitError,
    "timed_out": GitError,
}


# 503s that mean "not yet": what was asked for is being made ready, and nothing was done.
NOT_YET = {"not_ready", "not_reached", "under_way"}


def is_not_yet(error):
    return error.status == 503 and error.reason in NOT_YET


def error_from(body, status, retry_after=None):
    body = body if isinstance(body, dict) else {}
    code, reason = body.get("code", "internal"), body.get("reason", "")
    make = BY_REASON.get(reason) or BY_CODE.get(code) or BerthError
    return make(body.get("message", f"the server answered {status} without a reason"), code=code, status=status,
                remediation=body.get("remediation", ""), request_id=body.get("request_id", ""), reason=reason,
                retry_after=retry_after)


def milliseconds(timeout):
    """Of a timeout in seconds. What is none is said, and not multiplied."""
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout is a number of seconds, not {timeout!r}")
    if not (math.isfinite(timeout) and timeout >= 0):
        raise ValueError(f"timeout is a number of seconds from 0 on, not {timeout!r}")
    return int(timeout * 1000)
