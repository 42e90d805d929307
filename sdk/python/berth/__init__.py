"""Sandboxes for code you did not write: the client of a Berth server.

    from berth import Berth, get_sandbox

    with get_sandbox(Berth(), "my-agent") as box:
        print(box.exec("uname -sr").stdout)

The same for asyncio: `from berth.aio import get_sandbox`.
"""
from .client import Berth
from .code import CodeContext, Execution
from .errors import *  # noqa: F401,F403
from .exec import ExecResult
from .files import FileInfo
from .images import Images
from .policies import Policies
from .process import Process
from .recovery import RecoveryError, with_sandbox_recovery
from .sandbox import Sandbox, Session, get_sandbox, list_sandboxes
from .secrets import Secrets
from .terminal import Terminal, Terminals

__version__ = "0.1.0"
__all__ = ["Berth", "CodeContext", "ExecResult", "Execution", "FileInfo", "Images", "Policies", "Process", "RecoveryError", "Sandbox",
           "Secrets", "Session", "Terminal", "Terminals", "get_sandbox", "list_sandboxes", "with_sandbox_recovery"]
