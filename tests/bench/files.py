"""Files through the API: small ones by their time, a large one beside cp in the same sandbox."""
import os
import subprocess
import time

SMALL = 4096
LARGE_MIB = 1024
ROUNDS = 200


def median(values):
    return sorted(values)[len(values) // 2]


def raw(client, method, path, body=b""):
    """One exchange on the client's connection; the body comes back as bytes."""
    client.sock.sendall(f"{method} {path} HTTP/1.1\r\n{client.head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    got = b""
    while b"\r\n\r\n" not in got:
        got += client.sock.recv(65536)
    head, _, rest = got.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(rest) < length:
        rest += client.sock.recv(65536)
    return int(head.split()[1]), rest


def files_small(b):
    path, data = f"/v1/sandboxes/{b.box}/files?path=/root/small", os.urandom(SMALL)
    wrote, read = [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        status, _ = raw(b.client, "PUT", path, data)
        wrote.append((time.perf_counter() - start) * 1000)
        start = time.perf_counter()
        got = raw(b.client, "GET", path)
        read.append((time.perf_counter() - start) * 1000)
        assert status in (200, 201) and got == (200, data), (status, got[0])
    b.note("file_write_4k_p50", median(wrote), "ms")
    b.note("file_read_4k_p50", median(read), "ms")


def curl(b, box, *args):
    url = f"http://127.0.0.1:{b.server.port}/v1/sandboxes/{box}/files?path=/root/large"
    start = time.perf_counter()
    subprocess.run(["curl", "-sSf", "-H", f"Authorization: Bearer {b.server.key}", "-H", "Expect:", *args, url],
                   check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def files_large(b):
    """What cp does is read and write: ours is compared with it each way."""
    source, box = b.server.base + "/large", b.client.create(disk_mb=4096)
    with open(source, "wb") as f:
        for _ in range(LARGE_MIB):
            f.write(os.urandom(1 << 20))
    wrote, read, copied = [], [], []
    for _ in range(3):
        wrote.append(curl(b, box, "-T", source))
        read.append(curl(b, box, "-o", "/dev/null"))
        start = time.perf_counter()
        b.client.run(box, "cp", "/root/large", "/root/copy")
        copied.append((time.perf_counter() - start) * 1000)
        b.client.run(box, "rm", "/root/copy")
    os.unlink(source)
    b.client.delete(box)
    speed = lambda ms: LARGE_MIB * 1000 / median(ms)
    b.note("file_write_1gib", speed(wrote), "MiB/s", speed(copied), ">= 0.5")
    b.note("file_read_1gib", speed(read), "MiB/s", speed(copied), ">= 0.5")
