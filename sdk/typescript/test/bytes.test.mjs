// Random bytes on both descriptors come out as they went in: through JSON, events, the journal and the class.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CASES, client, random, randomBytes, sandbox } from './world.mjs';

const box = sandbox();
const COMMAND = 'cat /tmp/o & cat /tmp/e >&2; wait';
const LONG = 10 * 1024 * 1024;

function dataOf(o, name) {
  return o[`${name}_base64`] !== undefined ? Buffer.from(o[`${name}_base64`], 'base64') : Buffer.from(o[name] ?? '');
}

async function one(out, err) {
  await box.writeFile('/tmp/o', out);
  await box.writeFile('/tmp/e', err);
  const r = await box.exec(COMMAND);
  assert.ok(r.success);
  assert.ok(Buffer.from(r.stdoutBytes).equals(out), 'stdout through the class');
  assert.ok(Buffer.from(r.stderrBytes).equals(err), 'stderr through the class');
  const base = `/v1/sandboxes/${(await box.info()).id}`;
  if (out.length + err.length < 1024 * 1024) {
    const json = await client.json('POST', `${base}/exec`, { json: { command: COMMAND } });
    assert.ok(dataOf(json, 'stdout').equals(out), 'stdout through JSON');
    assert.ok(dataOf(json, 'stderr').equals(err), 'stderr through JSON');
  }
  const got = { stdout: [], stderr: [] };
  for (let from = 0; ;) {
    const o = await client.json('GET', `${base}/execs/${r.id}/output`, { query: { from } });
    for (const s of ['stdout', 'stderr']) got[s].push(dataOf(o, s));
    if (o.next === from) break;
    from = o.next;
  }
  assert.ok(Buffer.concat(got.stdout).equals(out), 'stdout of the journal');
  assert.ok(Buffer.concat(got.stderr).equals(err), 'stderr of the journal');
}

test(`EX-8: ${CASES} cases of random bytes`, async () => {
  for (let i = 0; i < CASES; i++) await one(randomBytes(random(4) === 0 ? 100_000 : 300), randomBytes(300));
});

test('EX-8: a line of 10 MB without an end', async () => {
  await one(Buffer.alloc(LONG, 'x'), Buffer.alloc(LONG, '\0'));
});
