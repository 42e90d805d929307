"""Git in a sandbox: the repository whole or not at all, a reason for each failure, and no trace of a token."""
import pathlib
import time

import images
from client import ApiError
from marks import limit, only
from server import wait_until
from test_files import listing, mkdir, put, read, reason, stat

TOKEN = "t0ken-that-must-never-show-7f3a"
# A git server with a password, in the sandbox itself: sandboxes have no network yet.
SERVER = r'''
import base64, http.server, os, subprocess, sys
WANT = "Basic " + base64.b64encode(("x-access-token:" + sys.stdin.readline().strip()).encode()).decode()
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.startswith("/slow"):
            import time; time.sleep(60)
        if not self.path.startswith("/open") and self.headers.get("Authorization") != WANT:
            self.send_response(401); self.send_header("WWW-Authenticate", 'Basic realm="x"'); self.send_header("Content-Length", "0")
            self.end_headers(); return
        path, _, query = self.path.partition("?")
        n = int(self.headers.get("Content-Length") or 0)
        env = dict(os.environ, GIT_PROJECT_ROOT="/srv", GIT_HTTP_EXPORT_ALL="1", PATH_INFO=path, QUERY_STRING=query,
                   REQUEST_METHOD=self.command, CONTENT_TYPE=self.headers.get("Content-Type") or "", REMOTE_USER="x",
                   HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding") or "", CONTENT_LENGTH=str(n))
        out = subprocess.run(["git", "http-backend"], input=self.rfile.read(n), env=env, stdout=subprocess.PIPE).stdout
        head, _, body = out.partition(b"\r\n\r\n")
        fields = dict(l.split(b": ", 1) for l in head.split(b"\r\n") if b": " in l)
        self.send_response(int(fields.pop(b"Status", b"200 OK").split()[0]))
        for k, v in fields.items():
            self.send_header(k.decode(), v.decode())
        self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    do_POST = do_GET
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 8000), H)
open("/tmp/up", "w").close()
s.serve_forever()
'''
MAKE = """set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main /tmp/work; cd /tmp/work
echo one > f; git add f; git commit -qm one; git tag v1
echo two > f; git commit -qam two
git checkout -q -b side; echo side > f; git commit -qam side; git checkout -q main
mkdir -p /srv/open; git clone -q --bare . /srv/repo.git; cp -r /srv/repo.git /srv/open/repo.git
git -C /srv/repo.git update-ref refs/pull/7/head side
git -C /srv/open/repo.git update-ref refs/pull/7/head side
git rev-parse main v1 side"""


def checkout(b, url, **more):
    return b.api.call("POST", f"/v1/sandboxes/{b.id}/git/checkout", {"url": url, **more})


def test_a_repository_by_branch_tag_commit_and_ref(s):
    with s.box(image=images.have(s, "git", "python3"), memory_mb=1024) as b:
        main, v1, side = b.sh(MAKE).split()
        url = "file:///srv/repo.git"
        assert checkout(b, url) == {"path": "/workspace/repo", "commit": main, "branch": "main"}
        assert read(b, "/workspace/repo/f") == b"two\n"
        assert b.sh("git -C /workspace/repo remote get-url origin; git -C /workspace/repo status --short") == url + "\n"
        assert checkout(b, url, branch="side", path="/root/side") == {"path": "/root/side", "commit": side, "branch": "side"}
        assert checkout(b, url, ref="v1", path="/root/tag") == {"path": "/root/tag", "commit": v1, "branch": None}
        assert checkout(b, url, ref=v1, path="/root/commit")["commit"] == v1
        assert checkout(b, url, ref="refs/pull/7/head", path="/root/pull")["commit"] == side
        assert checkout(b, url, depth=1, path="/root/shallow/deep/")["path"] == "/root/shallow/deep"
        assert b.sh("git -C /root/shallow/deep rev-list --count HEAD") == "1\n"
        mkdir(b, "/root/empty")
        assert checkout(b, url, path="/root/empty")["commit"] == main
        b.sh("git init -q --bare /srv/none.git")
        assert checkout(b, "file:///srv/none.git")["commit"] is None
        # Failures, each with its reason, and nothing left of them.
        put(b, "/root/full/x", b"", parents=1)
        for want, args in [((409, "target_exists"), {"path": "/root/full"}), ((409, "target_exists"), {"path": "/root/full/x"}),
                           ((404, "no_such_ref"), {"branch": "nope", "path": "/root/n"}),
                           ((404, "no_such_ref"), {"ref": "refs/pull/9/head", "path": "/root/n"}),
                           ((404, "no_such_repository"), {"url": "file:///srv/nope.git", "path": "/root/n"}),
                           ((400, None), {"url": "ext::sh -c id"}), ((400, None), {"branch": "-x"}),
                           ((502, "network"), {"url": "http://127.0.0.1:1/x", "path": "/root/n"})]:
            assert reason(checkout, b, args.pop("url", url), **args) == want, (want, args)
        assert "n" not in [e["name"] for e in listing(b, "/root")]
        assert not [e for e in [*listing(b, "/root", recursive=1), *listing(b, "/workspace")] if ".berth-git" in e["path"]]


