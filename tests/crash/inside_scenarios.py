"""What clients do inside a sandbox while a daemon dies: commands, files, shells, terminals, code."""
import os
import signal

from scenarios import Scenario, answer, post, small_tar, swallow
from world import CUT, ApiError, demand, insist, leftovers, until


class Exec(Scenario):
    """What is told of a command is what it did; the sandbox lives on."""

    def prepare(self, w):
        ident = w.api.create()
        return ident, w.s.init_pid(ident)

    def act(self, w, thing):
        try:
            return w.api.exec(thing[0], "echo out; echo err >&2; exit 7", timeout_ms=20000)
        except CUT + (ApiError,):
            return None

    def verify(self, w, thing, told):
        ident, pid = thing
        if told is not None and told.kind == "exited":
            demand((told.exit_code, told.out, told.err) == (7, b"out\n", b"err\n"), f"it lies: {dict(told)}")
        elif told is not None:
            demand(told.kind in ("lost", "killed"), f"it lies: {dict(told)}")
            demand(told.exit_code is None, f"an exit code out of nothing: {dict(told)}")
        w.works(ident)
        demand(w.s.init_pid(ident) == pid, "it is another process now")


class ExecOnce(Scenario):
    """With a key, until there is an answer: it ran at most once, and what is told of it is true."""
    options = {"keep": True}
    SCRIPT = "echo x >> /root/ran; for i in 1 2 3; do echo line $i; done; echo end >&2; exit 5"

    def prepare(self, w):
        ident = w.api.create()
        return ident, w.s.init_pid(ident), w.unique("e")

    def ask(self, w, thing):
        body = {"command": self.SCRIPT, "timeout_ms": 20000, **self.options}
        return answer(w, "POST", f"/v1/sandboxes/{thing[0]}/exec", body, thing[2], fine=(200, 202))[1]

    def act(self, w, thing):
        return self.ask(w, thing)

    def end_of(self, w, ident, told):
        """The exec's record and its output, read afterwards."""
        path = f"/v1/sandboxes/{ident}/execs/{told['id']}"
        x = until(lambda: [e for e in [insist(lambda: w.api.get(path))] if e["state"] == "ended"], 30)
        demand(x, f"it never ends: {insist(lambda: w.api.get(path))}")
        return x[0], insist(lambda: w.api.get(path + "/output"))

    def verify(self, w, thing, told):
        ident, pid, _ = thing
        x, output = self.end_of(w, ident, told)
        again = self.ask(w, thing)
        demand(again["id"] == told["id"], f"the key ran another one: {told} {again}")
        ran = insist(lambda: w.api.exec(ident, "cat /root/ran || true")).out
        demand(ran in (b"", b"x\n"), f"it ran {ran.count(b'x')} times")
        if x["kind"] == "exited":
            demand((x["exit_code"], output["stdout"], output["stderr"]) == (5, "line 1\nline 2\nline 3\n", "end\n"),
                   f"it lies: {x} {output}")
            demand(ran == b"x\n", "an end is told of what never ran")
        else:
            demand(x["kind"] in ("lost", "killed") and x["exit_code"] is None, f"it lies: {x}")
        demand(w.s.init_pid(ident) == pid, "it is another process now")


class ExecBackground(ExecOnce):
    """berthd is killed while it runs: it goes on, and not a byte of it is lost."""
    options = {"background": True}
    SCRIPT = "echo x >> /root/ran; for i in 1 2 3; do echo line $i; sleep 0.2; done; echo end >&2; exit 5"

    def act(self, w, thing):
        told = self.ask(w, thing)
        swallow(lambda: w.s.signal("berthd", signal.SIGKILL))
        until(w.s.healthy, 20)
        self.end_of(w, thing[0], told)
        return told

    def verify(self, w, thing, told):
        x, _ = self.end_of(w, thing[0], told)
        demand(x["kind"] == "exited" or told["state"] == "ended", f"it was told as running, and lost: {x}")
        super().verify(w, thing, told)


class Kill(Scenario):
    """With a key a signal comes at most once, and never after nobody knew of it; KILL is sent until it is over."""

    def prepare(self, w):
        ident = w.api.create()
        x = w.api.call("POST", f"/v1/sandboxes/{ident}/exec", {
            "command": "trap 'echo hit' USR1; echo up; while :; do sleep 0.02; done", "background": True, "group": "g"})
        path = f"/v1/sandboxes/{ident}/execs/{x['id']}"
        demand(until(lambda: "up" in w.api.get(path + "/output")["stdout"], 20), "it does not come up")
        return ident, path, w.unique("k")

    def act(self, w, thing):
        ident, path, key = thing
        told = []
        for _ in range(2):
            swallow(lambda: told.append(post(w, path + "/kill", {"signal": "USR1"}, key)[0]))
            until(w.s.healthy, 20)
        until(lambda: 200 not in told or "hit" in insist(lambda: w.api.get(path + "/output"))["stdout"], 20)
        many = answer(w, "POST", f"/v1/sandboxes/{ident}/execs/kill", {"scope": "group", "group": "g"}, key + "-g", fine=(200,))
        return told, many[1], answer(w, "POST", path + "/kill", {}, key + "-9", fine=(200,))[1]

    def verify(self, w, thing, told):
        ident, path, key = thing
        answers, many, end = told
        hits = insist(lambda: w.api.get(path + "/output"))["stdout"].count("hit")
        demand(hits <= 1 and (200 not in answers or hits == 1), f"{answers}, and it was hit {hits} times")
        demand((end["state"], end["kind"], end["exit_code"]) == ("ended", "killed", None), f"it lies: {end}")
        demand(many["killed"] <= 1, f"more were killed than there were: {many}")
        again = answer(w, "POST", f"/v1/sandboxes/{ident}/execs/kill", {"scope": "group", "group": "g"}, key + "-g", fine=(200,))[1]
        demand(again == many, f"told {many}, then {again}")


