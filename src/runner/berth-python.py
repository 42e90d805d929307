"""The Python side of a code context. It runs in the sandbox, as one of its processes.

Descriptor 3 brings one JSON object a line: {"code": ..., "env": {...}}. Descriptor 4 takes notes, one
JSON object a line: results and the error. Descriptor 5 takes the number of each run that has ended.
The standard streams are the code's own: what it or a child of its prints goes out as it is printed.
"""
import ast
import base64
import builtins
import inspect
import json
import linecache
import os
import signal
import struct
import sys
import traceback
import types

REQUESTS, NOTES, DONE = 3, 4, 5
FORMAT_MAX = 4 << 20  # characters of one format of a result; a longer one is left out
TEXT_MAX = 256 << 10  # characters of its text; a longer one is cut
FIGURES = "berth_figures"

BY_METHOD = {
    "_repr_html_": "html", "_repr_markdown_": "markdown", "_repr_svg_": "svg", "_repr_png_": "png",
    "_repr_jpeg_": "jpeg", "_repr_latex_": "latex", "_repr_json_": "json", "_repr_javascript_": "javascript",
    "_repr_data_": "data",
}
BY_TYPE = {
    "text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg",
    "image/png": "png", "image/jpeg": "jpeg", "text/latex": "latex", "application/json": "json",
    "application/javascript": "javascript", "application/vnd.berth.chart+json": "chart",
    "application/vnd.plotly.v1+json": "chart", "application/vnd.vegalite.v4+json": "chart",
    "application/vnd.vegalite.v5+json": "chart", "application/vnd.berth.data+json": "data",
}
AS_JSON = ("json", "chart", "data")
AS_BYTES = ("png", "jpeg")


def plain(text):
    """Text that every JSON reader takes: no half characters, no NUL."""
    return str(text).replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def note(**members):
    """One line to Berth. An interrupt waits until it is written whole."""
    line = json.dumps(members).encode() + b"\n"
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        while line:
            line = line[os.write(NOTES, line):]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def json_text(value):
    """The value as JSON, or None: NaN and objects of other kinds have none."""
    try:
        return json.dumps(value, allow_nan=False)
    except Exception:
        return None


def shape(kind, value):
    """One format of a result as a string, or None if it is not what it says it is."""
    if kind in AS_JSON:
        value = json_text(value[0] if isinstance(value, tuple) and kind == "json" and len(value) == 2
                          and isinstance(value[1], dict) else value)
    elif kind in AS_BYTES:
        if isinstance(value, (bytes, bytearray)):
            value = base64.b64encode(value).decode()
    elif isinstance(value, (bytes, bytearray)):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str) or len(value) > FORMAT_MAX:
        return None
    return plain(value)


def columns(frame):
    """A table as its columns, or None."""
    try:
        return frame.to_dict("list")
    except Exception:
        return None


def formats(value):
    """Everything the value can be shown as. A method of its that fails is as if it were not there."""
    found = {}

    def take(kind, given):
        if given is not None and kind is not None and (text := shape(kind, given)) is not None:
            found[kind] = text

    if not isinstance(value, type):
        for name, kind in BY_METHOD.items():
            try:
                take(kind, getattr(value, name)())
            except Exception:
                pass
        try:
            bundle = value._repr_mimebundle_()
            bundle = bundle[0] if isinstance(bundle, tuple) else bundle
            for mime, given in bundle.items():
                take(BY_TYPE.get(mime), given)
        except Exception:
            pass
    pandas = sys.modules.get("pandas")  # never imported for that
    if isinstance(value, getattr(pandas, "DataFrame", ())) and "data" not in found:
        take("data", columns(value))
    if isinstance(value, (dict, list)) and "json" not in found:
        take("json", value)
    if "text" not in found:
        try:
            found["text"] = plain(repr(value))
        except Exception as e:
            found["text"] = f"<{type(value).__name__}: its repr() raised {type(e).__name__}>"
    if len(found["text"]) > TEXT_MAX:
        found["text"], found["truncated"] = found["text"][:TEXT_MAX], True
    return found


