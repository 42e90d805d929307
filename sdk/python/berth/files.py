"""Files of a sandbox."""
from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from typing import BinaryIO, Generator, List, Optional, Union

from . import types as wire
from .client import BLOCK, Berth, backoff, random_id
from .errors import BerthError, ConnectionError, FileNotFoundError, IsDirectoryError


@dataclass
class FileInfo:
    name: str
    path: str
    type: str
    size: int
    mode: int
    modified_at: str
    target: Optional[str] = None


def _text(entry, name):
    """Bytes that are no UTF-8 come through as the file system's own surrogates."""
    coded = entry.get(name + "_base64")
    return entry.get(name) if coded is None else base64.b64decode(coded).decode("utf-8", "surrogateescape")


def info_of(e):
    return FileInfo(_text(e, "name"), _text(e, "path"), e["type"], e["size"], int(e["mode"], 8), e["modified_at"], e.get("target") or None)


class Files:
    """What a sandbox's file methods are made of: `client` and the sandbox's path."""

    def __init__(self, client: Berth, base: str) -> None:
        self.client, self.base = client, base

    def write(self, path: str, content: Union[str, bytes, BinaryIO], mode: Optional[int] = None,
              parents: bool = True) -> FileInfo:
        if isinstance(content, str):
            content = content.encode()
        return info_of(self.client.json(
            "PUT", f"{self.base}/files", query={"path": path, "mode": mode if mode is None else f"{mode:04o}", "parents": parents},
            data=content, key=random_id("write_"), headers={"Content-Type": "application/octet-stream"}))

    def stream(self, path: str) -> Generator[bytes, None, None]:
        """Its bytes, piece by piece, over as many connections as it takes while the file stays the same."""
        at, tag, size, failures = 0, "", None, 0
        while True:
            headers = {"Range": f"bytes={at}-", "If-Range": tag} if at else {}
            with self.client.send("GET", f"{self.base}/files", query={"path": path}, headers=headers) as answer:
                if at and (answer.status != 206 or answer.headers.get("ETag", "") != tag):
                    raise ConnectionError(f"{path} was changed while it was read", code="connection")
                if not at:
                    tag, told = answer.headers.get("ETag", ""), answer.headers.get("Content-Length")
                    size = None if told is None else int(told)
                try:
                    while True:
                        piece = answer.read(BLOCK)
                        if not piece:
                            break
                        at, failures = at + len(piece), 0
                        yield piece
                    if size is None or at == size:
                        return
                except ConnectionError:
                    if not tag:
                        raise
            failures += 1
            if failures > self.client.retries:
                raise ConnectionError(f"reading {path} broke off after {at} of {size} bytes", code="connection")
            time.sleep(backoff(failures))

    def read(self, path: str) -> bytes:
        return b"".join(self.stream(path))

    def stat(self, path: str) -> FileInfo:
        return info_of(self.client.json("GET", f"{self.base}/files/stat", query={"path": path}))

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
            return True
        except FileNotFoundError:
            return False

    def list(self, path: str, recursive: bool = False) -> List[FileInfo]:
        found, after = [], None
        while True:
            page = self.client.json("GET", f"{self.base}/files/list", query={"path": path, "recursive": recursive, "after": after, "limit": 1000})
            found += [info_of(e) for e in page["entries"]]
            after = page["next"]
            if not after:
                return found

    def remove(self, path: str, recursive: bool = False) -> None:
        if not recursive and self.stat(path).type == "directory":
            raise IsDirectoryError(f"{path} is a directory", code="invalid", reason="is_a_directory", remediation="Give recursive=True.")
        self.client.json("DELETE", f"{self.base}/files", query={"path": path, "recursive": recursive}, key=random_id("rm_"))

    def mkdir(self, path: str, parents: bool = False) -> None:
        self.client.json("POST", f"{self.base}/files/mkdir", body={"path": path, "parents": parents}, key=random_id("mkdir_"))

    def move(self, source: str, target: str) -> None:
        self.client.json("POST", f"{self.base}/files/move", body={"from": source, "to": target, "overwrite": True}, key=random_id("mv_"))

    def download_tree(self, path: str, file: BinaryIO) -> None:
        """A tar of everything below `path`, into a file object."""
        with self.client.send("GET", f"{self.base}/files/tar", query={"path": path}) as answer:
            while True:
                piece = answer.read(BLOCK)
                if not piece:
                    return
                file.write(piece)

    def upload_tree(self, path: str, data: Union[bytes, BinaryIO]) -> int:
        """Unpack a tar (bytes) below `path`; how many entries it had."""
        return self.client.json("PUT", f"{self.base}/files/tar", query={"path": path}, data=data, key=random_id("tar_"),
                                headers={"Content-Type": "application/x-tar"})["entries"]

    def watch(self, path: str, recursive: bool = True) -> Generator[wire.FileChange, None, None]:
        """Changes below `path` as they happen: dicts with type, path and to."""
        with self.client.send("GET", f"{self.base}/files/watch", query={"path": path, "recursive": recursive},
                              headers={"Accept": "text/event-stream"}) as answer:
            for name, _, data in answer.events():
                if name == "change":
                    yield data
                elif name == "overflow":
                    raise BerthError(f"more changed below {path} than could be told", code="busy", remediation="List it again.")
