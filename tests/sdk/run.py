#!/usr/bin/env python3
"""The SDKs against a real server: Node's own test runner, Python's unittest, and the examples of their READMEs.

usage: run.py [--build DIR] [--runtime crun|runsc] [SUITE...]     SUITE: typescript, python, examples

BERTH_SDK_CASES says how many random byte streams are compared, BERTH_SEED which ones.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/system"))

import images  # noqa: E402
import server as servers  # noqa: E402
from marks import on_stop  # noqa: E402

TYPESCRIPT, PYTHON = TOP / "sdk/typescript", TOP / "sdk/python"
SYSTEM_PYTHON = "/usr/bin/python3"
LIMIT = 600 + 5 * int(os.environ.get("BERTH_SDK_CASES", "40"))  # seconds for one file of tests


def env_of(s):
    return {**os.environ, **s.env, "BERTH_IMAGE": "base", "PYTHONPATH": str(PYTHON), "PYTHONDONTWRITEBYTECODE": "1"}


def run(s, *argv, cwd=TOP):
    try:
        return subprocess.run([str(a) for a in argv], cwd=cwd, env=env_of(s), timeout=LIMIT).returncode == 0
    except subprocess.TimeoutExpired:
        print(f"{argv[0]}: not done after {LIMIT} s")
        return False


def typescript(s, work):
    tests = sorted(TYPESCRIPT.glob("test/*.test.mjs"))
    return [(t.name, run(s, "node", "--experimental-websocket", "--test", t)) for t in tests]


def python(s, work):
    tests = sorted(PYTHON.glob("tests/test_*.py"))
    return [(t.name, run(s, SYSTEM_PYTHON, "-m", "unittest", "-q", t.stem, cwd=t.parent)) for t in tests]


def examples(s, work):
    """Every block of the READMEs and of docs/, as it stands there; what stands behind `# ->` or `// ->` must be printed."""
    done = []
    pages = [TOP / "README.md", TYPESCRIPT / "README.md", PYTHON / "README.md", *sorted((TOP / "docs").glob("*.md"))]
    for page in pages:
        if not page.exists():
            continue
        blocks = re.findall(r"^```(js|python)\n(.*?)^```", page.read_text(), re.M | re.S)
        for n, (language, code) in enumerate(blocks, 1):
            name = f"{page.relative_to(TOP)} block {n}"
            file = pathlib.Path(work, f"example-{len(done)}." + {"js": "mjs", "python": "py"}[language])
            file.write_text(code.replace("'@berth/sandbox'", repr(str(TYPESCRIPT / "dist/index.js"))))
            argv = ["node", file] if language == "js" else [SYSTEM_PYTHON, file]
            r = subprocess.run(argv, env=env_of(s), capture_output=True, text=True, timeout=120)
            wanted = re.findall(r"(?:#|//) -> (.*)$", code, re.M)
            missing = [w for w in wanted if w not in r.stdout]
            ok = r.returncode == 0 and not missing
            print(f"{'ok   ' if ok else 'FAIL '} {name}" + ("" if ok else f": {missing}\n{r.stdout}{r.stderr}"), flush=True)
            done.append((name, ok))
    return done


SUITES = {"typescript": typescript, "python": python, "examples": examples}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--runtime", default="crun", choices=["crun", "runsc"])
    parser.add_argument("suites", nargs="*", default=list(SUITES))
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, on_stop)
    if subprocess.run(["tsc", "-p", TYPESCRIPT]).returncode != 0:
        print("the TypeScript SDK does not build")
        return 1
    work = pathlib.Path(tempfile.mkdtemp(prefix="berth-"))
    work.chmod(0o711)
    s = servers.Server(args.build, args.runtime, work / "sdk")
    results = []
    try:
        images.build(work / "tools.tar", "bash", "git", "python3", "node")
        s.start()
        code, _, err = s.berth("image", "import", "base", str(work / "tools.tar"), timeout=300)
        assert code == 0, err
        for suite in args.suites:
            print(f"# {suite} ({args.runtime})", flush=True)
            results += SUITES[suite](s, work)
        left = s.api.sandboxes()
        results.append(("no sandbox is left", not left))
        results.append(("the server stops well and leaves nothing", s.stop() == 0 and not s.leftovers()))
    finally:
        s.sweep()
        shutil.rmtree(work, ignore_errors=True)
    failed = [name for name, ok in results if not ok]
    for name in failed:
        print(f"failed: {name}")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
