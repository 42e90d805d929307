"""What is not ready yet is waited for, in a budget; any other 503 is an answer."""
import http.server
import json
import threading
import time
import unittest

import berth
from berth.client import ready_pause


class Saying:
    """A server that gives these answers, the last one again and again: what a real one says for a moment cannot be held."""

    def __init__(self, *answers):
        times = self.times = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                status, body, *headers = answers[min(len(times), len(answers) - 1)]
                times.append(time.monotonic())
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def client(self, **options):
        return berth.Berth(f"http://127.0.0.1:{self.server.server_port}", "k", **options)


def busy(reason=None, after="0"):
    return 503, {"code": "busy", "reason": reason or "", "message": "sb_1 is still creating"}, ("Retry-After", after)


class Ready(unittest.TestCase):
    def test_pr8_a_503_that_is_not_not_yet_is_one_request(self):
        for reason in (None, "node_unanswered", "input_not_taken", "anything"):
            with Saying(busy(reason)) as server:
                self.assertRaises(berth.BusyError, server.client().json, "GET", "/v1/sandboxes/x")
                self.assertEqual(len(server.times), 1, reason)

    def test_pr8_not_yet_is_asked_again_when_the_server_says_so(self):
        for reason in ("not_ready", "not_reached", "under_way"):
            with Saying(busy(reason, "1"), busy(reason), (200, {"id": "x"})) as server:
                self.assertEqual(server.client().json("POST", "/v1/sandboxes", body={}, key="k1"), {"id": "x"})
                self.assertEqual(len(server.times), 3)
                self.assertGreaterEqual(server.times[1] - server.times[0], 0.95)

    def test_pr8_not_without_a_key_and_not_longer_than_the_budget(self):
        with Saying(busy("not_ready")) as server:
            self.assertRaises(berth.BusyError, server.client().json, "POST", "/v1/sandboxes", body={})
            self.assertEqual(len(server.times), 1)
            began = time.monotonic()
            self.assertRaises(berth.BusyError, server.client(ready_budget=6).json, "GET", "/v1/x")
            self.assertGreaterEqual(time.monotonic() - began, 3.5)
            self.assertGreater(len(server.times), 3)

    def test_pr8_the_pauses(self):
        pauses = []
        while (pause := ready_pause(len(pauses), sum(pauses), 60)) is not None:
            pauses.append(pause)
        self.assertEqual(pauses, [2, 4, 8, 16, 16])
        self.assertEqual((ready_pause(0, 0, 60, 7), ready_pause(0, 0, 60, 51)), (7, None))


if __name__ == "__main__":
    unittest.main()
