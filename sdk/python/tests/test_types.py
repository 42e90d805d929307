"""What a type checker is told: every public name has hints, and they mean something."""
import inspect
import pathlib
import re
import typing
import unittest

import berth
from berth import aio, files

HERE = pathlib.Path(__file__).resolve().parent.parent
CLASSES = [berth.Berth, berth.Execution, berth.ExecResult, berth.Images, berth.Process, berth.Sandbox, berth.Secrets, berth.Session,
           berth.Terminal, berth.Terminals, files.Files]


def functions(cls):
    for name, member in inspect.getmembers(cls):
        member = member.fget if isinstance(member, property) else member
        if not name.startswith("_") and inspect.isfunction(member) and member.__module__.startswith("berth."):
            yield name, member


ASYNC = {"AsyncProcess": berth.Process, "AsyncSession": berth.Session, "AsyncSandbox": berth.Sandbox, "AsyncPolicies": berth.Policies,
         "AsyncSecrets": berth.Secrets}


def hints_of_aio():
    """The stub as a module: its names can be resolved only if each of them is there."""
    names = {"__name__": "berth.aio", "__package__": "berth"}
    exec("from __future__ import annotations\n" + (HERE / "berth/aio.pyi").read_text(), names)  # noqa: S102
    return names


def handed_on(name, function):
    """(parameters, result, is awaited) of what berth.aio makes of a blocking one, as its hints must say."""
    signature = inspect.signature(function)
    parameters = {p: v.annotation for p, v in signature.parameters.items() if p != "self" and (name, p) != ("exec", "stop")}
    result = re.sub(r"(?<!wire\.)\b(Process|Session)\b", r"Async\1", signature.return_annotation)
    if name not in aio.STREAMS | {"stream_logs"}:
        return parameters, result, True
    result = result.replace("Stream", "Generator[Tuple[str, Any], None, None]")
    return parameters, re.sub(r"^Generator\[(.*), None, None\]$", r"AsyncIterator[\1]", result), False


class Types(unittest.TestCase):
    def test_the_package_says_that_it_has_hints(self):
        self.assertTrue((HERE / "berth/py.typed").exists())
        self.assertIn('berth = ["py.typed", "*.pyi"]', (HERE / "pyproject.toml").read_text())

    def test_every_public_method_has_hints_that_can_be_resolved(self):
        for cls in CLASSES:
            for name, function in [*functions(cls), ("__init__", cls.__init__)]:
                with self.subTest(f"{cls.__name__}.{name}"):
                    hints = typing.get_type_hints(function)
                    missing = set(inspect.signature(function).parameters) - set(hints) - {"self"}
                    self.assertEqual(missing, set())
                    self.assertIn("return", hints)
        self.assertIs(typing.get_type_hints(berth.get_sandbox)["return"], berth.Sandbox)

    def test_the_hints_of_aio_are_those_of_what_it_hands_on_to(self):
        stub = hints_of_aio()
        for cls, inner in ASYNC.items():
            self.assertTrue(hasattr(aio, cls), cls)
            for name, function in functions(inner):
                with self.subTest(f"{cls}.{name}"):
                    told = getattr(stub[cls], name)
                    if isinstance(getattr(inner, name), property):
                        self.assertIsInstance(told, property)
                        continue
                    signature = inspect.signature(told)
                    parameters = {p: v.annotation for p, v in signature.parameters.items() if p != "self"}
                    self.assertEqual((parameters, signature.return_annotation, inspect.iscoroutinefunction(told)),
                                     handed_on(name, function))
                    typing.get_type_hints(told, stub)
            for name, _ in functions(stub[cls]):
                self.assertTrue(hasattr(inner, name) or name == "id", f"{cls}.{name}")
        for name in ("get_sandbox", "list_sandboxes", "get_policies", "get_secrets"):
            self.assertIn("return", typing.get_type_hints(stub[name], stub))


if __name__ == "__main__":
    unittest.main()
