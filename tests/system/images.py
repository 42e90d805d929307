"""Images with real programs in them, put together from the host's own by what ldd says they need.

    image = images.have(s, "bash", "git")   # once a server; then s.box(image=image)

Known: bash, curl, git (with http), python3 (the system's, with its library), node.
"""
import io
import os
import pathlib
import re
import subprocess
import tarfile

from marks import Skip
from server import build_rootfs

PYTHON = "/usr/bin/python3"
# Of the library, what no test of ours needs.
PYTHON_LEFT_OUT = {"test", "__pycache__", "ensurepip", "lib2to3", "idlelib", "tkinter", "turtledemo", "pydoc_data",
                   "distutils", "dist-packages"}
NODE_BUILTINS = ("acorn", "acorn-walk", "cjs-module-lexer", "undici")
GIT_CORE = pathlib.Path("/usr/lib/git-core")
GIT_PROGRAMS = {"git-remote-http", "git-http-backend"}


def needs(path):
    """The shared objects a program loads, by the paths it will look for them under."""
    said = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(0x", said)


class Tree:
    """What goes into an image: each path once, its parents before it."""

    def __init__(self, tar):
        self.tar = tar
        self.names = set(tar.getnames())

    def entry(self, path, kind, mode=0o755, **more):
        name = str(path).lstrip("/")
        if not name or name in self.names:
            return None
        self.parents(name)
        info = tarfile.TarInfo(name)
        info.type, info.mode = kind, mode
        for k, v in more.items():
            setattr(info, k, v)
        self.names.add(name)
        return info

    def parents(self, name):
        parent = os.path.dirname(name)
        if parent and parent not in self.names:
            self.tar.addfile(self.entry(parent, tarfile.DIRTYPE))

    def link(self, path, target):
        if info := self.entry(path, tarfile.SYMTYPE, 0o777, linkname=target):
            self.tar.addfile(info)

    def file(self, path, source=None, mode=None):
        source = os.path.realpath(source or path)
        if info := self.entry(path, tarfile.REGTYPE, mode or os.stat(source).st_mode & 0o777,
                              size=os.path.getsize(source)):
            with open(source, "rb") as f:
                self.tar.addfile(info, f)

    def text(self, path, text, mode=0o644):
        data = text.encode()
        if info := self.entry(path, tarfile.REGTYPE, mode, size=len(data)):
            self.tar.addfile(info, io.BytesIO(data))

    def program(self, path):
        self.file(path, mode=0o755)
        for lib in needs(path):
            self.file(lib, mode=0o755)


def add_bash(tree):
    tree.program("/usr/bin/bash")
    tree.link("bin/bash", "/usr/bin/bash")


def add_git(tree):
    tree.program("/usr/bin/git")
    for path in sorted(GIT_CORE.iterdir()):
        if path.name in GIT_PROGRAMS:
            tree.program(str(path))
        elif path.name == "git-remote-https":
            tree.link(path, "git-remote-http")
        elif path.name == "git" or os.path.realpath(path) == "/usr/bin/git" or os.path.samefile(path, GIT_CORE / "git"):
            tree.link(path, "/usr/bin/git")
        elif path.is_file() and path.stat().st_size < 100_000:
            tree.file(path)
    for path in pathlib.Path("/usr/share/git-core/templates").rglob("*"):
        if path.is_file():
            tree.file(path)


def add_python3(tree):
    tree.program(PYTHON)
    library = pathlib.Path(subprocess.check_output(
        [PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"], text=True).strip())
    for path in sorted(library.rglob("*")):
        inside = path.relative_to(library)
        if PYTHON_LEFT_OUT & set(inside.parts) or inside.parts[0].startswith("config-") or not path.is_file():
            continue
        tree.file(path)
        if path.suffix == ".so":
            for lib in needs(path):
                tree.file(lib, mode=0o755)


def add_node(tree):
    tree.program("/usr/bin/node")
    for name in NODE_BUILTINS:  # Debian's keeps some of its own library outside of the program
        for path in sorted(pathlib.Path("/usr/share/nodejs", name).rglob("*.js")):
            tree.file(path)


def add_curl(tree):
    tree.program("/usr/bin/curl")
    tree.text("etc/ssl/certs/ca-certificates.crt", "")
    tree.link("usr/lib/ssl/certs", "/etc/ssl/certs")


ADD = {"bash": add_bash, "curl": add_curl, "git": add_git, "python3": add_python3, "node": add_node}


def build(path, *programs):
    """A tar of a root with busybox and these programs."""
    build_rootfs(path)
    with tarfile.open(path, "a") as tar:
        tree = Tree(tar)
        tree.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
        tree.text("etc/group", "root:x:0:\n")
        tree.text("etc/hosts", "127.0.0.1 localhost\n")
        for program in programs:
            ADD[program](tree)


def have(s, *programs):
    """The name of an image with these programs on this server; made and imported once."""
    for program in programs:
        if not os.path.exists("/usr/bin/" + program):
            raise Skip(f"this host has no /usr/bin/{program} to copy")
    name = "with-" + "-".join(sorted(programs))
    if name not in s.__dict__.setdefault("images_had", set()):
        tar = pathlib.Path(s.work, name + ".tar")
        if not tar.exists():
            build(tar, *sorted(programs))
        code, _, err = s.berth("image", "import", name, str(tar), timeout=300)
        assert code == 0, err
        s.images_had.add(name)
    return name
