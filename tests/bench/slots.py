"""Network slots, with 10 and with 1,000 of them alive: what does not grow with their number has a ratio of 1."""
import json
import pathlib
import subprocess
import tempfile


def slots(b):
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run([str(pathlib.Path(b.server.build).resolve() / "tests/slots"), empty],
                              capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    b.note("slot_claim_p99_of_1000", got["claim_many"], "us", got["claim_few"], "<= 1.5")
    b.note("slot_update_p99_of_1000", got["update_many"], "us", got["update_few"], "<= 1.5")
