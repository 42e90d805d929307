"""Lifecycle writes: through the store, with version check and log, beside the same without us."""
import json
import os
import pathlib
import subprocess


def transitions(b):
    conf = next(pathlib.Path(b.server.base).rglob("berthd.conf"))
    database = next(x.split(" = ", 1)[1] for x in conf.read_text().splitlines() if x.startswith("database = "))
    owner = os.stat(database.split("host=")[1].split()[0]).st_uid
    done = subprocess.run([str(pathlib.Path(b.server.build).resolve() / "tests/transitions"), database],
                          capture_output=True, text=True, user=owner, cwd="/")
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    b.note("transitions", got["value"], "per s", got["same"], ">= 0.5")
    b.note("transitions_beside_lease_write", got["value"], "per s", got["lease"])
