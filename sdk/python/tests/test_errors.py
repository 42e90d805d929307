"""What can be said without a server: which errors are which, and what is no timeout."""
import builtins
import unittest

from berth import Berth, errors
from berth.exec import ask_of


class Errors(unittest.TestCase):
    def test_who_catches_the_builtin_gets_ours(self):
        told = {"code": "not_found", "message": "no such file: /x", "reason": "no_such_file"}
        with self.assertRaises(builtins.FileNotFoundError) as caught:
            raise errors.error_from(told, 404)
        self.assertEqual((str(caught.exception), caught.exception.status, caught.exception.reason),
                         ("no such file: /x", 404, "no_such_file"))
        self.assertIsInstance(caught.exception, errors.BerthError)
        with self.assertRaises(builtins.ConnectionError):
            Berth("http://127.0.0.1:1", "berth_none", retries=0).json("GET", "/v1/health")
        for reason, builtin in (("exists", builtins.FileExistsError), ("is_a_directory", builtins.IsADirectoryError),
                                ("not_a_directory", builtins.NotADirectoryError), ("permission_denied", builtins.PermissionError)):
            self.assertIsInstance(errors.error_from({"message": "m", "reason": reason}, 400), builtin)

    def test_its_text_says_what_to_do(self):
        body = {"code": "not_found", "message": 'no image "x"', "remediation": "Pull it."}
        self.assertEqual(str(errors.error_from(body, 404)), 'no image "x" (Pull it.)')
        self.assertEqual(errors.error_from(body, 404).message, 'no image "x"')
        self.assertEqual(str(errors.error_from({**body, "reason": "no_such_file"}, 404)), 'no image "x" (Pull it.)')
        self.assertEqual(str(errors.BerthError("broke off")), "broke off")

    def test_a_timeout_is_a_number_of_seconds(self):
        self.assertEqual(ask_of("true", timeout=1.5)["timeout_ms"], 1500)
        for wrong in ("abc", b"1", None.__class__, True):
            with self.assertRaises(TypeError) as caught:
                ask_of("true", timeout=wrong)
            self.assertIn("number of seconds", str(caught.exception))
        for wrong in (-1, float("nan"), float("inf")):
            with self.assertRaises(ValueError):
                ask_of("true", timeout=wrong)


if __name__ == "__main__":
    unittest.main()
