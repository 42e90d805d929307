"""Random bytes on both descriptors come out as they went in: through JSON, events, the journal and the class."""
import base64
import unittest

from world import CASES, WithBox, client, random_bytes, rng

COMMAND = "cat /tmp/o & cat /tmp/e >&2; wait"


def data_of(o, stream):
    coded = o.get(stream + "_base64")
    return base64.b64decode(coded) if coded is not None else (o.get(stream) or "").encode()


class Bytes(WithBox):
    def one(self, out, err):
        self.box.write_file("/tmp/o", out)
        self.box.write_file("/tmp/e", err)
        r = self.box.exec(COMMAND)
        self.assertEqual((r.kind, r.exit_code), ("exited", 0))
        self.assertTrue(r.stdout_bytes == out and r.stderr_bytes == err, "through the class")
        self.assertTrue(self.box.get_process(r.id).refresh().record["stdout_bytes"] == len(out))
        from berth.process import logs
        self.assertTrue(logs(client, self.box._base(), r.id) == (out, err), "of the journal")
        if len(out) + len(err) < 1 << 20:
            j = client.json("POST", self.box._base() + "/exec", body={"command": COMMAND})
            self.assertTrue((data_of(j, "stdout"), data_of(j, "stderr")) == (out, err), "through JSON")

    def test_EX_8_random_cases(self):
        random = rng()
        for _ in range(CASES):
            self.one(random_bytes(random, 100_000 if random.random() < 0.25 else 300), random_bytes(random, 300))

    def test_EX_8_a_line_of_10_mb(self):
        self.one(b"x" * 10_000_000, b"\0" * 10_000_000)


if __name__ == "__main__":
    unittest.main()
