// Trees, changes, terminals and images.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import * as berth from '../dist/index.js';
import { client, sandbox } from './world.mjs';

const box = sandbox();
const work = mkdtempSync(join(tmpdir(), 'berth-ts-'));
after(() => rmSync(work, { recursive: true }));

async function bytesOf(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts);
}

test('a tree goes in and out as a tar', async () => {
  const files = await box.files();
  execFileSync('sh', ['-c', 'mkdir -p in/d && echo a > in/a && echo b > in/d/b && tar -C in -cf in.tar .'], { cwd: work });
  assert.ok(await files.unpackTree('/workspace/tree', readFileSync(join(work, 'in.tar'))) >= 3);
  assert.equal((await box.readFile('/workspace/tree/d/b')).content, 'b\n');
  writeFileSync(join(work, 'out.tar'), await bytesOf(await files.packTree('/workspace/tree')));
  execFileSync('sh', ['-c', 'mkdir out && tar -C out -xf out.tar && diff -r in out'], { cwd: work });
  await assert.rejects(files.packTree('/no/such/tree'), berth.FileNotFoundError);
});

test('changes are told as they happen', async () => {
  const files = await box.files();
  await files.mkdir('/workspace/watched');
  let watching;
  const ready = new Promise((resolve) => { watching = resolve; });
  const seen = (async () => {
    for await (const change of files.watch('/workspace/watched', { onWatching: watching })) if (change.path.endsWith('/new')) return change;
  })();
  await ready;
  await box.exec('echo x > /workspace/watched/new');
  assert.equal((await seen).path, '/workspace/watched/new');
  await assert.rejects(files.watch('/no/such/tree').next(), berth.FileNotFoundError);
});

test('standard input in parts', async () => {
  const p = await box.startProcess('cat', { stdin: true });
  await p.write('a\n');
  await p.write(new Uint8Array([98, 10]), { end: true });
  await p.waitForExit(30_000);
  assert.equal((await p.getLogs()).stdout, 'a\nb\n');
});

test('terminals are made, seen, resized and ended', async () => {
  const terminals = await box.terminals();
  const t = await terminals.create({ argv: ['sh', '-c', 'stty size; read line; stty size; exit 4'], cols: 100, rows: 30, id: 'term-1' });
  assert.deepEqual([t.id, t.record.state, t.record.cols], ['term-1', 'running', 100]);
  assert.deepEqual((await terminals.list()).map((x) => x.id), ['term-1']);
  await t.resize(132, 43);
  assert.equal((await (await terminals.get('term-1')).refresh()).cols, 132);
  if (globalThis.WebSocket) {
    const socket = t.attach();
    let shown = '';
    const end = await new Promise((resolve, reject) => {
      socket.onerror = reject;
      socket.onmessage = ({ data }) => {
        if (typeof data === 'string') {
          const word = JSON.parse(data);
          if (word.type === 'attached') socket.send(new TextEncoder().encode('\n'));
          if (word.type === 'exit') resolve(word);
        } else shown += Buffer.from(data).toString();
      };
    });
    assert.deepEqual([end.exit_code, shown.includes('43 132')], [4, true]);
    const replay = await bytesOf((async function* () {
      for await (const e of t.output()) if (e.type === 'stdout') yield e.bytes;
    })());
    assert.equal(replay.toString(), shown);
  } else assert.throws(() => t.attach(), berth.UnsupportedError);
  assert.equal((await t.end()).state, 'ended');
  assert.deepEqual(await terminals.list(), []);
});

test('images are imported, listed and removed; what cannot be pulled is an error', async () => {
  const images = new berth.Images(client);
  const name = `ts-image-${process.pid}`;
  execFileSync('sh', ['-c', 'mkdir -p root/bin && echo x > root/bin/x && tar -C root -cf root.tar .'], { cwd: work });
  const told = [];
  const made = await images.import(name, readFileSync(join(work, 'root.tar')), { onProgress: (p) => told.push(p.phase) });
  assert.deepEqual([made.name, made.source, told.length > 0], [name, 'import', true]);
  assert.ok((await images.list()).some((i) => i.name === name && i.digest === made.digest));
  await images.remove(name);
  assert.ok(!(await images.list()).some((i) => i.name === name));
  await assert.rejects(images.import(name, new Uint8Array([1, 2, 3])), berth.BerthError);
  await assert.rejects(images.pull('127.0.0.1:1/nothing:1'), berth.BerthError);
});
