"""What one owner can take of a server that all share: connections, and room for output."""
import pathlib
import socket
import time

from client import Api
from marks import limit
from server import wait_until
from test_admission import settings

RUNTIMES = ("crun",)
FILES = 1500  # descriptors of a process: few connections are many then
DEV_PREFIX = ["prlimit", f"--nofile={FILES}:{FILES}"]
REFUSALS = 40  # in a row: both loops have no more for this owner
MIB = 1 << 20


def stream(s, key):
    """A stream that never ends, and how its answer begins."""
    sock = socket.create_connection(("127.0.0.1", s.port), timeout=60)
    sock.sendall(f"GET /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
    said = b""
    while b"\r\n\r\n" not in said or (b" 503 " in said and not said.endswith(b"}\n")):
        more = sock.recv(65536)
        if not more:
            break
        said += more
    return sock, said.decode()


@limit(120)
def test_one_owners_connections_leave_others_theirs(s):
    mallory, other = (s.api.call("POST", "/v1/keys", {"name": "k", "role": "user", "owner": who}) for who in ("mallory", "other"))
    held, refused = [], []
    try:
        while len(refused) < REFUSALS and len(held) < FILES:
            sock, said = stream(s, mallory["key"])
            if said.startswith("HTTP/1.1 200"):
                held.append(sock)
                refused = []
            else:
                refused.append(said)
                sock.close()
        assert len(held) >= 64, len(held)
        assert all("owner has too many connections" in r and r.startswith("HTTP/1.1 503") for r in refused), refused[-1]
        asked = [Api(s.port, other["key"]).request("GET", "/v1/sandboxes")[0] for _ in range(REFUSALS)]
        assert asked == [200] * REFUSALS, asked
        assert s.api.get("/v1/health")["status"] == "ok"
        print(f"      {len(held)} streams of one owner, then 503; {len(asked)} requests of another: all 200", flush=True)
    finally:
        for sock in held:
            sock.close()
    wait_until(lambda: Api(s.port, mallory["key"]).request("GET", "/v1/sandboxes")[0] == 200, 60, "its own again")
    for key in (mallory, other):
        s.api.call("DELETE", "/v1/keys/" + key["id"])


def journal_bytes(s):
    found = 0
    for path in pathlib.Path(s.dir, "state/journal").rglob("*"):
        try:
            found += path.stat().st_blocks * 512 if path.is_file() else 0
        except FileNotFoundError:
            pass  # it was removed meanwhile
    return found


@limit(150)
def test_output_that_grows_fast_makes_room_at_once(s):
    """Not only once a minute: so much would come in one."""
    settings(s, journal_host_bytes=64 * MIB)
    began = time.monotonic()
    try:
        with s.box(open_files=1024) as b:
            most = 0
            for _ in range(8):
                assert b.exec("head -c 33554432 /dev/zero >&2").kind == "exited"
                most = max(most, journal_bytes(s))
            wait_until(lambda: journal_bytes(s) <= 64 * MIB, 30, "room was made")
            print(f"      256 MiB were written, at most {most // MIB} MiB kept, 64 MiB after "
                  f"{time.monotonic() - began:.0f} s", flush=True)
    finally:
        settings(s, journal_host_bytes=None)
