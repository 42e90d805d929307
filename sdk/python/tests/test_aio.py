"""The same verbs for asyncio."""
import asyncio
import unittest

import berth
from berth import aio
from world import client, name


class Aio(unittest.IsolatedAsyncioTestCase):
    async def test_everything_at_once(self):
        async with aio.get_sandbox(client, name()) as box:
            await box.exec("true")
            results = await asyncio.gather(*[box.exec(["echo", str(i)]) for i in range(8)])
            self.assertEqual([r.stdout for r in results], [f"{i}\n" for i in range(8)])
            await box.write_file("/tmp/x", b"abc")
            self.assertEqual(b"".join([p async for p in box.read_file_stream("/tmp/x")]), b"abc")
            events = [n async for n, _ in box.exec_stream("echo a; echo b >&2")]
            self.assertEqual((events[0], events[-1]), ("started", "exit"))
            p = await box.start_process("echo up; sleep 100")
            await p.wait_for_log("up", timeout=30)
            await p.kill("KILL")
            self.assertEqual((await p.refresh()).status, "killed")
            self.assertEqual((await box.get_network())["mode"], "none")
            self.assertIsInstance(await aio.get_secrets(client).list(), list)
            session = await box.create_session("s")
            self.assertEqual((await session.exec("cd /tmp; pwd")).stdout, "/tmp\n")
            with self.assertRaises(berth.CommandTimeoutError):
                await box.exec("sleep 60", timeout=0.3)

    async def test_a_cancelled_task_kills_its_command(self):
        async with aio.get_sandbox(client, name()) as box:
            await box.exec("true")
            task = asyncio.create_task(box.exec("sleep 6543"))
            await asyncio.sleep(1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            for _ in range(100):
                left = await box.exec('pgrep -f "sleep 6543" || echo none')
                if left.stdout == "none\n":
                    return
                await asyncio.sleep(0.2)
            self.fail("the command still runs")


if __name__ == "__main__":
    unittest.main()
