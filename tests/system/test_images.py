"""Images: from a real registry, from a tar, and from a tar that means harm."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import threading
import urllib.request

from marks import limit, only
from server import free_port, wait_until
from test_terminals import sh as terminal

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


def push_with_user(s, registry, name, user, accounts=True):
    """An image of one layer with a USER, and a web server's account among its own."""
    layout, bundle = registry.dir / name, registry.dir / f"{name}-bundle"
    sh("umoci", "init", "--layout", layout)
    sh("umoci", "new", "--image", f"{layout}:1")
    sh("umoci", "unpack", "--image", f"{layout}:1", bundle)
    with tarfile.open(s.rootfs) as tar:
        tar.extractall(bundle / "rootfs")
    if accounts:
        (bundle / "rootfs/etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nweb:x:1000:50::/home/web:/bin/sh\n")
        (bundle / "rootfs/etc/group").write_text("root:x:0:\nweb:x:50:\naudio:x:29:web\n")
        (bundle / "rootfs/home/web").mkdir()
        os.chown(bundle / "rootfs/home/web", 1000, 50)
    (bundle / "rootfs/etc/root-only").write_text("secret")
    (bundle / "rootfs/etc/root-only").chmod(0o600)
    sh("umoci", "repack", "--image", f"{layout}:1", bundle)
    sh("umoci", "config", "--image", f"{layout}:1", "--config.user", user)
    sh("skopeo", "copy", "--dest-tls-verify=false", f"oci:{layout}:1", f"docker://localhost:{PORT}/{name}:1")
    return f"localhost:{PORT}/{name}:1"


@only("crun", "runsc")
@limit(180)
def test_an_images_user_is_who_its_commands_run_as(s):
    with Registry(s.work) as registry:
        code, _, err = s.berth("image", "pull", push_with_user(s, registry, "web", "web"), "-n", "web", timeout=90)
        assert code == 0, err
        for user, accounts, ids in (("1234:77", True, "1234 77 77 /"), ("1234", False, "1234 0 0 /"),
                                    ("root", True, "0 0 0 /root")):
            name = f"u{user.replace(':', '-')}"
            code, _, err = s.berth("image", "pull", push_with_user(s, registry, name, user, accounts), "-n", name, timeout=90)
            assert code == 0, err
            out = s.berth("run", name, "--", "sh", "-c", "echo $(id -u) $(id -g) $(id -G) $HOME")[1]
            assert out.decode().strip() == ids, (user, out)
        for user, words in (("nobody", b'"nobody", which its /etc/passwd does not have'),
                            ("web:staff", b'"staff", which its /etc/group does not have'),
                            ("70000", b"those of a sandbox end at 65535")):
            code, _, err = s.berth("image", "pull", push_with_user(s, registry, "bad", user), "-n", "bad", timeout=90)
            assert code == 125 and words in err, (user, err)
            shutil.rmtree(registry.dir / "bad")
            shutil.rmtree(registry.dir / "bad-bundle")
        assert "bad" not in [i["name"] for i in s.api.get("/v1/images")["images"]]
    with s.box(image="web") as b:
        assert b.sh("echo $(id -u) $(id -g) $(id -G) $HOME") == "1000 50 50 29 /home/web\n"
        # It has no more than its ids: not root's files, not root's processes, no way back.
        assert b.exec("cat /etc/root-only").exit_code == 1
        assert b.exec("kill -9 1").exit_code == 1
        assert "CapEff:\t0000000000000000" in b.sh("cat /proc/self/status")
        assert b.exec("su -c id root </dev/null").exit_code != 0
        # Its streams are its own, by their names too, and so is a terminal.
        assert b.sh("echo again >/dev/stdout; echo well >/proc/self/fd/2") == "again\n"
        with terminal(s, b, "id -u; echo by its name >$(tty); read end").view() as v:
            assert b"1000\r\n" in v.until(b"by its name\r\n")
        assert b.sh("for p in /proc/[0-9]*; do case $(cat $p/comm) in init) kill -STOP ${p#/proc/} && echo stopped;; esac; done;"
                    "echo done") == "done\n"
        # A shell, and what the API writes, are the user's; what was root's stays so.
        s.api.call("POST", f"/v1/sandboxes/{b.id}/shells", {"name": "one"})
        assert b.sh("id -u; echo $HOME", shell="one") == "1000\n/home/web\n"
        files = f"/v1/sandboxes/{b.id}/files"
        assert s.api.request("PUT", files + "?path=/srv/new/file&parents=1", b"mine")[0] == 201
        assert s.api.request("PUT", files + "?path=/etc/root-only", b"changed")[0] == 200
        assert b.sh("stat -c '%u:%g' /srv/new /srv/new/file; echo more >>/srv/new/file; cat /srv/new/file") \
            == "1000:50\n1000:50\nminemore\n"
        assert b.sh("stat -c '%u:%g %a' /etc/root-only") == "0:0 600\n"
        # The whole tree of a command is killed by its timeout, whoever it runs as.
        r = b.exec("(trap '' TERM; setsid sleep 1000) & wait", timeout_ms=1000)
        assert r.kind == "timed_out", dict(r)
        assert b.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep [1]000'").out == b"0\n"


