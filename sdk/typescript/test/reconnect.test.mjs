// Connections that break are a pause, not a loss.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, test } from 'node:test';
import { ConnectionError, getSandbox, parseSSEStream } from '../dist/index.js';
import { breaking, client, random, sandbox } from './world.mjs';

test('output is whole over connections that break again and again, and the command ran once', async () => {
  const way = await breaking(() => 40_000 + random(60_000));
  const box = sandbox({}, client.at(way.url));
  await box.exec('rm -f /tmp/ran');
  const r = await box.exec('echo x >> /tmp/ran; i=0; while [ $i -lt 60000 ]; do echo line $i; i=$((i+1)); done');
  const want = Array.from({ length: 60000 }, (_, i) => `line ${i}\n`).join('');
  assert.ok(r.stdout === want, `${r.stdout.length} of ${want.length} bytes`);
  assert.ok(way.broken() > 3, `only ${way.broken()} connections broke`);
  assert.equal((await box.exec('cat /tmp/ran')).stdout, 'x\n');
});

test('what is written at once comes through connections that do not last that long', async () => {
  const way = await breaking(90_000);
  const box = sandbox({}, client.at(way.url));
  const r = await box.exec('head -c 1000000 /dev/zero | tr "\\0" x');
  assert.equal(r.stdoutBytes.length, 1_000_000);
});

test('logs of a process are whole, too', async () => {
  const way = await breaking(() => 30_000 + random(30_000));
  const box = sandbox({}, client.at(way.url));
  const p = await box.startProcess('seq 1 30000');
  let text = '';
  for await (const e of parseSSEStream(await box.streamProcessLogs(p.id))) if (e.type === 'stdout') text += e.data;
  assert.equal(text, Array.from({ length: 30000 }, (_, i) => `${i + 1}\n`).join(''));
});

test('a file is read on where its connection broke', async () => {
  const way = await breaking(() => 200_000 + random(300_000));
  const content = Buffer.alloc(3_000_000, 'berth file content ');
  const direct = sandbox();
  await direct.writeFile('/tmp/big', content);
  const through = getSandbox(client.at(way.url), direct.id);
  const parts = [];
  for await (const part of (await through.files()).bytes('/tmp/big')) parts.push(part);
  assert.ok(Buffer.concat(parts).equals(content));
  assert.ok(way.broken() > 2);
});

test('W-15: a stream that ends without an end is an error, not a success and not a hang', async () => {
  const server = http.createServer((ask, answer) => {
    if (/shells$|mkdir/.test(ask.url)) return answer.end('{}');
    if (ask.url === '/v1/sandboxes') return answer.end('{"id":"sb_c1_x"}');
    answer.writeHead(200, { 'Content-Type': 'text/event-stream' });
    answer.end(ask.url.endsWith('/exec') ? 'event: started\ndata: {"id":"x","pid":1}\n\nevent: stdout\ndata: {"offset":0,"data":"all is well"}\n\n' : '');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  after(() => server.close());
  const box = getSandbox(client.at(`http://127.0.0.1:${server.address().port}`), 'x');
  const events = async () => {
    const seen = [];
    for await (const e of parseSSEStream(await box.execStream('true'))) seen.push(e.type);
    return seen;
  };
  const [, seen] = await Promise.all([assert.rejects(box.exec('true'), ConnectionError), events()]);
  assert.deepEqual(seen, ['start', 'stdout', 'error']);
});

test('a server that is not there is an error in the end, not a hang', async () => {
  const way = await breaking(0);
  const box = sandbox({}, client.at(way.url));
  await assert.rejects(box.exec('true'), ConnectionError);
});
