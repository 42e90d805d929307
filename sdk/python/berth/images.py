"""Images: what sandboxes are made of. Reading is for all, the rest for admins."""
from __future__ import annotations

import urllib.parse
from typing import Any, BinaryIO, Callable, Dict, List, Optional, Union

from . import types as wire
from .client import Berth
from .errors import ConnectionError, error_from

Progress = Callable[[Dict[str, Any]], Any]


class Images:
    def __init__(self, client: Berth) -> None:
        self.client = client

    def list(self) -> List[wire.Image]:
        return self.client.json("GET", "/v1/images")["images"]

    def pull(self, reference: str, name: Optional[str] = None, on_progress: Optional[Progress] = None) -> wire.Image:
        """From a registry: host[:port]/path[:tag][@digest]. The work goes on if this client leaves."""
        body = {"reference": reference} if name is None else {"reference": reference, "name": name}
        return self._make("POST", "/v1/images", on_progress, body=body)

    def import_(self, name: str, tar: Union[bytes, BinaryIO], on_progress: Optional[Progress] = None) -> wire.Image:
        """From a tar of a root filesystem, or of an image's layers as `docker save` writes them; a file is sent as it is read."""
        return self._make("PUT", _path(name), on_progress, data=tar, headers={"Content-Type": "application/x-tar"})

    def remove(self, name: str) -> None:
        self.client.json("DELETE", _path(name))

    def _make(self, method, path, on_progress, headers=None, **call):
        with self.client.send(method, path, headers={**(headers or {}), "Accept": "text/event-stream"}, **call) as answer:
            for name, _, data in answer.events():
                if name == "progress" and on_progress:
                    on_progress(data)
                elif name == "image":
                    return data
                elif name == "error":
                    raise error_from(data, 500)
        raise ConnectionError("the answer broke off before the image was told", code="connection",
                              remediation="Look whether it is in the list by now.")


def _path(name):
    return "/v1/images/" + urllib.parse.quote(name, safe="")
