"""The same verbs for asyncio: each call is made on a thread, streams come as async iterators."""
import asyncio
import threading

from . import policies as _policies
from . import sandbox as _sync
from . import secrets as _secrets

STREAMS = {"exec_stream", "stream_process_logs", "read_file_stream", "run_code_stream"}
_END = object()


async def _iterate(make):
    """The items of a blocking iterator; leaving early closes it."""
    loop, queue, room, stopped = asyncio.get_running_loop(), asyncio.Queue(), threading.Semaphore(64), threading.Event()

    def pump():
        items = iter(())
        try:
            items = make()
            for item in items:
                room.acquire()
                if stopped.is_set():
                    break
                loop.call_soon_threadsafe(queue.put_nowait, (item, None))
            else:
                loop.call_soon_threadsafe(queue.put_nowait, (_END, None))
        except BaseException as why:  # noqa: BLE001 - it is raised on the other side
            loop.call_soon_threadsafe(queue.put_nowait, (_END, why))
        finally:
            close = getattr(items, "close", None)
            if close:
                close()

    worker = threading.Thread(target=pump, daemon=True)
    worker.start()
    try:
        while True:
            item, why = await queue.get()
            room.release()
            if why is not None:
                raise why
            if item is _END:
                return
            yield item
    finally:
        stopped.set()
        room.release()


class _Async:
    def __init__(self, inner):
        self._inner = inner

    @property
    def id(self):
        return self._inner.id

    def __getattr__(self, name):
        member = getattr(self._inner, name)
        if name in STREAMS:
            return lambda *args, **options: _iterate(lambda: member(*args, **options))
        if not callable(member):
            return member

        async def call(*args, **options):
            return _wrap(await asyncio.to_thread(member, *args, **options))
        return call


class AsyncProcess(_Async):
    def stream_logs(self):
        return _iterate(self._inner.stream_logs)


class AsyncSession(_Async):
    async def exec(self, command, **options):
        """A task that is cancelled kills its command."""
        stop = threading.Event()
        try:
            return await asyncio.to_thread(self._inner.exec, command, stop=stop, **options)
        except asyncio.CancelledError:
            stop.set()
            raise


class AsyncSandbox(AsyncSession):
    async def __aenter__(self):
        await asyncio.to_thread(self._inner.__enter__)
        return self

    async def __aexit__(self, *_):
        await asyncio.to_thread(self._inner.destroy)


class AsyncPolicies(_Async):
    pass


class AsyncSecrets(_Async):
    pass


def _wrap(value):
    if isinstance(value, list):
        return [_wrap(v) for v in value]
    if isinstance(value, _sync.processes.Process):
        return AsyncProcess(value)
    if isinstance(value, _sync.Session):
        return AsyncSession(value)
    return value


def get_sandbox(client, ident, **options):
    return AsyncSandbox(_sync.Sandbox(client, ident, **options))


async def list_sandboxes(client, **options):
    return await asyncio.to_thread(_sync.list_sandboxes, client, **options)


def get_policies(client):
    return AsyncPolicies(_policies.Policies(client))


def get_secrets(client):
    return AsyncSecrets(_secrets.Secrets(client))
