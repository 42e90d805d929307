#!/usr/bin/env python3
"""Berth on a machine of its own: Debian's cloud kernel, systemd, cgroup v2 and nothing else, in qemu.

usage: run.py [--build DIR] [--crash DIR] [--full | --attack | --reboot] [--work DIR]

This kind of machine has hybrid cgroups, its users' have v2: so the tree is installed into a Debian 12 image
and booted by emulation (minutes, not seconds). The image is made once and kept in WORK. Without --full it is
the slice of the gate: what `berth init` installs, its limits in the kernel's files, kills, nothing left.
With --attack that, and then every probe of `berth doctor --attack`. With --full its power is cut in the middle
of work, too, and the same disk is booted again; --reboot does that alone.
"""
import argparse
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TOP / "tests/system"))

PACKAGES = """systemd-sysv udev kmod linux-image-cloud-amd64 initramfs-tools zstd crun postgresql-15 btrfs-progs busybox-static
python3-minimal libpython3-stdlib iproute2 nftables procps libuv1 libjansson4 libcurl4 libarchive13 libbtrfsutil1 libseccomp2 libpq5 libssl3
libmnl0 libc-ares2 python3-yaml""".split()
UNIT = """[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 /opt/berth/tests/vm/guest.py {options}
ExecStopPost=/sbin/poweroff -f
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
TimeoutStartSec=infinity
[Install]
WantedBy=multi-user.target
"""
MEMORY_MB, DISK = 4096, "8g"


def sh(*argv, **more):
    subprocess.run([str(a) for a in argv], check=True, **more)


def sources():
    """Where this host gets its packages from; no mirror is named here."""
    for path in ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"):
        if os.path.exists(path):
            return path
    raise SystemExit("this host has no list of package sources")


def base(work):
    """Debian 12 with what Berth runs on, as a directory; made once for a list of packages."""
    mark = hashlib.sha256(" ".join(PACKAGES).encode()).hexdigest()[:12]
    tar = work / f"debian-{mark}.tar"
    if not tar.exists():
        print("making the image", flush=True)
        partial = tar.with_suffix(".new.tar")
        for attempt in (1, 2):
            with open(work / "mmdebstrap.log", "wb") as log:
                r = subprocess.run(["mmdebstrap", "--mode=root", "--variant=minbase", "--include=" + ",".join(PACKAGES),
                                    "--aptopt=APT::Install-Recommends false", "bookworm", partial, sources()],
                                   stdout=log, stderr=log)
            if r.returncode == 0:
                break
            print(f"the image could not be made, try {attempt}; see {work / 'mmdebstrap.log'}", flush=True)
            time.sleep(10)
        else:
            raise SystemExit(1)
        partial.rename(tar)
    return tar


def copy_tree(root, build, crash):
    """What was built, installed as `meson install` does, and the tests beside it."""
    sh("meson", "install", "-C", build, "--no-rebuild", "--destdir", root, stdout=subprocess.DEVNULL)
    opt = root / "opt/berth"
    shutil.copytree(TOP / "tests", opt / "tests", ignore=shutil.ignore_patterns("corpus", "__pycache__"))
    shutil.copytree(TOP / "tools", opt / "tools")
    shutil.copytree(TOP / "docs", opt / "docs")  # a page is done word for word
    shutil.copytree(TOP / "src", opt / "src")  # tests/crash looks for crash points there
    for name, made in (("build", build), ("build-crash", crash)):
        if made is None or not made.exists():
            continue
        for program in made.glob("src/*/berth*"):
            if program.is_file() and os.access(program, os.X_OK):
                to = opt / name / program.relative_to(made)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(program, to)


def disk(work, args):
    import server as servers
    root = work / "root"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    sh("tar", "-xf", base(work), "-C", root, "--exclude=./dev/*")
    copy_tree(root, pathlib.Path(args.build).resolve(), pathlib.Path(args.crash).resolve() if args.full else None)
    guest = root / "opt/berth/tests/vm"
    sh("musl-gcc", "-static", "-O1", "-o", guest / "probe", TOP / "tests/system/probe.c")
    servers.build_rootfs(guest / "rootfs.tar", guest / "probe")
    (root / "etc/systemd/system/vm-test.service").write_text(UNIT.format(options="--full" if args.full else "--attack" if args.attack else "--reboot" if args.reboot else ""))
    wants = root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / "vm-test.service").symlink_to("/etc/systemd/system/vm-test.service")
    (root / "etc/systemd/system/serial-getty@ttyS0.service").symlink_to("/dev/null")  # the console is ours
    (root / "etc/fstab").write_text("")
    (root / "etc/hostname").write_text("vm\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n127.0.1.1 vm\n")
    for name in ("vmlinuz", "initrd.img"):
        shutil.copy(next(root.glob(f"boot/{name}-*")), work / name)
    image = work / "disk.img"
    image.unlink(missing_ok=True)
    sh("mke2fs", "-q", "-t", "ext4", "-d", root, image, DISK)
    shutil.rmtree(root)
    return image


def boot(work, image, args):
    """Boot it, print what the guest says, and return the lines of its steps."""
    log = work / "console.log"
    argv = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", str(MEMORY_MB), "-smp", str(os.cpu_count()),
            "-display", "none", "-monitor", "none", "-nic", "none", "-no-reboot", "-serial", "stdio",
            "-kernel", work / "vmlinuz", "-initrd", work / "initrd.img",
            "-append", "console=ttyS0 root=/dev/vda rw quiet panic=-1 systemd.show_status=0 net.ifnames=0 no_timer_check",
            "-drive", f"file={image},if=virtio,format=raw,cache=unsafe"]
    said = []
    with open(log, "ab") as console:
        p = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=console)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        signal.signal(signal.SIGALRM, lambda *_: p.kill())
        signal.alarm(args.limit or (9000 if args.full else 3600 if args.attack else 1500))
        try:
            for raw in p.stdout:
                console.write(raw)
                console.flush()
                line = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", raw.decode("utf-8", "replace")).rstrip("\n")
                print("  | " + line, flush=True)
                if line.startswith("VM "):
                    said.append(line)
        finally:
            signal.alarm(0)
            p.kill()
            p.wait()
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--crash", default="build-crash")
    parser.add_argument("--work", default="build/vm")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--attack", action="store_true")
    parser.add_argument("--reboot", action="store_true")
    parser.add_argument("--limit", type=int, default=0, help="seconds of one boot; 1500, 3600 with --attack, 9000 with --full")
    args = parser.parse_args()
    work = pathlib.Path(args.work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    image = disk(work, args)
    print(f"booting after {time.monotonic() - began:.0f} s", flush=True)
    (work / "console.log").unlink(missing_ok=True)
    said = boot(work, image, args)
    if said[-1:] == ["VM reboot"]:
        print(f"booting again after {time.monotonic() - began:.0f} s", flush=True)
        said += boot(work, image, args)
    image.unlink(missing_ok=True)
    failed = [line for line in said if line.startswith("VM FAIL")]
    for line in said:
        print(line.removeprefix("VM "))
    ended = any(line.startswith("VM done") for line in said)
    if not ended:
        print(f"the machine did not get to its end; see {work / 'console.log'}")
    passed = len([line for line in said if line.startswith("VM ok")])
    print(f"took {time.monotonic() - began:.0f} s")
    print(f"{passed} passed, {len(failed) + (not ended)} failed")
    return 1 if failed or not ended else 0


if __name__ == "__main__":
    sys.exit(main())
