"""Every method, against a real server."""
import http.server
import os
import re
import threading
import time
import unittest

import berth
from world import WithBox, client, kill_all, name

METHODS = """exec exec_stream start_process list_processes get_process kill_process kill_all_processes
cleanup_completed_processes get_process_logs stream_process_logs git_checkout mkdir write_file read_file read_file_stream
delete_file rename_file move_file list_files exists expose_port unexpose_port get_exposed_ports is_port_exposed
validate_port_token create_session get_session set_env_vars create_code_context run_code run_code_stream
list_code_contexts delete_code_context destroy set_limits get_network set_network lock_network get_security_events
get_events get_usage wake sleep exec_parallel""".split()


class Methods(WithBox):
    def test_the_class_has_every_verb(self):
        for verb in METHODS:
            self.assertTrue(callable(getattr(self.box, verb)), verb)

    def test_exec(self):
        r = self.box.exec("sh -c 'echo o; echo e >&2; exit 3'")
        self.assertEqual((r.success, r.exit_code, r.stdout, r.stderr, r.kind), (False, 3, "o\n", "e\n", "exited"))
        r = self.box.exec(["printf", "%s", "a b"])
        self.assertEqual(r.stdout, "a b")

    def test_it_sleeps_and_wakes_with_its_files(self):
        with berth.get_sandbox(client, name()) as box:
            box.exec("cd /tmp; echo kept > /root/f")
            self.assertEqual(box.sleep()["state"], "asleep")
            self.assertEqual(box.wake()["state"], "ready")
            self.assertEqual(box.exec("cat /root/f").stdout, "kept\n")

    def test_runtime_env_and_lifetime(self):
        ident = name()
        with berth.get_sandbox(client, ident, runtime="crun", env={"A": "one", "B": "two"}, lifetime=3600) as box:
            record = box.info()
            self.assertEqual((record["runtime"], record["env"]), ("crun", {"A": "one", "B": "two"}))
            self.assertTrue(record["expires_at"] > record["created_at"])
            self.assertEqual(box.exec("echo $A $B").stdout, "one two\n")
            self.assertEqual(berth.get_sandbox(client, ident, env={"B": "three"}).info()["env"], {"A": "one", "B": "three"})
            with self.assertRaises(berth.ConflictError) as caught:
                berth.get_sandbox(client, ident, runtime="runsc").info()
            self.assertEqual(caught.exception.reason, "options_differ")
        with self.assertRaises(berth.InvalidError):
            berth.get_sandbox(client, name(), env={"a b": ""})

    def test_an_identity_means_one_sandbox(self):
        identity = {"org": f"py{os.getpid()}", "user": "ann", "session": f"py{os.getpid()}"}
        with berth.get_sandbox(client, identity, labels={"who": "ann"}) as one:
            two = berth.get_sandbox(client, dict(identity), labels={"who": "bob"})
            self.assertEqual(two.info()["labels"], {"who": "bob"})
            self.assertTrue(one.id.startswith("sb_") and one.id == two.id and one.info()["identity_key"].startswith("ses-"))
            self.assertEqual(one.exec("echo in").stdout, "in\n")

    def test_sandboxes_are_listed_by_label_and_state(self):
        mark = f"m{os.getpid()}"
        with berth.get_sandbox(client, name(), labels={"mark": mark, "n": "1"}) as a, \
                berth.get_sandbox(client, name(), labels={"mark": mark}) as b:
            ids = [a.info()["id"], b.info()["id"]]

            def found(**options):
                return sorted(r["id"] for r in berth.list_sandboxes(client, **options))
            self.assertEqual(found(labels={"mark": mark}), sorted(ids))
            self.assertEqual(found(labels={"mark": mark, "n": "1"}), ids[:1])
            self.assertEqual(found(labels={"mark": mark}, selector="n!=1", state="ready"), ids[1:])
            self.assertEqual(found(labels={"mark": mark}, state="asleep"), [])

    def test_commands_side_by_side(self):
        self.box.exec("rm -f /tmp/side.*")
        meet = ["touch /tmp/side.%d; while [ ! -e /tmp/side.%d ]; do sleep 0.05; done; echo %d; exit %d" % (n, 1 - n, n, n) for n in (0, 1)]
        results = self.box.exec_parallel(meet, timeout=30)
        self.assertEqual([(r.stdout, r.exit_code) for r in results], [("0\n", 0), ("1\n", 1)])
        self.assertEqual([r.stdout for r in self.box.exec_parallel(["pwd", ["printf", "a b"]], concurrency=1)], ["/workspace\n", "a b"])
        with self.assertRaises(berth.CommandTimeoutError):
            self.box.exec_parallel(["sleep 60", "true"], timeout=0.3)
        self.assertEqual(self.box.exec_parallel([]), [])

    def test_policies(self):
        policies = berth.Policies(client)
        made = policies.add("org", f"p{os.getpid()}", isolation="shared")
        self.assertEqual((made["isolation"], made["runtime"]), ("shared", ""))
        self.assertIn(made["id"], [p["id"] for p in policies.list()])
        self.assertEqual(policies.remove(made["id"])["id"], made["id"])
        self.assertNotIn(made["id"], [p["id"] for p in policies.list()])

    def test_the_disk_is_counted_when_that_is_asked_for(self):
        self.box.exec("head -c 10485760 /dev/urandom > /root/ten")
        usage = self.box.get_usage(fresh=True)
        self.assertGreaterEqual(usage["disk_bytes"], 10 << 20)
        self.assertTrue(usage["disk_at"])
        self.assertNotIn("disk_at", self.box.get_usage())
        self.box.exec("rm /root/ten")

    def test_variables_that_two_set_at_once_are_both_set(self):
        names = ["R0", "R1", "R2"]
        threads = [threading.Thread(target=berth.get_sandbox(client, self.box.id).set_env_vars, args=({n: "x"},)) for n in names]
        [t.start() for t in threads]
        [t.join() for t in threads]
        env = self.box.info()["env"]
        self.assertEqual([env.get(n) for n in names], ["x"] * 3)
        self.box.set_env_vars({"R0": None})
        self.assertNotIn("R0", self.box.info()["env"])

    def test_options_are_honoured_and_do_not_leak(self):
        r = self.box.exec("echo $PWD $ONLY", cwd="/tmp", env={"ONLY": "here"})
        self.assertEqual(r.stdout, "/tmp here\n")
        self.assertEqual(self.box.exec("echo [$ONLY]").stdout, "[]\n")
        with self.assertRaises(berth.CommandTimeoutError) as caught:
            self.box.exec("echo before; sleep 60", timeout=5)
        self.assertEqual((caught.exception.result.stdout, caught.exception.result.exit_code), ("before\n", None))

    def test_output_as_it_happens(self):
        heard = []
        self.box.exec("echo one; echo two >&2", on_output=lambda s, d: heard.append((s, d)))
        self.assertEqual(heard, [("stdout", b"one\n"), ("stderr", b"two\n")])
        names = [n for n, _ in self.box.exec_stream("echo x")]
        self.assertEqual(names, ["started", "stdout", "exit"])

    def test_ex2_encoding_says_how_output_is_told(self):
        line = "printf 'a\\377\\303\\251'; printf '\\000' >&2"
        heard = []
        r = self.box.exec(line, encoding="base64", on_output=lambda s, d: heard.append((s, d)))
        self.assertEqual((r.stdout, r.stderr, r.stdout_bytes), ("Yf/DqQ==", "AA==", b"a\xff\xc3\xa9"))
        self.assertEqual(b"".join(d for s, d in heard if s == "stdout"), r.stdout_bytes)
        self.assertEqual(self.box.exec(line).stdout, "a\ufffdé")
        self.assertEqual(self.box.exec_parallel([line], encoding="base64")[0].stderr, "AA==")
        for call in (self.box.exec, self.box.start_process, lambda c, **o: self.box.exec_parallel([c], **o)):
            with self.assertRaises(berth.InvalidError):
                call("touch /tmp/ran-anyway", encoding="latin9")
        self.assertFalse(self.box.exists("/tmp/ran-anyway"))

    def test_pc1_encoding_of_a_process_and_auto_cleanup(self):
        p = self.box.start_process("printf '\\303\\251\\377'", encoding="base64").wait(timeout=30)
        self.assertEqual((p.logs(), p.logs("utf8")), (("w6n/", ""), ("é\ufffd", "")))
        self.assertEqual(self.box.get_process_logs(p.id, encoding="base64"), ("w6n/", ""))
        self.box.start_process("true", process_id="forgotten", auto_cleanup=True)
        until = time.monotonic() + 30
        while self.box.get_process("forgotten") and time.monotonic() < until:
            time.sleep(0.05)
        self.assertIsNone(self.box.get_process("forgotten"))
        self.assertIsNotNone(self.box.get_process(p.id))
        self.box.cleanup_completed_processes()

    def test_pc2_every_status_and_a_start_that_fails(self):
        running = self.box.start_process("sleep 1000")
        self.assertEqual(running.status, "running")
        for command, options, status in (("true", {}, "completed"), ("exit 3", {}, "failed"), ("kill -SEGV $$", {}, "killed"),
                                         ("sleep 1000", {"timeout": 0.2}, "killed")):
            self.assertEqual(self.box.start_process(command, **options).wait(timeout=30).status, status, command)
        self.assertEqual(running.kill().status, "killed")
        with self.assertRaises(berth.BerthError):
            self.box.start_process(["/no/such/program"])
        self.box.cleanup_completed_processes()
        other = berth.get_sandbox(client, name())
        lost = other.start_process("sleep 1000")
        kill_all(other.info()["id"])
        until = time.monotonic() + 60
        while lost.refresh().status == "running" and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual((lost.status, lost.exit_code), ("error", None))
        other.destroy()

    def test_a_stop_before_its_start_kills_it(self):
        stop = threading.Event()
        stop.set()
        r = self.box.exec("sleep 5431", stop=stop, timeout=60)
        self.assertEqual((r.kind, r.exit_code), ("killed", None))

    def test_stop_kills_it(self):
        stop = threading.Event()
        r = self.box.exec("echo up; sleep 5432", stop=stop, on_output=lambda *_: stop.set())
        self.assertEqual((r.kind, r.exit_code), ("killed", None))
        self.assertEqual(self.box.exec('pgrep -f "sleep 5432" || echo none').stdout, "none\n")

    def test_processes(self):
        p = self.box.start_process("echo ready; echo oops >&2; sleep 300", process_id="server-1")
        self.assertEqual((p.id, p.status), ("server-1", "running"))
        p.wait_for_log("ready", timeout=30)
        p.wait_for_log(re.compile("^OO+ps$", re.IGNORECASE), timeout=30)
        self.assertEqual([x.id for x in self.box.list_processes()], ["server-1"])
        self.assertIsNone(self.box.get_process("nobody"))
        self.assertEqual(self.box.get_process_logs("server-1"), ("ready\n", "oops\n"))
        self.box.kill_process("server-1")
        self.assertEqual(p.refresh().status, "killed")
        self.assertEqual([n for n, _ in p.stream_logs()][-1], "exit")
        done = self.box.start_process("exit 3").wait(timeout=30)
        self.assertEqual((done.status, done.exit_code), ("failed", 3))
        with self.assertRaises(berth.ProcessExitedBeforeReadyError):
            done.wait_for_log("never", timeout=10)
        self.assertEqual(self.box.cleanup_completed_processes(), 2)
        self.box.start_process("sleep 1000")
        self.assertEqual(self.box.kill_all_processes(), 1)
        self.box.cleanup_completed_processes()

    def test_standard_input(self):
        p = self.box.start_process("cat", cwd="/", stdin=True)
        p.write(b"a\n")
        p.write(b"b\n", end=True)
        p.wait(timeout=30)
        self.assertEqual(p.logs()[0], "a\nb\n")
        self.box.cleanup_completed_processes()

    def test_files(self):
        box = self.box
        box.mkdir("/workspace/d/e", recursive=True)
        box.write_file("/workspace/d/a.txt", "grüße\n")
        self.assertEqual(box.read_file("/workspace/d/a.txt"), "grüße\n")
        box.write_file("/workspace/d/e/b.bin", b"\0\xff\n", mode=0o600)
        self.assertEqual(box.read_file_bytes("/workspace/d/e/b.bin"), b"\0\xff\n")
        self.assertEqual(box.files.stat("/workspace/d/e/b.bin").mode, 0o600)
        self.assertEqual(sorted(f.name for f in box.list_files("/workspace/d", recursive=True)), ["a.txt", "b.bin", "e"])
        box.rename_file("/workspace/d/a.txt", "/workspace/d/b.txt")
        box.move_file("/workspace/d/b.txt", "/workspace/d/e/b.txt")
        self.assertFalse(box.exists("/workspace/d/a.txt"))
        self.assertTrue(box.exists("/workspace/d/e/b.txt"))
        with self.assertRaises(berth.IsDirectoryError):
            box.delete_file("/workspace/d")
        box.delete_file("/workspace/d/e/b.txt")
        with self.assertRaises(berth.errors.FileNotFoundError):
            box.read_file("/workspace/d/e/b.txt")

    def test_sessions(self):
        a = self.box.create_session("a", env={"WHO": "a"}, cwd="/tmp")
        b = self.box.create_session()
        b.exec("export WHO=b")
        self.assertEqual(a.exec("echo $WHO $PWD").stdout, "a /tmp\n")
        self.assertEqual(b.exec("echo $WHO").stdout, "b\n")
        self.assertEqual(self.box.get_session("a").exec("echo $WHO").stdout, "a\n")
        with self.assertRaises(berth.NotFoundError):
            self.box.get_session("nobody")
        with self.assertRaises(berth.ConflictError):
            self.box.create_session("a")
        self.box.delete_session("a")

    def test_pc5_a_session_ends_its_own_processes_and_no_others(self):
        a, b = self.box.create_session("pa"), self.box.create_session("pb")
        mine, theirs = [a.start_process("sleep 1000") for _ in range(2)], [w.start_process("sleep 1000") for w in (b, self.box)]
        self.assertEqual(len([p for p in b.list_processes() if p.session_id == "pa"]), 2)
        self.assertEqual(a.kill_all_processes(), 2)
        self.assertEqual([p.refresh().status for p in mine + theirs], ["killed"] * 2 + ["running"] * 2)
        self.assertEqual((b.cleanup_completed_processes(), a.cleanup_completed_processes()), (0, 2))
        self.box.delete_session("pb")
        self.assertEqual((theirs[0].refresh().status, self.box.kill_all_processes()), ("killed", 1))
        self.assertEqual(self.box.cleanup_completed_processes(), 2)
        self.box.delete_session("pa")

    def test_variables(self):
        value = "it's \"$(touch /tmp/pwned)\" `id`\nnewline \\ end"
        self.box.set_env_vars({"AWKWARD": value})
        self.assertEqual(self.box.exec('printf %s "$AWKWARD"').stdout, value)
        self.assertFalse(self.box.exists("/tmp/pwned"))
        with self.assertRaises(berth.InvalidError):
            self.box.set_env_vars({"a;b": "x"})
        self.box.set_env_vars({"AWKWARD": None})
        self.assertEqual(self.box.exec("echo [$AWKWARD]").stdout, "[]\n")

    def test_code(self):
        context = self.box.create_code_context("python", cwd="/tmp")
        self.box.run_code("x = 20", context=context)
        r = self.box.run_code('import os\nprint("out"); os.system("echo child"); x + 1', context=context)
        self.assertEqual((r.kind, r.stdout, r.text), ("ok", "out\nchild\n", "21"))
        wrong = self.box.run_code("def (:", context=context)
        self.assertEqual((wrong.kind, wrong.error["name"], wrong.error["line_number"]), ("error", "SyntaxError", 1))
        self.assertEqual([n for n, _ in self.box.run_code_stream("print(1)", context=context)], ["stdout", "end"])
        self.assertIn(context.id, [c.id for c in self.box.list_code_contexts()])
        self.box.delete_code_context(context)
        self.assertEqual(self.box.run_code("6 * 7", language="js").text, "42")

    def test_git(self):
        self.box.exec("rm -rf /tmp/src && mkdir /tmp/src && cd /tmp/src && git init -q -b main . && echo hi > f && git add f && "
                      "git -c user.name=t -c user.email=t@example.com commit -qm one; cd /workspace")
        done = self.box.git_checkout("file:///tmp/src", branch="main")
        self.assertEqual((done["branch"], done["path"]), ("main", "/workspace/src"))
        again = self.box.git_checkout("file:///tmp/src", session_branch="session/1", reuse=True)
        self.assertEqual((again["branch"], again["commit"]), ("session/1", done["commit"]))
        with self.assertRaises(berth.GitRefNotFoundError):
            self.box.git_checkout("file:///tmp/src", branch="nope", target_dir="/workspace/n")

    def test_w21_w22_w27_ports_say_not_yet(self):
        for call in (self.box.expose_port, self.box.unexpose_port, self.box.is_port_exposed):
            with self.assertRaises(berth.NotYetError):
                call(8080)

    def test_what_it_may_use_and_what_it_used(self):
        box = berth.get_sandbox(client, name(), profile="validation", limits={"pids": 99})
        made = box.info()
        self.assertEqual((made["profile"], made["memory_mb"], made["pids"]), ("validation", 512, 99))
        changed = box.set_limits(memory_mb=256)
        self.assertEqual((changed["memory_mb"], changed["pids"], changed["limits_in_force"]), (256, 99, True))
        with self.assertRaises(berth.InvalidError):
            box.set_limits(memory_mb=1)
        self.assertEqual(box.exec(["true"]).exit_code, 0)
        ident = box.destroy()["id"]
        used = box.get_usage()  # and makes no other one for that
        self.assertEqual((used["sandbox"], used["gone"]), (ident, True))
        self.assertGreater(used["cpu_ms"], 0)
        events = box.get_events()
        self.assertEqual((events[-1]["to"], box.get_events(after=events[-1]["seq"])), ("gone", []))

    def test_w9_options_for_one_that_is_there_are_carried_out_or_refused_by_name(self):
        with berth.get_sandbox(client, name(), limits={"pids": 99}, labels={"a": "1"}) as box:
            made = box.info()

            def again(through=client, **options):
                return berth.get_sandbox(through, box.id, **options).info()
            self.assertEqual(again()["id"], made["id"])
            self.assertEqual(again(berth.Berth(image="another"))["id"], made["id"])  # the client's is for new ones
            changed = again(limits={"pids": 99}, labels={"b": "2"}, keep_alive=True, sleep_after=3600)
            self.assertEqual((changed["id"], changed["labels"], changed["keep_alive"], changed["sleep_after_ms"]),
                             (made["id"], {"b": "2"}, True, 3_600_000))
            for options, says in (({"limits": {"pids": 98}}, "pids is 99, not 98"), ({"image": "another"}, "not another"),
                                  ({"network": ["a.example.com"], "labels": {}}, "network differs")):
                with self.assertRaises(berth.ConflictError) as told:
                    again(**options)
                self.assertEqual(told.exception.reason, "options_differ")
                self.assertIn(says, str(told.exception))
            self.assertEqual(again()["labels"], {"b": "2"})

    def test_what_it_may_reach(self):
        box = berth.get_sandbox(client, name(), network=["api.example.com"])
        made = box.get_network()
        self.assertEqual((made["mode"], made["in_force"], [r["host"] for r in made["rules"]]), ("allow", True, ["api.example.com"]))
        box.run_code("import socket\ntry: socket.gethostbyname('evil.example.org')\nexcept OSError: pass")
        until = time.monotonic() + 30
        while not box.get_security_events() and time.monotonic() < until:
            time.sleep(0.1)
        refused = box.get_security_events()
        self.assertEqual([(e["kind"], e["name"]) for e in refused], [("name", "evil.example.org")])
        self.assertEqual(box.get_security_events(after=refused[-1]["seq"]), [])
        self.assertEqual(box.set_network({"mode": "allow", "bootstrap": [{"host": "*.example.net"}]})["phase"], "bootstrap")
        self.assertEqual(box.lock_network()["phase"], "locked")
        self.assertEqual(box.set_network([])["mode"], "none")
        self.assertEqual(box.set_network("open")["mode"], "open")
        self.assertEqual(box.get_network()["in_force"], True)
        self.assertEqual(box.set_network("none")["mode"], "none")
        with self.assertRaises(berth.InvalidError):
            box.set_network(["https://api.example.com"])
        box.destroy()
        self.assertEqual((box.get_network()["in_force"], box.get_security_events()), (False, refused))

    def test_secrets(self):
        secrets, word = berth.Secrets(client), name()
        made = secrets.set(word, "api.example.com", "Bearer 0123456789", paths=["/v1/*"])
        self.assertEqual((made["host"], made["header"], made["paths"]), ("api.example.com", "Authorization", ["/v1/*"]))
        self.assertIn(word, [k["name"] for k in secrets.list()])
        self.assertNotIn("0123456789", str(secrets.list()))
        self.assertEqual(secrets.remove(word)["name"], word)
        with self.assertRaises(berth.NotFoundError):
            secrets.remove(word)

    def test_destroy_gives_the_receipt(self):
        box = berth.get_sandbox(client, name(), keep_alive=True)
        self.assertTrue(box.info()["keep_alive"])
        receipt = box.destroy()
        self.assertEqual(receipt["receipt"]["process"], "absent")
        self.assertEqual(box.destroy(), receipt)  # and makes no other one for that

    def test_one_that_failed_is_destroyed_by_its_name(self):
        box = berth.get_sandbox(client, name())
        ident = box.info()["id"]
        kill_all(ident)
        until = time.monotonic() + 60
        while box.info()["state"] != "failed" and time.monotonic() < until:
            time.sleep(0.1)
        with self.assertRaises(berth.ConflictError):
            berth.get_sandbox(client, box.id).info()
        self.assertEqual(berth.get_sandbox(client, box.id).destroy()["id"], ident)


