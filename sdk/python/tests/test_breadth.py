"""Trees, changes, terminals, images, and going on when a sandbox failed."""
import io
import tarfile
import threading
import unittest

import berth
from berth.recovery import recovery_pause
from world import WithBox, client, kill_all, name


def tar_of(**files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


class Breadth(WithBox):
    def test_a_tree_goes_in_and_out_as_a_tar(self):
        self.assertEqual(self.box.files.upload_tree("/workspace/tree", tar_of(a=b"a\n", b=b"b\n")), 2)
        out = io.BytesIO()
        self.box.files.download_tree("/workspace/tree", out)
        with tarfile.open(fileobj=io.BytesIO(out.getvalue())) as tar:
            self.assertEqual({m.name.removeprefix("./"): tar.extractfile(m).read() for m in tar if m.isfile()}, {"a": b"a\n", "b": b"b\n"})

    def test_changes_are_told_as_they_happen(self):
        self.box.mkdir("/workspace/watched", recursive=True)
        stop = threading.Event()

        def write():  # again and again: when it is watched is not told
            n = 0
            while not stop.wait(0.05):
                n += 1
                self.box.write_file(f"/workspace/watched/new{n}", "x")
        threading.Thread(target=write, daemon=True).start()
        changes = self.box.files.watch("/workspace/watched")
        try:
            self.assertTrue(next(changes)["path"].startswith("/workspace/watched/"))
        finally:
            stop.set()
            changes.close()

    def test_terminals(self):
        terminals = self.box.terminals
        t = terminals.create(["sh", "-c", "stty size; read line; stty size; exit 4"], cols=100, rows=30, ident="term-1")
        self.assertEqual((t.id, t.record["state"], [x.id for x in terminals.list()]), ("term-1", "running", ["term-1"]))
        self.assertEqual(t.resize(132, 43).record["cols"], 132)
        shown = b""
        with t.attach() as seen:
            for kind, value in seen:
                if kind == "attached":
                    seen.resize(90, 20)
                    seen.write("\n")
                elif kind == "output":
                    shown += value
                elif kind == "exit":
                    self.assertEqual(value["exit_code"], 4)
        self.assertIn(b"20 90", shown)
        self.assertEqual(b"".join(v for n, v in t.output() if n == "stdout"), shown)
        self.assertEqual(terminals.get("term-1").end().record["state"], "ended")
        with self.assertRaises(berth.NotFoundError):
            t.attach()

    def test_images(self):
        images, word, told = berth.Images(client), name() + "-image", []
        made = images.import_(word, io.BytesIO(tar_of(x=b"x")), on_progress=told.append)
        self.assertEqual((made["name"], made["source"], bool(told)), (word, "import", True))
        self.assertIn(word, [i["name"] for i in images.list()])
        images.remove(word)
        self.assertNotIn(word, [i["name"] for i in images.list()])
        for call in (lambda: images.import_(word, b"\1\2\3"), lambda: images.pull("127.0.0.1:1/nothing:1")):
            self.assertRaises(berth.BerthError, call)


class Failing(berth.Berth):
    """The real server, whose first creates are answered in its place."""

    left = 0

    def _once(self, method, path, *rest):
        if (method, path) == ("POST", "/v1/sandboxes") and self.left > 0:
            self.left -= 1
            raise berth.InternalError("no sandbox", code="internal", status=500)
        return super()._once(method, path, *rest)


class Recovery(unittest.TestCase):
    def test_pr7_creates_that_fail(self):
        through, told = Failing(image=client.image), []
        through.left = 2
        box = berth.get_sandbox(through, name())
        r = berth.with_sandbox_recovery(box, lambda b, _: b.exec("echo through"), on_recovered=lambda what: told.append(what["attempt"]))
        self.assertEqual((r.stdout, told), ("through\n", [1, 2]))
        box.destroy()
        through.left = 100
        with self.assertRaises(berth.RecoveryError) as caught:
            berth.with_sandbox_recovery(berth.get_sandbox(through, name()), lambda b, _: b.exec("true"))
        self.assertEqual([c.message for c in caught.exception.causes], ["no sandbox"] * 4)
        self.assertEqual([recovery_pause(n, lambda: 1) for n in range(3)], [0.1, 0.2, 0.4])
        self.assertEqual([recovery_pause(n, lambda: 0) for n in range(3)], [0.05, 0.1, 0.2])

    def test_pr7_one_that_failed_is_woken_and_one_that_is_gone_made_anew(self):
        told, box = [], berth.get_sandbox(client, name())

        def cat():
            return berth.with_sandbox_recovery(box, lambda b, _: b.exec("cat /root/f || true"),
                                               on_recovered=lambda what: told.append((what["how"], what["lost"]))).stdout
        box.exec("echo kept > /root/f")
        first = box.info()["id"]
        kill_all(first)
        self.assertEqual((cat(), told[-1], box.info()["id"]), ("kept\n", ("woken", "processes"), first))
        berth.get_sandbox(client, first).destroy()
        self.assertEqual((cat(), told[-1]), ("", ("new", "everything")))
        box.destroy()

    def test_pr7_behind_the_first_progress_nothing_is_repeated(self):
        runs, box = [], berth.get_sandbox(client, name())

        def work(b, progress):
            runs.append(1)
            b.exec("true")
            progress()
            kill_all(b.info()["id"])
            b.exec("sleep 1000")
        with self.assertRaises(berth.BerthError) as caught:
            berth.with_sandbox_recovery(box, work)
        self.assertNotIsInstance(caught.exception, berth.RecoveryError)
        self.assertEqual(len(runs), 1)
        box.destroy()


if __name__ == "__main__":
    unittest.main()
