"""Images: from a real registry, from a tar, and from a tar that means harm."""
import gzip
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import threading
import urllib.request

from marks import limit
from server import free_port, wait_until

RUNTIMES = ("crun",)
PORT = free_port()
DEV_OPTIONS = ["--insecure-registry", f"localhost:{PORT}"]


class Registry:
    """Debian's docker-registry on loopback, for the length of a `with`."""

    def __init__(self, work):
        self.dir = pathlib.Path(work, "registry")
        self.dir.mkdir()
        self.config = self.dir / "config.yml"
        self.config.write_text(json.dumps({"version": 0.1, "log": {"level": "error"},
                                           "storage": {"filesystem": {"rootdirectory": str(self.dir / "data")}},
                                           "http": {"addr": f"127.0.0.1:{PORT}"}}))

    def __enter__(self):
        self.log = open(self.dir / "log", "wb")
        self.process = subprocess.Popen(["docker-registry", "serve", str(self.config)], stdout=self.log, stderr=self.log)
        wait_until(self.up, 20, "the registry up")
        return self

    def up(self):
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{PORT}/v2/", timeout=2).status == 200
        except OSError:
            return False

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.dir)

    def blobs(self):
        """How often a blob was asked for is not in its log at this level; what is stored is."""
        return list(self.dir.glob("data/**/data"))


def sh(*args, **more):
    r = subprocess.run(list(map(str, args)), capture_output=True, text=True, timeout=60, **more)
    assert r.returncode == 0, (args, r.stderr)
    return r.stdout


def push_image(s, registry):
    """Two layers, the second with a whiteout; an environment and a directory."""
    layout, bundle = registry.dir / "img", registry.dir / "bundle"
    sh("umoci", "init", "--layout", layout)
    sh("umoci", "new", "--image", f"{layout}:base")
    sh("umoci", "unpack", "--image", f"{layout}:base", bundle)
    with tarfile.open(s.rootfs) as tar:
        tar.extractall(bundle / "rootfs")
    (bundle / "rootfs/etc/removed-later").write_text("first layer")
    (bundle / "rootfs/etc/changed-later").write_text("first layer")
    sh("umoci", "repack", "--image", f"{layout}:base", bundle)
    shutil.rmtree(bundle)
    sh("umoci", "unpack", "--image", f"{layout}:base", bundle)
    (bundle / "rootfs/etc/removed-later").unlink()
    (bundle / "rootfs/etc/changed-later").write_text("second layer")
    sh("umoci", "repack", "--image", f"{layout}:base", bundle)
    sh("umoci", "config", "--image", f"{layout}:base", "--config.env", "FROM_IMAGE=yes it is", "--config.workingdir", "/home")
    sh("skopeo", "copy", "--dest-tls-verify=false", f"oci:{layout}:base", f"docker://localhost:{PORT}/base:1")


@limit(150)
def test_an_image_from_a_registry_runs_with_its_own_words(s):
    with Registry(s.work) as registry:
        push_image(s, registry)
        ref = f"localhost:{PORT}/base:1"
        code, out, err = s.berth("image", "pull", ref, timeout=90)
        assert code == 0, err
        assert ref.encode() in out, out
        code, out, err = s.berth("run", ref, "--", "sh", "-c", "pwd; echo $FROM_IMAGE; cat /etc/changed-later; ls /etc")
        assert code == 0, err
        lines = out.decode().split("\n")
        assert lines[:2] == ["/home", "yes it is"] and lines[2].startswith("second layer"), out
        assert b"removed-later" not in out, out
        assert s.berth("run", ref, "-e", "FROM_IMAGE=no", "-w", "/tmp", "--", "sh", "-c", "pwd; echo $FROM_IMAGE")[1] \
            == b"/tmp\nno\n"

        # Twice at once under two names: one unpack, one digest.
        s.berth("image", "rm", ref)
        assert pool_images(s) == 1, pool_images(s)
        answers = []

        def pull(name):
            answers.append(s.berth("image", "pull", ref, "--name", name, "--json", timeout=90))
        threads = [threading.Thread(target=pull, args=(n,)) for n in ("one", "two")]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert all(a[0] == 0 for a in answers), answers
        digests = {json.loads(a[1])["digest"] for a in answers}
        assert len(digests) == 1, answers
        assert pool_images(s) == 2
        with s.box(image="one") as b:
            code, _, err = s.berth("image", "rm", "one")
            assert code == 125 and b"use" in err, err
            assert b.exec("pwd").out == b"/home\n"
        assert s.berth("image", "rm", "one", "two")[0] == 0
        wait_until(lambda: pool_images(s) == 1, 10, "its subvolume removed")

        code, _, err = s.berth("image", "pull", f"localhost:{PORT}/nosuch:1", timeout=60)
        assert code == 125 and err, err
    code, _, err = s.berth("image", "pull", f"localhost:{PORT}/base:1", timeout=60)
    assert code == 125 and err, err  # nobody listens any more


def test_why_a_pull_failed_is_told_from_the_begin_of_a_word(s):
    for name in ("base", "library/" + "n" * 120):
        code, _, err = s.berth("image", "pull", f"127.0.0.1:9/{name}", timeout=60)
        assert code == 125 and b" cannot be pulled: pinging container registry 127.0.0.1:9: " in err, err
        assert b"connection refused" in err and b"server's host" in err and b"berth ps" not in err, err


def pool_images(s):
    return len([n for n in os.listdir(f"/proc/{s.pid('berth-node')}/root{s.dir}/node/pool/images") if len(n) == 64])


def hostile(path, entries):
    with tarfile.open(path, "w") as tar:
        for e in entries:
            data = e.pop("data", None)
            info = tarfile.TarInfo(e.pop("name"))
            info.mode = 0o755
            for k, v in e.items():
                setattr(info, k, v)
            if data is not None:
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data) if data is not None else None)