class Nothing(http.server.BaseHTTPRequestHandler):
    """A server whose streams end, and never say how."""

    def answer(self):
        events = b""
        if self.path.endswith("/exec"):
            events = b'event: started\ndata: {"id":"x","pid":1}\n\nevent: stdout\ndata: {"offset":0,"data":"all is well"}\n\n'
        stream = "/exec" in self.path
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
        self.end_headers()
        self.wfile.write(events if stream else b'{"id":"sb_c1_x"}')

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class Errors(unittest.TestCase):
    def test_w15_a_stream_that_ends_without_an_end_is_an_error(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nothing)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with self.assertRaises(berth.errors.ConnectionError):
            berth.get_sandbox(berth.Berth(f"http://127.0.0.1:{server.server_port}", "k"), "x").exec("true")
        server.shutdown()
        server.server_close()

    def test_they_have_a_type_a_sentence_and_a_way_out(self):
        wrong = berth.get_sandbox(berth.Berth(client.url, "wrong", retries=0), "x")
        with self.assertRaises(berth.UnauthenticatedError) as caught:
            wrong.exec("true")
        self.assertTrue(caught.exception.remediation and caught.exception.request_id)
        began = time.monotonic()
        with self.assertRaises(berth.errors.ConnectionError):
            berth.get_sandbox(berth.Berth("http://127.0.0.1:1", retries=1), "x").exec("true")
        self.assertLess(time.monotonic() - began, 30)


if __name__ == "__main__":
    unittest.main()
