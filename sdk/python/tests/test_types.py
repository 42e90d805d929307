"""What a type checker is told: every public name has hints, and they mean something."""
import inspect
import pathlib
import typing
import unittest

import berth
from berth import files

HERE = pathlib.Path(__file__).resolve().parent.parent
CLASSES = [berth.Berth, berth.Execution, berth.ExecResult, berth.Images, berth.Process, berth.Sandbox, berth.Secrets, berth.Session,
           berth.Terminal, berth.Terminals, files.Files]


def functions(cls):
    for name, member in inspect.getmembers(cls):
        member = member.fget if isinstance(member, property) else member
        if not name.startswith("_") and inspect.isfunction(member) and member.__module__.startswith("berth."):
            yield name, member


class Types(unittest.TestCase):
    def test_the_package_says_that_it_has_hints(self):
        self.assertTrue((HERE / "berth/py.typed").exists())
        self.assertIn('berth = ["py.typed"]', (HERE / "pyproject.toml").read_text())

    def test_every_public_method_has_hints_that_can_be_resolved(self):
        for cls in CLASSES:
            for name, function in [*functions(cls), ("__init__", cls.__init__)]:
                with self.subTest(f"{cls.__name__}.{name}"):
                    hints = typing.get_type_hints(function)
                    missing = set(inspect.signature(function).parameters) - set(hints) - {"self"}
                    self.assertEqual(missing, set())
                    self.assertIn("return", hints)
        self.assertIs(typing.get_type_hints(berth.get_sandbox)["return"], berth.Sandbox)


if __name__ == "__main__":
    unittest.main()