def busybox():
    return [{"name": "bin", "type": tarfile.DIRTYPE},
            {"name": "bin/busybox", "data": open("/bin/busybox", "rb").read()},
            {"name": "bin/sh", "type": tarfile.SYMTYPE, "linkname": "busybox"}]


@limit(120)
def test_tars_that_mean_harm_do_none(s):
    victim = pathlib.Path(s.work, "victim")
    victim.mkdir(exist_ok=True)
    (victim / "file").write_text("as it was")
    up = "../" * 12
    cases = {
        "dotdot": [{"name": f"{up}{victim}/new".replace("//", "/"), "data": b"x"}],
        "absolute": [{"name": f"{victim}/new", "data": b"x"}],
        "through-symlink": [{"name": "door", "type": tarfile.SYMTYPE, "linkname": str(victim)},
                            {"name": "door/new", "data": b"x"}],
        "relative-symlink": [{"name": "door", "type": tarfile.SYMTYPE, "linkname": up + str(victim)[1:]},
                             {"name": "door/new", "data": b"x"}, {"name": "door/file", "data": b"changed"}],
        "hardlink-out": [{"name": "mine", "type": tarfile.LNKTYPE, "linkname": str(victim / "file")},
                         {"name": "mine", "data": b"changed"}],
        "hardlink-dotdot": [{"name": "mine", "type": tarfile.LNKTYPE, "linkname": up + str(victim)[1:] + "/file"},
                            {"name": "mine", "data": b"changed"}],
        "dev-symlink": [{"name": "dev", "type": tarfile.SYMTYPE, "linkname": str(victim)}],
        "proc-symlink": [{"name": "proc", "type": tarfile.SYMTYPE, "linkname": str(victim)},
                         {"name": "sys", "type": tarfile.SYMTYPE, "linkname": "/"}],
        "berth-symlink": [{"name": ".berth", "type": tarfile.SYMTYPE, "linkname": str(victim)}],
        "berth-init": [{"name": ".berth", "type": tarfile.DIRTYPE},
                       {"name": ".berth/init", "type": tarfile.SYMTYPE, "linkname": str(victim / "file")}],
        "devices": [{"name": "disk", "type": tarfile.BLKTYPE, "devmajor": 254, "devminor": 0},
                    {"name": "mem", "type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 1},
                    {"name": "pipe", "type": tarfile.FIFOTYPE}],
        "setuid": [{"name": "bin/su", "data": b"#!/bin/sh\nid\n", "mode": 0o6755}],
    }
    for name, entries in cases.items():
        path = s.work / (name + ".tar")
        hostile(path, busybox() + entries)
        code, out, err = s.berth("image", "import", name, str(path))
        path.unlink()
        if code == 0:  # taken, with the harm left out: then it must run, or say why not
            code, out, err = s.berth("run", name, "--", "sh", "-c",
                                     "[ -b /disk ] && busybox cat /disk >/dev/null && echo read the disk; "
                                     "busybox ls -la / /dev /.berth; echo ran")
            assert b"read the disk" not in out, (name, out)
            assert code == 0 and b"ran" in out or code == 125, (name, code, out, err)
        else:
            assert code == 125 and err, (name, code, err)
        assert sorted(os.listdir(victim)) == ["file"] and (victim / "file").read_text() == "as it was", name
    assert s.api.sandboxes() == []
    shutil.rmtree(victim)


def test_what_is_no_tar_is_refused(s):
    for data in (b"", b"hello", os.urandom(5000), b"\x1f\x8b" + os.urandom(100)):
        path = s.work / "bad.tar"
        path.write_bytes(data)
        code, _, err = s.berth("image", "import", "bad", str(path))
        assert code == 125 and err, (data[:10], code, err)
        path.unlink()
    assert [i["name"] for i in s.api.get("/v1/images")["images"] if i["name"] == "bad"] == []


def test_the_same_tar_twice_is_one_image(s):
    before = pool_images(s)
    for name in ("a1", "a2"):
        assert s.berth("image", "import", name, str(s.rootfs))[0] == 0
    found = {i["name"]: i["digest"] for i in s.api.get("/v1/images")["images"]}
    assert found["a1"] == found["a2"] == found["base"]
    assert pool_images(s) == before
    assert s.berth("image", "rm", "a1", "a2")[0] == 0
    with s.box() as b:
        assert b.exec(["true"]).exit_code == 0


def test_an_import_cut_short_leaves_no_image(s):
    body = s.rootfs.read_bytes()
    conn = s.api.connect()
    conn.putrequest("PUT", "/v1/images/cut")
    for name, value in s.api.headers({"Content-Type": "application/x-tar", "Content-Length": str(len(body))}).items():
        conn.putheader(name, value)
    conn.endheaders()
    conn.send(body[:len(body) // 2])
    conn.close()
    assert s.api.get("/v1/health")["status"] == "ok"
    assert "cut" not in [i["name"] for i in s.api.get("/v1/images")["images"]]


def test_an_import_the_pool_has_no_room_for_is_507_and_leaves_nothing(s):
    before = pool_images(s)
    info = tarfile.TarInfo("zeros")
    info.size = s.api.get("/v1/host")["disk_available"]  # of which a tenth is not for images
    body = gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20))
    status, said, _ = s.api.request("PUT", "/v1/images/bomb", body, {"Accept": "application/json"})
    assert (status, said.get("reason")) == (507, "no_space"), (status, said)
    wait_until(lambda: pool_images(s) == before, 60, "nothing of it is left")
    assert "bomb" not in [i["name"] for i in s.api.get("/v1/images")["images"]]