def test_why_a_pull_failed_is_told_from_the_begin_of_a_word(s):
    for name in ("base", "library/" + "n" * 120):
        code, _, err = s.berth("image", "pull", f"127.0.0.1:9/{name}", timeout=60)
        assert code == 125 and b" cannot be pulled: pinging container registry 127.0.0.1:9: " in err, err
        assert b"connection refused" in err and b"server's host" in err and b"berth ps" not in err, err


def tar_of(entries):
    """A tar in memory of {name: bytes, or a link's target as a str}."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in entries.items():
            info = tarfile.TarInfo(name)
            info.mode = 0o755
            if isinstance(data, str):
                info.type, info.linkname = tarfile.SYMTYPE, data
            else:
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data) if isinstance(data, bytes) else None)
    return out.getvalue()


LAYERS = [{"bin/busybox": open("/bin/busybox", "rb").read(), "bin/sh": "busybox", "etc/gone": b"", "etc/here": b"1",
           "etc/passwd": b"web:x:1000:50::/srv:/bin/sh\n"},
          {"etc/.wh.gone": b"", "etc/here": b"2"}]
CONFIG = {"os": "linux", "config": {"User": "web", "Env": ["FROM=saved"], "WorkingDir": "/etc"}}


def saved(layers=("a/layer.tar", "b/layer.tar"), more=None, images=1, config="config.json"):
    """What `docker save` wrote before it wrote OCI layouts as well."""
    files = {f"{n}/layer.tar": tar_of(layer) for n, layer in zip("ab", LAYERS)}
    ids = ["sha256:" + hashlib.sha256(data).hexdigest() for data in files.values()]
    full = {**CONFIG, "architecture": "amd64", "rootfs": {"type": "layers", "diff_ids": ids}}
    files |= {"config.json": json.dumps(full).encode(), "a/VERSION": b"1.0", "repositories": b"{}"}
    files["manifest.json"] = json.dumps([{"Config": config, "RepoTags": ["x:1"], "Layers": list(layers)}] * images).encode()
    return {**files, **(more or {})}


def import_bytes(s, name, data):
    path = s.work / "saved.tar"
    path.write_bytes(data)
    try:
        return s.berth("image", "import", name, str(path), timeout=60)
    finally:
        path.unlink()


SAYS = "pwd; echo $FROM; busybox id -u; busybox cat here; busybox ls /etc"


@only("crun", "runsc")
@limit(150)
def test_a_saved_image_is_imported_with_its_layers_and_its_words(s):
    before = pool_images(s)
    plain = tar_of(saved())
    linked = tar_of(saved(("a/layer.tar", "c/layer.tar"), {"c/layer.tar": "../b/layer.tar"}))  # as older ones do
    cases = {"plain": plain, "gzip": gzip.compress(plain), "linked": linked}
    docker, layout = s.work / "docker.tar", s.work / "layout"
    docker.write_bytes(plain)
    sh("skopeo", "copy", f"docker-archive:{docker}", f"oci:{layout}:1")
    for kind in ("docker-archive", "oci-archive"):  # as a program of others writes them
        path = s.work / f"{kind}.tar"
        sh("skopeo", "copy", f"oci:{layout}:1", f"{kind}:{path}:x:1")
        cases[kind] = path.read_bytes()
        path.unlink()
    shutil.rmtree(layout)
    docker.unlink()
    for name, data in cases.items():
        code, _, err = import_bytes(s, name, data)
        assert code == 0, (name, err)
        code, out, err = s.berth("run", name, "--", "sh", "-c", SAYS)
        lines = out.decode().split("\n")
        assert code == 0 and lines[:3] == ["/etc", "saved", "1000"] and lines[3].startswith("2"), (name, out, err)
        assert "gone" not in lines, (name, out)
    assert s.berth("image", "rm", *cases)[0] == 0
    wait_until(lambda: pool_images(s) == before, 20, "their files removed")


def test_a_saved_image_that_means_harm_or_nothing_is_refused(s):
    before = pool_images(s)
    secret = s.work / "outside.tar"
    secret.write_bytes(tar_of({"taken": b"from outside"}))
    up = "../" * 12 + str(secret)[1:]
    deep = "/".join(["d"] * 400)
    cases = {
        "two": (saved(images=2), b"holds 2 images"),
        "none": (saved(images=0), b"holds 0 images"),
        "absent": (saved(("a/layer.tar", "nowhere.tar")), b"nowhere.tar"),
        "upwards": (saved((up,)), b"open layer"),
        "absolute": (saved((str(secret),)), b"open layer"),
        "linked out": (saved(("x.tar",), {"x.tar": str(secret)}), b"open layer"),
        "linked up": (saved(("x.tar",), {"x.tar": up}), b"open layer"),
        "config outside": (saved(config=str(secret)), b"config"),
        "config is a directory": (saved(config="a"), b"config"),
        "a layer that is none": (saved(("config.json",)), b"layer 1"),
        "no text": (saved(("a/layer.tar",), {"manifest.json": b"\xff{["}), b"manifest.json"),
        "an object": (saved(("a/layer.tar",), {"manifest.json": b"{}"}), b"holds 0 images"),
        "many": (saved(["a/layer.tar"] * 257), b"more than 256 layers"),
        "deep": (saved(more={deep: b""}), b"too deep"),
        "no index": ({"oci-layout": b"{}"}, b"index.json"),
        "no digest": ({"oci-layout": b"{}", "index.json": b'{"manifests":[{"digest":"sha256:../../x"}]}'}, b"not a digest"),
        "of another machine": (saved(more={"config.json": b'{"architecture":"vax","config":{}}'}), b"is for vax"),
        "for others": ({"oci-layout": b"{}", "index.json": json.dumps({"manifests": [
            {"digest": f"sha256:{n * 64}", "platform": {"os": "plan9", "architecture": "vax"}} for n in "ab"]}).encode()},
            b"none for linux/"),
    }
    for name, (files, words) in cases.items():
        code, _, err = import_bytes(s, "bad", tar_of(files))
        assert code == 125 and words in err, (name, code, err)
    secret.unlink()
    assert "bad" not in [i["name"] for i in s.api.get("/v1/images")["images"]]
    wait_until(lambda: pool_images(s) == before, 20, "nothing of them is left")
    left = os.listdir(f"/proc/{s.pid('berth-node')}/root{s.dir}/node/pool/images")
    assert len(left) == before, left


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