@only("crun")  # two hundred runs of git: the script is the same in gVisor, where they take half a minute
def test_gt4_a_branch_is_found_tracked_or_made(s):
    """The four cases of a session's branch, and those of an upstream one, which must be there remotely."""
    with s.box(image=images.have(s, "git", "bash"), memory_mb=1024) as b:
        main, _, side = b.sh(MAKE).split()
        url, w = "file:///srv/repo.git", "/workspace/repo"

        def git(*words):
            return b.sh("git -C /workspace/repo " + " ".join(words)).strip()

        def upstream_of():
            return b.sh("git -C /workspace/repo rev-parse --abbrev-ref '@{u}' 2>/dev/null || echo none").strip()

        def push(branch):
            b.sh(f"cd /tmp/work; git checkout -q {branch}; echo more >> f; git -c user.name=a -c user.email=a@b commit -qam more; "
                 f"git push -q {url} {branch}")
            return b.sh("git -C /tmp/work rev-parse HEAD").strip()

        # Neither, in a new clone: it is made, from the branch that was asked for, and tracks nothing.
        made = checkout(b, url, branch="side", session_branch="s/new")
        assert (made, upstream_of()) == ({"path": w, "commit": side, "branch": "s/new"}, "none"), made
        # Without reuse a clone that is there is in the way, and so is one of another repository.
        assert reason(checkout, b, url, session_branch="s/new") == (409, "target_exists")
        assert reason(checkout, b, "file:///srv/open/repo.git", path=w, reuse=True) == (409, "target_exists")
        # Local only: what was committed there stays.
        b.sh(f"cd {w}; echo mine > mine; git add mine; git -c user.name=a -c user.email=a@b commit -qm mine")
        mine = git("rev-parse HEAD")
        assert checkout(b, url, session_branch="s/new", reuse=True) == {"path": w, "commit": mine, "branch": "s/new"}
        # Neither, in a clone that is there: from the remote's own HEAD as it is now.
        main = push("main")
        assert checkout(b, url, session_branch="s/two", reuse=True) == {"path": w, "commit": main, "branch": "s/two"}
        # Remote only: it is tracked.
        b.sh("git -C /tmp/work branch s/far side")
        far = push("s/far")
        assert checkout(b, url, session_branch="s/far", reuse=True)["commit"] == far
        assert upstream_of() == "origin/s/far"
        # Local and remote: what is new there is taken, and if it cannot be, what is here stays.
        far = push("s/far")
        assert checkout(b, url, session_branch="s/far", reuse=True)["commit"] == far
        b.sh(f"cd {w}; echo ours > ours; git add ours; git -c user.name=a -c user.email=a@b commit -qm ours")
        ours = git("rev-parse HEAD")
        push("s/far")
        assert checkout(b, url, session_branch="s/far", reuse=True)["commit"] == ours
        # An upstream branch: remote only, local and remote, local only, neither.
        side = push("side")
        assert (checkout(b, url, branch="side", reuse=True)["commit"], upstream_of()) == (side, "origin/side")
        side = push("side")
        assert checkout(b, url, branch="side", reuse=True) == {"path": w, "commit": side, "branch": "side"}
        for name in ("s/new", "s/nowhere"):
            assert reason(checkout, b, url, branch=name, reuse=True) == (404, "no_such_ref"), name
        assert reason(checkout, b, url, branch="s/nowhere", session_branch="s/three", reuse=True) == (404, "no_such_ref")
        assert git("branch --show-current") == "side"
        # A ref is detached, or what the session's branch is made from; a shallow clone tracks, too.
        pull = b.sh("git -C /srv/repo.git rev-parse refs/pull/7/head").strip()
        assert checkout(b, url, ref="refs/pull/7/head", reuse=True) == {"path": w, "commit": pull, "branch": None}
        assert checkout(b, url, ref="refs/pull/7/head", session_branch="s/pull", reuse=True)["branch"] == "s/pull"
        far = b.sh("git -C /srv/repo.git rev-parse s/far").strip()
        shallow = checkout(b, url, session_branch="s/far", depth=1, path="/root/shallow")
        assert (shallow["commit"], shallow["branch"]) == (far, "s/far"), shallow
        assert b.sh("git -C /root/shallow rev-parse --abbrev-ref '@{u}'") == "origin/s/far\n"