class WriteFile(Scenario):
    """With a key, until there is an answer: the file is whole."""

    def prepare(self, w):
        return w.api.create(), w.unique("f")

    def act(self, w, thing):
        ident, key = thing
        return answer(w, "PUT", f"/v1/sandboxes/{ident}/files?path=/root/f", key * 5000, key, fine=(200, 201))

    def verify(self, w, thing, told):
        ident, key = thing
        data = insist(lambda: w.api.request("GET", f"/v1/sandboxes/{ident}/files?path=/root/f"))[1]
        demand(data == (key * 5000).encode(), f"acknowledged, and it has {len(data)} bytes")
        names = insist(lambda: w.api.exec(ident, "ls -A /root")).out
        demand(names == b"f\n", f"more than the file is left: {names}")


class Files(Scenario):
    """Made, moved, unpacked and removed, each with a key and until there is an answer: each happened once."""

    def prepare(self, w):
        ident = w.api.create()
        w.api.exec(ident, "mkdir /root/old /root/from; echo kept > /root/from/f")
        return ident, w.unique("v")

    def act(self, w, thing):
        ident, key = thing
        files = f"/v1/sandboxes/{ident}/files"
        steps = (("POST", "/mkdir", {"path": "/root/new"}),
                 ("POST", "/move", {"from": "/root/from", "to": "/root/to"}),
                 ("DELETE", "?path=/root/old&recursive=1", None))
        told = [answer(w, method, files + path, body, f"{key}-{n}", again=(503,))
                for n, (method, path, body) in enumerate(steps)]
        # Of a command whose end was not seen we are told so, and look ourselves, as a client would.
        for (method, path, body), (status, _) in zip(steps, told):
            if status == 504:
                answer(w, method, files + path, body, fine=(200, 201, 404, 409))
        answer(w, "PUT", files + "/tar?path=/root/new", small_tar("packed", "p"), fine=(200,))
        return told

    def verify(self, w, thing, told):
        demand(all(status in (200, 201, 504) for status, _ in told), f"done, and told as {told}")
        found = insist(lambda: w.api.exec(thing[0], "cd /root; find . -mindepth 1 | sort; cat to/f new/p")).out.decode()
        demand(found == "./new\n./new/p\n./to\n./to/f\nkept\npacked", f"there is {found!r}")


class Checkout(Scenario):
    """A repository is there whole when it is told so, and nothing beside it."""
    MAKE = ("export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "
            "git init -q -b main /srv/r && cd /srv/r && echo one > f && git add f && git commit -qm one && git rev-parse HEAD")

    def prepare(self, w):
        ident = w.api.create(image=w.image("git"))
        made = w.api.exec(ident, self.MAKE)
        demand(made.exit_code == 0, f"no repository: {dict(made)}")
        return ident, made.out.decode().strip(), w.unique("g")

    def act(self, w, thing):
        ident, _, key = thing
        return answer(w, "POST", f"/v1/sandboxes/{ident}/git/checkout", {"url": "file:///srv/r"}, key, again=(503,))

    def verify(self, w, thing, told):
        ident, commit, _ = thing
        again = self.act(w, thing)
        demand(again[0] == told[0] == 504 or again == told, f"the key's second answer is {again}, not {told}")
        demand(told[0] == 504 or told[1].get("commit") == commit, f"not checked out: {told}")
        found = insist(lambda: w.api.exec(ident, "cd /workspace && ls -A && cat r/f && git -C r status --short")).out
        demand(found == b"r\none\n" or told[0] == 504 and not found, f"there is {found}, and it was told {told}")


def strays(w, ident, word):
    """Processes of the sandbox with this word in their arguments."""
    return [p for p in w.s.cgroup_pids(ident) if word in leftovers.read(f"/proc/{p}/cmdline")]


