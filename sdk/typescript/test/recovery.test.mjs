// To go on when a sandbox failed under the work, and to say what that cost.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as berth from '../dist/index.js';
import { recoveryPause } from '../dist/recovery.js';
import { client, killAll, sandbox } from './world.mjs';

const { withSandboxRecovery } = berth;

/** A client of the real server whose first creates are answered in its place. */
function failing(times, status = 500) {
  let left = times;
  const body = JSON.stringify({ code: 'internal', message: `no sandbox ${status}`, remediation: '' });
  return new berth.Berth({ baseUrl: client.baseUrl, image: client.image,
    fetch: (url, init) => (init.method === 'POST' && String(url).endsWith('/v1/sandboxes') && left-- > 0
      ? Promise.resolve(new Response(body, { status })) : fetch(url, init)) });
}

test('PR-7: two creates that fail, and the third attempt is through; four, and the error has all causes', async () => {
  const told = [];
  const box = sandbox({}, failing(2));
  const r = await withSandboxRecovery(box, (b) => b.exec('echo through'), { onRecovered: (what) => told.push([what.attempt, what.lost]) });
  assert.deepEqual([r.stdout, told], ['through\n', [[1, 'nothing'], [2, 'nothing']]]);
  await assert.rejects(withSandboxRecovery(sandbox({}, failing(100)), (b) => b.exec('true')),
    (e) => e instanceof berth.RecoveryError && e.causes.length === 4 && e.causes.every((c) => c.message === 'no sandbox 500') && e.recovered.length === 3);
});

test('PR-7: the pauses double, with jitter', () => {
  assert.deepEqual([0, 1, 2, 3].map((n) => recoveryPause(n, () => 1)), [100, 200, 400, 800]);
  assert.deepEqual([0, 1, 2, 3].map((n) => recoveryPause(n, () => 0)), [50, 100, 200, 400]);
});

test('PR-7: one that failed is woken with its files, one that is gone is made anew, and it is said what is lost', async () => {
  const told = [];
  const box = sandbox();
  await box.exec('echo kept > /root/f');
  const first = (await box.info()).id;
  await killAll(first);
  const cat = (b) => b.exec('cat /root/f || true');
  const onRecovered = ({ how, lost }) => told.push([how, lost]);
  assert.equal((await withSandboxRecovery(box, cat, { onRecovered })).stdout, 'kept\n');
  assert.deepEqual([told.at(-1), (await box.info()).id], [['woken', 'processes'], first]);
  await berth.getSandbox(client, first).destroy();
  assert.equal((await withSandboxRecovery(box, cat, { onRecovered })).stdout, '');
  assert.deepEqual(told.at(-1), ['new', 'everything']);
  assert.notEqual((await box.info()).id, first);
  await assert.rejects(withSandboxRecovery(berth.getSandbox(client, first), cat), berth.RecoveryError);
});

test('PR-7: behind the first progress, and of what is wrong in the work itself, nothing is repeated', async () => {
  let runs = 0;
  const box = sandbox();
  await assert.rejects(withSandboxRecovery(box, async (b, progress) => {
    runs++;
    await b.exec('true');
    progress();
    await killAll((await b.info()).id);
    await b.exec('sleep 1000');
  }), (e) => !(e instanceof berth.RecoveryError));
  assert.equal(runs, 1);
  await assert.rejects(withSandboxRecovery(sandbox(), async (b) => { runs++; await b.readFile('/no/such/file'); }), berth.FileNotFoundError);
  assert.equal(runs, 2);
});
