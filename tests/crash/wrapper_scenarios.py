"""Wrappers under deaths: never two of a name alive, and none without a lease that names it."""
import glob

from scenarios import Scenario
from world import CUT, ApiError, demand, insist, until

# Each instance looks for one before it, and leaves its generation.
COMMAND = ('p=$(cat /root/pid 2>/dev/null); [ "$p" != $$ ] && [ "$(cat /proc/$p/comm 2>/dev/null)" = sleep ] && '
           'echo $p >> /root/twice; echo $$ > /root/pid; echo $BERTH_WRAPPER_GENERATION >> /root/starts; '
           '(setsid sleep 1000 &); exec sleep 1000')


class Wrapper(Scenario):
    """Launched, given work, used again, ended: asked for until it is answered."""

    def prepare(self, w):
        return w.api.create()

    def url(self, box):
        return f"/v1/sandboxes/{box}/wrappers/main"

    def get(self, w, box):
        return insist(lambda: w.api.get(self.url(box)))

    def launch(self, w, box):
        """As a client does: while a cleanup is owed, again."""
        def once():
            try:
                return w.api.call("PUT", self.url(box), {"command": COMMAND})
            except ApiError as e:
                if e.status != 409:
                    raise
                demand(e.body.get("reason") == "cleanup_pending" and e.body["retry_at"], f"a launch: {e}")
                return None
        got = until(lambda: insist(once))
        demand(got and got["instance"], f"never launched: {self.get(w, box)}")
        return got

    def say(self, w, box, verb, got, **more):
        def once():
            try:
                w.api.call("POST", f"{self.url(box)}/{verb}", {"instance": got["instance"], **more})
            except ApiError as e:
                if e.status != 409:  # it was replaced meanwhile
                    raise
        insist(once)

    def end(self, w, box):
        insist(lambda: w.api.call("DELETE", self.url(box)))
        gone = until(lambda: (g := self.get(w, box))["state"] == "none" and g["alive"] == "absent" and g)
        demand(gone, f"never seen gone: {self.get(w, box)}")
        return gone

    def act(self, w, thing):
        got = self.launch(w, thing)
        for verb in ("ready", "accepted"):
            self.say(w, thing, verb, got)
        self.say(w, thing, "settled", got, ok=True)
        again = self.launch(w, thing)
        self.say(w, thing, "settled", again, ok=False)
        self.launch(w, thing)
        return self.end(w, thing)

    def lines(self, w, box, name):
        return insist(lambda: w.api.exec(box, f"cat /root/{name} 2>/dev/null")).out.split()

    def alive(self, w, box):
        return int(insist(lambda: w.api.exec(box, "pidof sleep | wc -w")).out)

    def count(self, w, box):
        demand(not self.lines(w, box, "twice"), "two of them were alive at once")
        starts = [int(n) for n in self.lines(w, box, "starts")]
        demand(starts == sorted(set(starts)), f"generations: {starts}")
        return starts

    def verify(self, w, thing, told):
        demand(told["receipt"], f"ended without a receipt: {told}")
        demand(self.alive(w, thing) == 0, f"seen gone, and {self.alive(w, thing)} processes live: {told}")
        before = self.count(w, thing)
        last = self.launch(w, thing)
        until(lambda: self.alive(w, thing) == 2)
        demand(self.alive(w, thing) == 2, "launched, and it is not there")
        demand(self.count(w, thing) == before + [last["generation"]], f"{before}, then {last}")
        self.end(w, thing)


class WrapperCutOff(Wrapper):
    """Asked for once; what became of it ends by itself."""

    def act(self, w, thing):
        try:
            w.api.call("PUT", self.url(thing), {"command": COMMAND})
        except CUT + (ApiError,):
            pass

    def verify(self, w, thing, told):
        def over():
            try:
                got = self.get(w, thing)
            except ApiError as e:
                return e.status == 404  # it was never written down
            if got["state"] == "starting":
                self.say(w, thing, "ready", got)  # it need not wait so long then
            return got["state"] == "none"
        demand(until(over), f"nobody ends it: {over()}")
        demand(self.alive(w, thing) == 0, "no lease, and it lives")
        self.count(w, thing)


class WrapperLost(Wrapper):
    """What served it was killed: the host sees when nothing of it is left, and only then another one starts."""

    def prepare(self, w):
        box = w.api.create()
        got = insist(lambda: w.api.call("PUT", self.url(box), {"command": COMMAND.replace("exec", "kill -9 $PPID; exec")}))
        seen = until(lambda: (g := self.get(w, box))["alive"] == "absent" and g)
        demand(seen and seen["evidence"] == "host", f"not seen gone: {self.get(w, box)}")
        return box, got

    def act(self, w, thing):
        return self.launch(w, thing[0])

    def verify(self, w, thing, told):
        box, got = thing
        demand(told["generation"] > got["generation"], f"{told} after {got}")
        self.count(w, box)
        self.end(w, box)
        demand(until(lambda: not self.groups(box)), f"cgroups of wrappers that are gone: {self.groups(box)}")

    def groups(self, box):
        return glob.glob(f"/sys/fs/cgroup/**/{box.replace('-', '_')}.*/wr.*/", recursive=True)


ALL = {
    "wrapper": Wrapper,
    "wrapper-cut-off": WrapperCutOff,
    "wrapper-lost": WrapperLost,
}
