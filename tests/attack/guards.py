#!/usr/bin/env python3
"""Take defences out of the code, one or a few at a time: the probes that stand on them must get through.

usage: guards.py [--list] [NAME...]

Works on a copy of the tree. A row is what is taken away and the probes that must then be through. A search that is not
found is an error: the defence has moved, and its row here must follow. At the end every probe of the table was seen getting
through, or is in CANNOT with the reason why not here.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
ROW_LIMIT, END_LIMIT = 420, 120  # seconds: a row; what a row started, once it was told to end
FIRST_ID = 1000000  # of sandboxes, as berth-node has it
IDS = 64 * 65536  # of the first of them: a row has fewer
PROGRAMS = ["src/berthd/berthd", "src/node/berth-node", "src/egress/berth-egress", "src/cli/berth", "src/init/berth-init", "src/image/berth-image",
            "src/egress/berth-egress", "src/probe/berth-probe"]
BUNDLE, SECCOMP, CREATE = "src/node/bundle.c", "src/node/seccomp.c", "src/node/verb-create.c"

# What can be taken away: (file, search, replace)...
AWAY = {
    "filter": [(BUNDLE, '	json_key(out, "seccomp");\n	seccomp_write(out);\n', ""),
               (CREATE, ".filter = buf_str(&a->node->filter),", ".filter = NULL,")],
    "small capabilities": [(BUNDLE, "static const char *const capabilities[] = {", """static const char *const capabilities[] = {
	"CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_PTRACE", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_TIME",
	"CAP_SYS_BOOT", "CAP_SYS_NICE", "CAP_SYSLOG", "CAP_MKNOD", "CAP_DAC_READ_SEARCH", "CAP_SYS_PACCT",
	"CAP_SYS_TTY_CONFIG", "CAP_AUDIT_CONTROL", "CAP_AUDIT_READ", "CAP_BPF", "CAP_PERFMON", "CAP_SETFCAP",""")],
    "user namespace": [(BUNDLE, '	json_open(out, \'{\');\n	json_str(out, "type", "user");\n	if (b->userns)\n'
                        '		json_str(out, "path", b->userns);\n	buf_adds(out, "}");\n',
                        ""),
                       (BUNDLE, '	write_ids(out, "uidMappings", b->first_id);\n	write_ids(out, "gidMappings", b->first_id);\n',
                        "	(void)write_ids;\n"),
                       ("src/node/idmap.c", "MOUNT_ATTR_IDMAP | MOUNT_ATTR_NODEV", "0")],
    "user namespace made before": [(BUNDLE, '	if (b->userns)\n		json_str(out, "path", b->userns);\n', "")],
    "device list": [(BUNDLE, '	json_key(out, "memory");\n	/* The same',
                     '	json_key(out, "devices");\n	buf_adds(out, "[{\\"allow\\":true,\\"access\\":\\"rwm\\"}]");\n'
                     '	json_key(out, "memory");\n	/* The same')],
    "masks": [(BUNDLE, 'string_list(out, "maskedPaths", masked, array_len(masked));',
               'string_list(out, "maskedPaths", masked, 0);')],
    "read-only paths": [(BUNDLE, 'string_list(out, "readonlyPaths", readonly, array_len(readonly));',
                         'string_list(out, "readonlyPaths", readonly, 0);')],
    "read-only /sys": [(BUNDLE, 'bind(out, b->sys, "/sys", "noexec\\",\\"ro");', 'bind(out, b->sys, "/sys", "noexec\\",\\"rw");'),
                       (CREATE, "MS_NOEXEC | MS_RDONLY;", "MS_NOEXEC;")],
    "nosuid": [(BUNDLE, 'buf_adds(out, "[\\"nosuid\\",\\"noexec\\"");', 'buf_adds(out, "[\\"noexec\\"");')],
    "no new privileges": [(BUNDLE, 'json_bool(out, "noNewPrivileges", true);', 'json_bool(out, "noNewPrivileges", false);')],
    "flags of the pool": [("src/node/pool.c", "MS_NOATIME | MS_NOSUID | MS_NODEV", "MS_NOATIME")],
    "owner of the user namespace": [("src/node/userns.c", "	return setresgid(owner, owner, owner) < 0 ? -1 : setresuid(owner, owner, owner);",
                                     "	(void)owner;\n	return 0;")],
    "core limit": [(BUNDLE, '{ "RLIMIT_CORE", CORE_NEVER }', '{ "RLIMIT_CORE", 1000000 }')],
    "core limit stays": [(SECCOMP, '	{ "setrlimit", NOT_DONE, 1,', '	{ "setrlimit", 0, 1,'),
                         (SECCOMP, '	{ "prlimit64", NOT_DONE, 2,', '	{ "prlimit64", 0, 2,')],
    "limits of others": [(SECCOMP, '	OWN_LIMITS("prlimit64"),', '	LIMITS("prlimit64", 1),')],
    "memory limit": [(CREATE, ".memory_bytes = a->spec.limits.memory_bytes,", ".memory_bytes = 4ULL << 30,")],
    "memory of sockets": [("src/node/cgroup.c", "#define SOCKET_PART 4 ", "#define SOCKET_PART (memory_bytes + 1) ")],
    "copies of what was sent": [("src/node/veth.c", '"/proc/sys/net/core/tstamp_allow_data", "0"', '"/proc/sys/net/core/tstamp_allow_data", "1"')],
    "pids limit": [(CREATE, ".pids = runtime_pids(a->runtime, a->spec.limits.pids),", ".pids = 20000,")],
    "cpu limit": [(CREATE, ".cpu_milli = a->spec.limits.cpu_milli,", ".cpu_milli = 8000,")],
    "open files limit": [("src/cli/attack.c", "#define OPEN_FILES  20000", "#define OPEN_FILES  2000")],
    "disk quota": [("src/node/pool.c", ".max_excl = bytes", ".max_excl = 8ULL << 30")],
    "size of /dev": [(BUNDLE, '"mode=755", "size=64k"', '"mode=755", "size=1g"')],
    "size of /dev/shm": [(BUNDLE, '"size=65536k"', '"size=1g"')],
    "terminals": [(BUNDLE, '#define TERMINALS  "max=256"', '#define TERMINALS  "max=3000"')],
    "network namespace": [(CREATE, "	int router = a->node->router.netns;\n\n	if (a->netns >= 0 &&",
                           "	int router = a->node->router.netns;\n"
                           '	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);\n\n	if (a->netns >= 0 &&'),
                          (CREATE, '	crash_point("node.network-entered");\n', "	(void)setns(home, CLONE_NEWNET);\n")],
    "ipc namespace": [(BUNDLE, '"ipc", "uts",', '"uts",')],
    "uts namespace": [(BUNDLE, '"ipc", "uts",', '"ipc",'), (BUNDLE, '	json_str(out, "hostname", b->hostname);\n', "")],
    "cgroup namespace": [(BUNDLE, '"mount", "cgroup" }', '"mount" }')],
    "init is not dumpable": [("src/init/main.c", "	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);\n", "")],
    "descriptors are closed": [("src/init/command.c", "	(void)syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);\n",
                                # One more, as in CVE-2024-21626. Not init's own: no command begins or ends while it has these pipes itself.
                                '	(void)open("/", O_RDONLY | O_DIRECTORY);\n')],
    "ids of its own": [("src/node/allocation.c", "(uint32_t)a->node->settings.first_id + a->slot * USERNS_RANGE;",
                        "(uint32_t)a->node->settings.first_id;")],
    "no mount of the host's": [(BUNDLE, '	bind(out, b->init, "/.berth/init", "ro");',
                                '	bind(out, "/tmp", "/tmp", "rw");\n	bind(out, b->init, "/.berth/init", "ro");')],
    "no device of the host's": [(BUNDLE, '	bind(out, b->init, "/.berth/init", "ro");',
                                 '	bind(out, "/dev", "/dev/host", "rw");\n	bind(out, b->init, "/.berth/init", "ro");')],
    # The next berth-node gives the host's /dev/null back to root.
    "devices of its own": [(CREATE, ' || devices_stage(STAGE "/dev", e) < 0 ||', " ||"), (CREATE, ".in = input, .out = log,", ".in = -1, .out = -1,")],
    "protocols of sockets": [(SECCOMP, "	SOCKET(AF_INET, 0),\n", '	{ "socket", 0, 1, { { 0, SCMP_CMP_EQ, AF_INET, 0 } } },\n')],
    "socket families": [(SECCOMP, '	{ "socket", 0, 1, { { 0, SCMP_CMP_EQ, AF_UNIX, 0 } } },\n', '	{ "socket", 0, 0, { { 0 } } },\n')],
    "options of sockets": [(SECCOMP, "	OPTIONS(IPPROTO_IP),\n", '	{ "setsockopt", 0, 0, { { 0 } } },\n')],
    "actions of prctl": [(SECCOMP, '"ppoll", "pread64"', '"ppoll", "prctl", "pread64"'),
                         (SECCOMP, '	{ "prctl", EINVAL, 1, { { 0, SCMP_CMP_MASKED_EQ, UINT32_MAX, PR_SET_SECCOMP } } },\n', "")],
    "requests of ioctl": [(SECCOMP, '"kill", "landlock_add_rule"', '"ioctl", "kill", "landlock_add_rule"')],
    "flags of clone": [(SECCOMP, '{ "clone",  0, 1, { { 0, SCMP_CMP_MASKED_EQ, NAMESPACE_FLAGS, 0 } } },', '{ "clone", 0, 0, { { 0 } } },'),
                       (SECCOMP, '{ "clone3", ENOSYS, 0, { { 0 } } },', '{ "clone3", 0, 0, { { 0 } } },')],
}

# What is taken away together, on which engine, and who must get through.
GUARDS = [
    (["filter"], "crun", """bpf io-uring-setup userfaultfd aio keyctl add-key request-key name-to-handle kcmp move-pages mbind
        set-mempolicy process-madvise pidfd-getfd cachestat sysfs af-alg netlink-xfrm unshare-user clone-user clone3-user abi-32-bit"""),
    (["protocols of sockets"], "crun", "sctp dccp mptcp udplite l2tp"),
    (["socket families"], "crun", "af-alg af-vsock netlink-netfilter netlink-xfrm"),
    (["options of sockets"], "crun", "tls-in-kernel esp-in-tcp udp-encapsulation socket-filter reuseport-filter transmit-stamps"),
    (["actions of prctl"], "crun", "call-filter"),
    (["flags of clone"], "crun", "clone-user clone3-user"),
    (["requests of ioctl"], "crun", """subvolume subvolume-v2 subvolume-high-bits snapshot snapshot-v2 subvolume-remove
        subvolume-remove-v2 subvolume-flags subvolume-default subvolume-info quota-switch quota-limit quota-group pool-search
        pool-info pool-space pool-sync pool-defragment pool-freeze pool-trim file-flags file-attributes file-verity file-keys
        file-map namespace-owner terminal-input terminal-discipline terminal-console interface-flags interface-bridge
        interface-tool"""),
    (["filter", "small capabilities"], "crun", """mount-tmpfs mount-bind mount-proc umount-mask remount-rw fsopen open-tree sethostname
        capabilities capset ambient unshare-mount setdomainname"""),
    (["filter", "small capabilities", "user namespace", "device list", "flags of the pool", "masks", "read-only paths", "read-only /sys"], "crun",
     """id-range reboot swapon swapoff acct core-pattern loop-device nice settimeofday clock-settime trusted-attribute perf
        af-packet raw-ipv4 transparent new-link new-address new-route promiscuous mark syslog fanotify vhangup"""),
    (["masks"], "crun", "interrupts kernel-objects firmware filesystems disks disk-class disk-numbers loop-files disk-caches "
     "disk-cache-objects pool-objects"),
    (["read-only paths", "read-only /sys"], "crun", "proc-sys"),
    (["nosuid"], "crun", "mount-flags"),
    (["no new privileges", "flags of the pool"], "crun", "setuid file-rights"),
    (["core limit"], "crun", "core-dump"),
    (["core limit stays"], "crun", "core-limit"),
    (["limits of others"], "crun", "init-limit"),
    (["owner of the user namespace"], "crun", "shared-inotify shared-signals shared-timers shared-queues shared-watches"),
    (["ids of its own", "owner of the user namespace"], "crun", "shared-pipes shared-descriptors"),
    (["filter", "ids of its own", "owner of the user namespace"], "crun", "shared-keys shared-marks"),
    (["memory limit", "size of /dev", "size of /dev/shm"], "crun",
     "memory-bomb memfd-bomb sysv-bomb shm-bomb dev-bomb socket-bomb"),
    (["memory of sockets", "copies of what was sent"], "crun", "udp-bomb tcp-bomb transmit-copies"),
    (["pids limit", "cpu limit", "terminals", "open files limit"], "crun", "fork-bomb terminal-bomb file-bomb"),
    (["disk quota"], "crun", "disk-bomb allocate-bomb"),
    (["network namespace"], "crun", "host-tcp host-udp host-api abstract-socket socket-names"),
    (["ipc namespace", "user namespace"], "crun", "sysv-memory sysv-queue posix-queue shared-segments shared-locked-memory"),
    (["uts namespace", "cgroup namespace"], "crun", "host-name cgroup-path"),
    (["init is not dumpable"], "crun", "init-ptrace init-memory init-memory-read init-descriptors init-environment"),
    (["descriptors are closed"], "crun", "leaked-descriptor"),
    (["ids of its own"], "crun", "id-range"),
    (["no mount of the host's"], "crun", "host-file api-read-link api-write-link api-write-swap control-sockets image-console "
     "image-dev image-dev-null image-etc image-hard-link image-init image-init-file image-link-parent image-proc image-pts "
     "image-sys image-through image-up tree-bomb tree-link tree-up wake-link"),
    (["no device of the host's"], "crun", "devices"),
    (["devices of its own"], "crun", "device-times"),
    # An engine that makes the user namespace itself still has the host's rights when it gives its stdio to the guest.
    (["devices of its own", "user namespace made before"], "crun", "device-mode device-owner device-list"),
    (["memory limit", "disk quota", "size of /dev/shm"], "runsc", "memory-bomb disk-bomb shm-bomb"),
]

# Who was never seen through here, by the reason.
CANNOT = {name: why for why, names in {
    "this kernel has no modules, no kexec, no x32 and no ports":
        "abi-x32 delete-module finit-module init-module ioperm iopl kexec kexec-file modprobe-path",
    "this machine has more of it than the probe takes, for its own safety":
        "shared-events shared-files",
    "the box's own limit of processes ends the probe first":
        "shared-processes",
    "this kernel does not have the hole":
        "dirty-cow dirty-pipe",
    "this machine does not have the file or the device, even for its root":
        "acpi binfmt cgroup-limit cgroup-procs cgroup-release-agent console debugfs kcore kmsg-write latency-stats "
        "mem-device port-device posix-memory powercap release-agent sched-debug scsi scsi-disk sysrq uevent-helper "
        "userfault-device vhost-device virtual-disk",
    "nothing outside answers: this machine has no network beyond itself":
        "dns dns-tunnel host-services ipv6 multicast quic",
    "the kernel has a limit of its own here":
        "files-limit icmp icmp6 id-map oom-score realtime",
    "without a pid namespace berth-init would be among the host's processes, with the right to kill them":
        "environments processes signal trace",
    "what is looked at from outside is that the neighbour answers, and it did":
        "inode-bomb output-bomb shared-terminals",
    "files are handled inside the box: there is no way on the host to break":
        "host-paths init-root shared-file tree-hard-link working-directory",
    "it is what runsc is: without it the engine is crun":
        "host-kernel",
    "the program is in use, a mount point, and belongs to nobody inside":
        "init-executable init-overwrite init-replace",
}.items() for name in names.split()}


def copy_tree(to):
    names = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=TOP, text=True).splitlines()
    for name in names:
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (TOP / name).is_file():
            shutil.copy2(TOP / name, target)


def take_away(tree, names):
    """The files as they were, to be put back."""
    before = {}
    for name in names:
        for file, search, replace in AWAY[name]:
            path = tree / file
            text = path.read_text()
            before.setdefault(path, text)
            assert text.count(search) == 1, f"{name}: {file} has its text {text.count(search)} times"
            path.write_text(text.replace(search, replace))
    return before


def attack(tree, runtime):
    build = subprocess.run(["ninja", "-C", "build", *PROGRAMS], cwd=tree, capture_output=True, text=True)
    assert build.returncode == 0, build.stdout[-3000:]
    # What a box takes of the host's System V memory is not this machine's.
    r = subprocess.Popen(["unshare", "--ipc", sys.executable, "tests/attack/run.py", "--runtime", runtime, "--json"], cwd=tree,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = r.communicate(timeout=ROW_LIMIT)
    except subprocess.TimeoutExpired:
        return None, f"it did not end in {ROW_LIMIT} s"
    finally:
        end(r)
    if not out.strip():
        return None, err.strip()[-300:]
    return {p["name"]: p for run in json.loads(out)["runs"] for p in run["probes"]}, ""


def end(r):
    """With all it started: run.py takes its server away when it is told to end, and that server goes if run.py is killed."""
    if r.poll() is not None:
        return
    r.terminate()
    try:
        r.communicate(timeout=END_LIMIT)
    except subprocess.TimeoutExpired:
        r.kill()
        r.communicate()


def owner_of(path):
    try:
        return os.lstat(path).st_uid
    except FileNotFoundError:  # other programs come and go there
        return 0


def of_boxes():
    """What belongs to ids of sandboxes in the host's /tmp: put there by a box that has it as its own."""
    return {path for path in (os.path.join("/tmp", n) for n in os.listdir("/tmp")) if FIRST_ID <= owner_of(path) < FIRST_ID + IDS}


def remove(paths):
    for path in paths:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            pathlib.Path(path).unlink(missing_ok=True)


def one(tree, row, seen):
    names, runtime, want = row
    there, began, before = of_boxes(), time.monotonic(), take_away(tree, names)
    try:
        told, why = attack(tree, runtime)
    finally:
        remove(of_boxes() - there)
        for path, text in before.items():
            path.write_text(text)
    what = f"{runtime} without {', '.join(names)}"
    if told is None:
        print(f"MISSED {what}: {why}", flush=True)
        return False, set()
    through = {n for n, p in told.items() if p["verdict"] == "through"}
    missed = set(want.split()) - through
    print(f"{'MISSED' if missed else 'seen  '} {what} ({time.monotonic() - began:.0f} s)")
    for n in sorted(missed):
        print(f"         {n} held: {told[n]['seen'] if n in told else 'no such probe'}")
    print(f"       {len(through)} through: {' '.join(sorted(through))}", flush=True)
    seen |= through
    return not missed, set(told)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*", help="only rows in which this is taken away")
    args = parser.parse_args()
    rows = [r for r in GUARDS if not args.names or set(args.names) & set(r[0])]
    if args.list:
        for names, runtime, want in rows:
            print(f"{runtime:6} {', '.join(names)}: {' '.join(want.split())}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # not at once: what was started is taken away first
    tree = pathlib.Path(tempfile.mkdtemp(prefix="berth-attack-guards-"))
    tree.chmod(0o755)
    door = socket.socket(socket.AF_UNIX)  # a server's own directories cannot be listed by others: one that can be found
    door.bind(str(tree / "door"))
    seen, known, good = set(), set(), 0
    try:
        copy_tree(tree)
        subprocess.run(["meson", "setup", "build", "-Dwerror=false"], cwd=tree, check=True, capture_output=True,
                       env={"CC": "ccache gcc" if shutil.which("ccache") else "gcc", **os.environ})
        for row in rows:
            ok, all_of_them = one(tree, row, seen)
            good, known = good + ok, known | all_of_them
    finally:
        shutil.rmtree(tree, ignore_errors=True)
    open_ends = known - seen - set(CANNOT)
    if not args.names:
        for n in sorted(open_ends):
            print(f"never seen through, without a reason: {n}")
        for n in sorted(seen & set(CANNOT)):
            print(f"was seen through, but CANNOT says: {CANNOT[n]}: {n}")
    print(f"{len(seen)} of {len(known)} probes were seen getting through; {good} of {len(rows)} rows as they should be")
    return good != len(rows) or (not args.names and bool(open_ends))


if __name__ == "__main__":
    sys.exit(main())