def is_said(s, text):
    """Whether it is in any log, journal, table or configuration this server has written."""
    def holds(path):
        try:
            return path.is_file() and path.stat().st_size < 50_000_000 and text in path.read_bytes()
        except FileNotFoundError:  # PostgreSQL removes some at any time
            return False
    return any(holds(path) for path in pathlib.Path(s.dir).rglob("*") if "/pool" not in str(path))


@limit(120)
def test_a_token_is_used_and_leaves_no_trace(s):
    with s.box(image=images.have(s, "git", "python3"), memory_mb=1024) as b:
        main, _, side = b.sh(MAKE).split()
        put(b, "/root/server.py", SERVER.encode())
        b.api.call("POST", f"/v1/sandboxes/{b.id}/exec",
                   {"argv": ["python3", "/root/server.py"], "stdin": TOKEN + "\n", "background": True})
        wait_until(lambda: b.exec("test -e /tmp/up").exit_code == 0, 30, "the git server up")
        url = "http://127.0.0.1:8000/repo.git"
        watcher = b.api.call("POST", f"/v1/sandboxes/{b.id}/exec", {"background": True, "command": (
            "while [ ! -e /tmp/stop ]; do for p in /proc/[0-9]*; do case $(readlink $p/exe) in *python3*) ;; *) "
            "cat $p/cmdline $p/environ >> /tmp/seen 2>/dev/null;; esac; done; sleep 0.05; done")})
        assert checkout(b, url, token=TOKEN)["commit"] == main
        assert checkout(b, f"http://x-access-token:{TOKEN}@127.0.0.1:8000/repo.git", ref="refs/pull/7/head", path="/root/pull")["commit"] == side
        assert checkout(b, url, username="x-access-token", password=TOKEN, branch="side", path="/root/side")["commit"] == side
        assert reason(checkout, b, url, token="wrong", path="/root/n") == (403, "auth_failed")
        assert reason(checkout, b, url, path="/root/n") == (403, "auth_failed")
        assert reason(checkout, b, "http://127.0.0.1:8000/open/none.git", path="/root/n") == (404, "no_such_repository")
        assert checkout(b, "http://127.0.0.1:8000/open/repo.git", path="/root/open")["commit"] == main
        b.sh(": > /tmp/stop")
        assert int(b.sh("wc -c < /tmp/seen")) > 1000, watcher
        assert b.sh("git -C /workspace/repo remote get-url origin; git -C /root/pull remote get-url origin") == (url + "\n") * 2
        assert b.exec("read t; grep -rl \"$t\" /root /workspace /tmp /etc /srv; true", stdin=TOKEN + "\n").out == b""
        time.sleep(0.5)
        assert is_said(s, b.id.encode()) and not is_said(s, TOKEN.encode())
        start = time.monotonic()
        try:
            checkout(b, "http://127.0.0.1:8000/slow/repo.git", path="/root/slow", timeout_ms=1500)
        except ApiError as e:
            assert (e.status, e.body["reason"]) == (504, "timed_out"), e.body
            assert "the checkout took longer than 1500 ms" in e.body["message"], e.body  # the step and its limit
        else:
            raise AssertionError("checked out what never came")
        assert 1.5 <= time.monotonic() - start < 30
        assert not [e for e in listing(b, "/root") if "slow" in e["name"] or ".berth-git" in e["name"]]


def test_an_image_without_git_says_so(s):
    with s.box() as b:
        assert reason(checkout, b, "https://example.invalid/r.git") == (501, "no_git")
        assert reason(stat, b, "/workspace")[1] == "no_such_file"