def display(*values, raw=False):
    """Show values as results of this run. With raw=True each is a dict of MIME types."""
    for value in values:
        if raw:
            found = {k: t for m, v in value.items() if (k := BY_TYPE.get(m)) and (t := shape(k, v)) is not None}
            note(type="result", main=False, **found)
        else:
            note(type="result", main=False, **formats(value))


class Figures:
    """A backend for matplotlib, if the image has it: show() makes its figures results."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != FIGURES:
            return None
        import importlib.machinery
        return importlib.machinery.ModuleSpec(name, Figures)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        from matplotlib.backends import backend_agg
        for name, value in vars(backend_agg).items():
            if not name.startswith("__"):
                setattr(module, name, value)
        module.show = lambda *a, **k: show_figures()


def show_figures():
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is None:
        return
    import io
    for number in plt.get_fignums():
        figure, image = plt.figure(number), io.BytesIO()
        figure.savefig(image, format="png", bbox_inches="tight")
        note(type="result", main=False, text=plain(repr(figure)), png=base64.b64encode(image.getvalue()).decode())
    plt.close("all")


def own_part(tb, name):
    """The traceback without the frames of this program."""
    while tb is not None and tb.tb_frame.f_code.co_filename != name:
        tb = tb.tb_next
    return tb


def line_of(error, name):
    """The line of this run that it was in, the innermost of several; 0 if none is known."""
    if isinstance(error, SyntaxError) and error.filename == name:
        return error.lineno or 0
    found = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == name]
    return found[-1] if found else 0


def report(error, name):
    lines = "".join(traceback.format_exception(type(error), error, own_part(error.__traceback__, name)))
    try:
        message = str(error)
    except Exception:
        message = ""
    note(type="error", name=type(error).__name__, message=plain(message)[:TEXT_MAX],
         traceback=[plain(line) for line in lines[-TEXT_MAX:].splitlines()], line_number=line_of(error, name))


class Context:
    def __init__(self):
        self.main = types.ModuleType("__main__")
        self.main.__builtins__ = builtins
        sys.modules["__main__"] = self.main
        self.loop = None

    def evaluate(self, code):
        """Run one compiled piece; it may await at its top."""
        value = eval(code, self.main.__dict__)
        if not (code.co_flags & inspect.CO_COROUTINE and inspect.iscoroutine(value)):
            return value
        import asyncio
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        task = self.loop.create_task(value)
        try:
            return self.loop.run_until_complete(task)
        except KeyboardInterrupt:
            task.cancel()
            self.loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            raise

    def execute(self, text, name):
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        body = ast.parse(text, name).body
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        # All of it is compiled before any of it runs.
        first = compile(ast.Module(body, []), name, "exec", flags)
        final = compile(ast.Expression(last.value), name, "eval", flags) if last else None
        self.evaluate(first)
        if final:
            value = self.evaluate(final)
            if value is not None:
                builtins._ = value
                note(type="result", main=True, **formats(value))
        show_figures()

    def run(self, request, number):
        name = f"<run {number}>"
        before = {k: os.environ.get(k) for k in request["env"]}
        os.environ.update(request["env"])
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.execute(request["code"], name)
        except SystemExit:
            raise
        except BaseException as error:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            report(error, name)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            for k, v in before.items():
                os.environ.pop(k, None)
                if v is not None:
                    os.environ[k] = v
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except Exception:
                    pass


def main():
    for fd in (REQUESTS, NOTES, DONE):
        os.set_inheritable(fd, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.argv = [""]
    sys.path.insert(0, "") if "" not in sys.path else None
    sys.meta_path.append(Figures)
    os.environ.setdefault("MPLBACKEND", "module://" + FIGURES)
    builtins.display = display
    context, pid = Context(), os.getpid()
    with os.fdopen(REQUESTS, "rb", closefd=False) as requests:
        for number, line in enumerate(requests, 1):
            try:
                context.run(json.loads(line), number)
            except KeyboardInterrupt as error:  # it came just when the run had ended
                report(error, "")
            finally:
                if os.getpid() != pid:  # the code forked, and this is the child: its part is over
                    os._exit(0)
            os.write(DONE, struct.pack(">I", number))


main()
