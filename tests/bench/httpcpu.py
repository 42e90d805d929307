"""CPU per small request: our engine and nginx, the same 180 bytes, taken in turns."""
import os
import shutil
import subprocess
import tempfile
import time

from server import free_port

SECONDS = 2
ROUNDS = 3
BODY = "x" * 179 + "\\n"
CONF = """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off; keepalive_requests 100000000;
    client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir};
    uwsgi_temp_path {dir}; scgi_temp_path {dir};
    server {{ listen 127.0.0.1:{port};
        location / {{ default_type application/json; return 200 "{body}"; }} }}
}}
"""


def cpu_ns(pid):
    with open(f"/proc/{pid}/schedstat") as f:
        return int(f.read().split()[0])


def per_request(pid, port):
    """Microseconds of the server's own time for one request; server and client on a CPU each."""
    before = cpu_ns(pid)
    out = subprocess.run(["taskset", "-c", "1", "wrk", "-t1", "-c64", f"-d{SECONDS}s",
                          f"http://127.0.0.1:{port}/json"], check=True, capture_output=True,
                         text=True).stdout
    used = cpu_ns(pid) - before
    if "Non-2xx" in out or "Socket errors" in out:
        raise RuntimeError(out)
    return used / 1000 / int(out.split(" requests in")[0].split()[-1])


def nginx(directory, port):
    with open(directory + "/nginx.conf", "w") as f:
        f.write(CONF.format(dir=directory, port=port, body=BODY))
    master = subprocess.Popen(["taskset", "-c", "0", "nginx", "-c", directory + "/nginx.conf"],
                              stderr=subprocess.DEVNULL)
    for _ in range(100):
        with open(f"/proc/{master.pid}/task/{master.pid}/children") as f:
            workers = f.read().split()
        if workers:
            return master, int(workers[0])
        time.sleep(0.05)
    raise RuntimeError("nginx does not start")


def http_small_cpu(b):
    directory, port = tempfile.mkdtemp(prefix="berth-bench-nginx-"), free_port()
    hello = subprocess.Popen(["taskset", "-c", "0", b.server.build + "/tests/http-hello"],
                             stdout=subprocess.PIPE, text=True)
    master = None
    try:
        master, worker = nginx(directory, port)
        our_port = int(hello.stdout.readline())
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(per_request(hello.pid, our_port))
            theirs.append(per_request(worker, port))
        b.note("http_small_cpu", min(ours), "us/request", min(theirs), "<= 1.2")
    finally:
        for process in filter(None, (hello, master)):
            process.terminate()
            process.wait()
        shutil.rmtree(directory)
