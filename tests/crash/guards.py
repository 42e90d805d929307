#!/usr/bin/env python3
"""Take one guard out of the code at a time: the crash harness must see it.

usage: guards.py [--list] [NAME...]

Works on a copy of the tree. A guard is a search/replace in one file and the scenario that must then
fail. A search that is not found is an error: the guard has moved, and its row here must follow.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ["src/berthd/berthd", "src/node/berth-node", "src/egress/berth-egress", "src/cli/berth", "src/init/berth-init", "src/image/berth-image",
            "src/probe/berth-probe"]

# name: (what it guards, scenario[:point]..., file, search, replace)
GUARDS = {
    "build-again": (
        "a create whose berthd died before anything was made is built by the next one",
        ["create-once:life.intent-written"], "src/core/lifecycle.c",
        "[EV_ABSENT]	= GO(CREATING,	BUILD),", "[EV_ABSENT]	= GO(CREATING,	NONE),"),
    "unknown-is-not-broken": (
        "a lost answer of berth-node does not make a create fail for good",
        ["create-once:node.disk-made"], "src/berthd/control/transition.c",
        "return why->code == ERR_BUSY &&", "return false &&"),
    "one-key-one-sandbox": (
        "the key is taken in the transaction that writes the wish",
        ["create-once:life.built"], "src/berthd/control/create-spec.c",
        ".use = c->use.key[0] ? &c->use : NULL,", ".use = NULL,"),
    "started-is-recorded": (
        "that init has answered is on disk before berthd hears it",
        ["adopt-node"], "src/node/verb-create.c",
        "	if (allocation_save(a, &e) < 0)\n		return give_up(a, PHASE_ENDED, &e);\n"
        "	allocation_log(a, LOG_INFO, \"sandbox runs\", NULL);",
        "	allocation_log(a, LOG_INFO, \"sandbox runs\", NULL);"),
    "unknown-is-not-absent": (
        "an attempt without an answer proves nothing",
        ["delete:node.killed"], "src/berthd/control/deletion.c",
        "	if (why) {\n		err_set(&c->why, ERR_BUSY, \"not proven gone yet: %s\", why->msg);",
        "	if (why)\n		return false;\n	if (why) {\n"
        "		err_set(&c->why, ERR_BUSY, \"not proven gone yet: %s\", why->msg);"),
    "destroy-without-record": (
        "what has lost its record on the host can still be destroyed and proven gone",
        ["delete:node.record-removed"], "src/node/verb-destroy.c",
        "	if (allocation_find(c->node->all, t->sandbox))\n		return allocation_target",
        "	if (allocation_find(c->node->all, t->sandbox) || true)\n		return allocation_target"),
    "partial-is-cleaned": (
        "what an unpacking left is removed at the next start",
        ["image-import:node.image-unpacked"], "src/node/daemon.c",
        "image_clean(n, e) < 0 || ", ""),
    "half-published-is-cleaned": (
        "what a killed child left of an image is removed at once",
        ["image-import:node.image-closed"], "src/node/image.c",
        "	job_end(job, &job->why);\n	tidy(n);\n", "	job_end(job, &job->why);\n	(void)n;\n"),
    "no-half-image": (
        "an image that is being removed loses its name first",
        ["image-again"], "src/node/image.c",
        "	return remove_image_dir(c->node, partial, e);",
        "	(void)!renameat(c->node->pool.images, partial, c->node->pool.images, name);\n"
        "	return remove_image_dir(c->node, name, e);"),
    "death-is-recorded": (
        "a sandbox whose processes ended is not told as ready",
        ["init-dies"], "src/core/lifecycle.c",
        "[EV_ABSENT]	= GO(FAILED,	REPORT),", "[EV_ABSENT]	= GO(READY,	NONE),"),
    "cgroups-go-too": (
        "a deletion removes the cgroups, and looks whether they are gone",
        ["delete"], "src/node/verb-destroy.c",
        " || cgroup_remove(&a->node->cgroups, a->name, e) < 0)", ")"),
    "links-go-too": (
        "a deletion removes the link, and looks whether it is gone",
        ["delete-held"], "src/node/verb-destroy.c",
        "	return veth_remove(a->node->router.netns, a->slot, e);", "	return 0;"),
    "ended-is-cut-off": (
        "what ends is not let into the router any more",
        ["delete"], "src/node/verbs.c",
        "	if (nft_allowlist_remove(&a->node->router.rules, a->slot, &e) < 0)", "	if (false)"),
    "nested-go-too": (
        "a deletion removes the subvolumes inside of a disk, however they came there",
        ["delete-nests"], "src/node/pool.c",
        "	if (nested_remove(fd, e) < 0)", "	(void)nested_remove;\n	if (false)"),
    "guests-nest-nothing": (
        "a guest cannot make a subvolume, which would have no quota",
        ["delete-nests"], "src/node/seccomp.c",
        '"kill", "landlock_add_rule"', '"ioctl", "kill", "landlock_add_rule"'),
    "its-cgroup-tells": (
        "a wrapper whose cgroup has processes is there, whatever its journal says",
        ["wrapper:wrapper.spawned"], "src/berthd/agent/observe.c",
        "	if (has(&l->groups->full, exec))\n		return WRAPPER_PRESENT;",
        "	if (has(&l->groups->full, exec))\n		return WRAPPER_ABSENT;"),
    "one-wrapper": (
        "who asks for a wrapper looks first, and is given the one that is there",
        ["wrapper:wrapper.spawned"], "src/berthd/agent/observe.c",
        "	o->count++;\n", "	return;\n	o->count++;\n"),
    "deletion-goes-on": (
        "a deletion that was begun is taken up again by itself",
        ["delete-cut-off:life.deletion-written"], "src/berthd/control/reconcile.c",
        "	if (sb->state == SANDBOX_DELETING)\n		add(rc, &rc->found, sb, climb);",
        "	if (sb->state == SANDBOX_DELETING)\n		(void)climb;"),
    "alarm-comes-again": (
        "an alarm that rang for a berthd that died rings again",
        ["idle:life.alarm-rang"], "src/berthd/control/reconcile.c",
        "#define DUE_AGAIN_MS   30000", "#define DUE_AGAIN_MS   86400000"),
    "not-under-way-for-ever": (
        "of a key whose request died with berthd it is told that nobody knows, not that it is under way",
        ["files:life.once-taken"], "src/berthd/front/idempotent-op.c",
        "	if (inflight_has(at_work, o->name)) {\n",
        "	if (inflight_has(at_work, o->name) || true) {\n"),
    "shell-with-everything": (
        "a shell is told as ended when all that it began is gone",
        ["shell"], "src/berthd/exec/shell.c",
        "	ask_guest(o, FRAME_SHELL_END, o->name, on_ended);",
        "	on_ended(o, NULL, NULL);"),
    "drained-takes-none": (
        "a host that was told to take nothing new takes nothing",
        ["host-drained"], "src/store/host.c",
        "UPDATE host SET draining = $2::int = 1 WHERE", "UPDATE host SET draining = $2::int = 2 WHERE"),
}


def copy_tree(to):
    names = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=TOP, text=True).splitlines()
    for name in names:
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (TOP / name).is_file():
            shutil.copy2(TOP / name, target)


def build(tree):
    r = subprocess.run(["ninja", "-C", "build-crash", *PROGRAMS], cwd=tree, capture_output=True, text=True)
    assert r.returncode == 0, r.stdout[-3000:]


def one(tree, name):
    why, only, file, search, replace = GUARDS[name]
    path, start = tree / file, time.monotonic()
    text = path.read_text()
    assert text.count(search) == 1, f"{name}: {file} has its text {text.count(search)} times"
    try:
        path.write_text(text.replace(search, replace))
        build(tree)
        r = subprocess.run([sys.executable, "tests/crash/run.py", "--first", "--slice", "4m", *only], cwd=tree,
                           capture_output=True, text=True, env={**os.environ, "BERTH_CRASH_SETTLE": "12"})
    finally:
        path.write_text(text)
    seen = r.returncode == 1 and "VIOLATION" in r.stdout + r.stderr or "Violation" in r.stderr
    said = next((line.strip() for line in r.stdout.splitlines() if line.startswith("      ")),
                (r.stderr.strip().splitlines() or [""])[-1])
    print(f"{'seen ' if seen else 'MISSED'} {name} ({why}): {said[:150]} ({time.monotonic() - start:.0f} s)", flush=True)
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.list:
        for name, row in GUARDS.items():
            print(f"{name:26} {' '.join(row[1]):36} {row[0]}")
        return 0
    tree = pathlib.Path(tempfile.mkdtemp(prefix="berth-guards-"))
    tree.chmod(0o711)
    try:
        copy_tree(tree)
        subprocess.run(["meson", "setup", "build-crash", "-Dcrash=true", "-Dwerror=false"], cwd=tree, check=True, capture_output=True,
                       env={"CC": "ccache gcc" if shutil.which("ccache") else "gcc", **os.environ})
        names = args.names or list(GUARDS)
        seen = sum(one(tree, name) for name in names)
    finally:
        shutil.rmtree(tree, ignore_errors=True)
    print(f"{seen} of {len(names)} guards: their absence was seen")
    return seen != len(names)


if __name__ == "__main__":
    sys.exit(main())
