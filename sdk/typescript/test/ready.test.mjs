// What is not ready yet is waited for, in a budget; any other 503 is an answer.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, test } from 'node:test';
import { Berth, BusyError } from '../dist/index.js';
import { readyPause } from '../dist/client.js';

/** A server that gives these answers, the last one again and again: what a real one says for a moment cannot be held. */
async function saying(...answers) {
  const times = [];
  const server = http.createServer((ask, answer) => {
    const [status, body, headers = {}] = answers[Math.min(times.length, answers.length - 1)];
    times.push(Date.now());
    if (status === 0) return ask.socket.destroy();
    answer.writeHead(status, { 'Content-Type': 'application/json', ...headers });
    answer.end(JSON.stringify(body));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  after(() => server.close());
  return { times, client: (options) => new Berth({ baseUrl: `http://127.0.0.1:${server.address().port}`, apiKey: 'k', ...options }) };
}

const busy = (reason) => ({ code: 'busy', reason, message: 'sb_1 is still creating', remediation: '' });

test('PR-8: a 503 that is not "not yet" is one request', async () => {
  for (const reason of [undefined, 'node_unanswered', 'input_not_taken', 'anything']) {
    const server = await saying([503, busy(reason), { 'Retry-After': '0' }]);
    await assert.rejects(server.client().json('GET', '/v1/sandboxes/x'), BusyError);
    assert.equal(server.times.length, 1, String(reason));
  }
});

test('PR-8: "not yet" is asked again when the server says so, and then answered', async () => {
  for (const reason of ['not_ready', 'not_reached', 'under_way']) {
    const server = await saying([503, busy(reason), { 'Retry-After': '1' }], [503, busy(reason), { 'Retry-After': '0' }], [200, { id: 'x' }]);
    assert.deepEqual(await server.client().json('POST', '/v1/sandboxes', { json: {}, key: 'k1' }), { id: 'x' });
    assert.equal(server.times.length, 3);
    assert.ok(server.times[1] - server.times[0] >= 950, 'Retry-After was not waited for');
  }
});

test('PR-8: not without a key, and not longer than the budget', async () => {
  const never = await saying([503, busy('not_ready'), { 'Retry-After': '0' }]);
  await assert.rejects(never.client().json('POST', '/v1/sandboxes', { json: {} }), BusyError);
  assert.equal(never.times.length, 1);
  const began = Date.now();
  await assert.rejects(never.client({ readyBudget: 6000 }).json('GET', '/v1/x'), BusyError);
  assert.ok(Date.now() - began >= 3500 && never.times.length > 3, `${Date.now() - began} ms, ${never.times.length} requests`);
});

test('PR-8: the pauses are 2, 4, 8, 16 s, and end when a sixth of 60 s is left', () => {
  const pauses = [];
  for (let spent = 0, n = 0; ; n++) {
    const ms = readyPause(n, spent, 60_000, undefined);
    if (ms === undefined) break;
    pauses.push(ms);
    spent += ms;
  }
  assert.deepEqual(pauses, [2000, 4000, 8000, 16000, 16000]);
  assert.equal(readyPause(0, 0, 60_000, 7), 7000);
  assert.equal(readyPause(0, 0, 60_000, 51), undefined);
});

test('a server that comes back is given a moment: 503 behind a connection that failed is tried again', async () => {
  const server = await saying([0], [503, busy(undefined)], [200, { ok: true }]);
  assert.deepEqual(await server.client().json('GET', '/v1/x'), { ok: true });
  assert.equal(server.times.length, 3);
});