class Shell(Scenario):
    """A persistent shell is made, used and ended: one of the name, its state stays, and nothing of it is left."""

    def prepare(self, w):
        return w.api.create(), w.unique("s")

    def act(self, w, thing):
        ident, key = thing
        shells = f"/v1/sandboxes/{ident}/shells"
        made = answer(w, "POST", shells, {"name": "work"}, key)
        demand(made[0] == 201, f"shell: {made}")
        run = {"command": "cd /tmp; X=set; echo x >> /root/ran; sleep 7771 & true", "shell": "work", "keep": True}
        ran = answer(w, "POST", f"/v1/sandboxes/{ident}/exec", run, key + "e")
        told = answer(w, "POST", f"/v1/sandboxes/{ident}/exec", {"command": "echo $X $PWD", "shell": "work"}, key + "f")
        ended = answer(w, "DELETE", shells + "/work", fine=(200, 404))
        return ran[1], told[1], ended

    def verify(self, w, thing, told):
        ident, _ = thing
        ran, asked, _ = told
        times = insist(lambda: w.api.exec(ident, "cat /root/ran || true")).out
        demand(times in (b"", b"x\n"), f"it ran {times.count(b'x')} times")
        if ran["kind"] == "exited":
            demand(ran["exit_code"] == 0 and times == b"x\n", f"it lies: {ran}, and it ran {times}")
        if ran["kind"] == asked["kind"] == "exited":
            demand(asked["stdout"] == "set /tmp\n", f"what the shell knew is lost: {ran} {asked}")
        left = insist(lambda: w.api.get(f"/v1/sandboxes/{ident}/shells"))["shells"]
        demand(not left, f"ended, and listed: {left}")
        demand(until(lambda: not strays(w, ident, "7771"), 5), "the shell was ended, and what it began runs")


class Terminal(Scenario):
    """A terminal is begun with a key and ended: one of it, and nothing of it is left."""

    def prepare(self, w):
        return w.api.create(), w.unique("t")

    def act(self, w, thing):
        ident, key = thing
        terminals = f"/v1/sandboxes/{ident}/terminals"
        ask = {"argv": ["sh", "-c", "echo x >> /root/ran; sleep 7771"]}
        made, again = (answer(w, "POST", terminals, ask, key) for _ in range(2))
        demand(made[0] == 201 and again[1]["id"] == made[1]["id"], f"one key, and {made} {again}")
        listed = insist(lambda: w.api.get(terminals))["terminals"]
        return listed, answer(w, "DELETE", f"{terminals}/{made[1]['id']}", fine=(200, 404))

    def verify(self, w, thing, told):
        ident, _ = thing
        demand(len(told[0]) == 1, f"one key made {told[0]}")
        ran = insist(lambda: w.api.exec(ident, "cat /root/ran || true")).out
        demand(ran in (b"", b"x\n"), f"it ran {ran.count(b'x')} times")
        left = insist(lambda: w.api.get(f"/v1/sandboxes/{ident}/terminals"))["terminals"]
        demand(not left, f"ended, and listed: {left}")
        demand(until(lambda: not strays(w, ident, "7771"), 5), "the terminal was ended, and what it began runs")


class Code(Scenario):
    """Code in a context of its own and in the default one: run at most once, and what it knows is true or told as lost."""

    def prepare(self, w):
        return w.api.create(image=w.image("python3"), memory_mb=256, pids=64), w.unique("c")

    def act(self, w, thing):
        ident, key = thing
        top = f"/v1/sandboxes/{ident}"
        made = answer(w, "POST", top + "/contexts", {"language": "python", "name": "own"}, key, fine=(200, 201))

        def run(n, **what):
            # A key that was used says so, and not how it ended.
            status, body = answer(w, "POST", top + "/code", what, f"{key}-{n}", fine=(200, 409))
            return body if status == 200 else {"kind": "unknown", "context_lost": False}
        told = [run(1, code="open('/root/ran', 'a').write('x'); X = 41", context="own"),
                run(2, code="X + 1", context="own"), run(3, code="6 * 7", language="python")]
        ended = answer(w, "DELETE", f"{top}/contexts/{made[1]['id']}", fine=(200, 404))
        return told, ended

    def verify(self, w, thing, told):
        ident, _ = thing
        (wrote, added, other), _ = told
        ran = insist(lambda: w.api.exec(ident, "cat /root/ran || true")).out
        demand(ran in (b"", b"x"), f"it ran {ran.count(b'x')} times")
        demand(wrote["kind"] != "ok" or ran == b"x", f"it lies: {wrote}")
        known = wrote["kind"] == "ok" and not added["context_lost"]
        for result in [added] * known + [other]:
            fine = result["kind"] == "ok" and [r["text"] for r in result["results"]] == ["42"]
            demand(fine or result["kind"] in ("lost", "killed", "unknown"), f"it lies: {wrote}, then {result}")
        left = [c["name"] for c in insist(lambda: w.api.get(f"/v1/sandboxes/{ident}/contexts"))["contexts"]]
        demand("own" not in left and len(left) <= 1, f"ended, and listed: {left}")


ALL = {
    "exec": Exec,
    "exec-once": ExecOnce,
    "exec-background": ExecBackground,
    "kill": Kill,
    "write-file": WriteFile,
    "files": Files,
    "checkout": Checkout,
    "shell": Shell,
    "terminal": Terminal,
    "code": Code,
}
