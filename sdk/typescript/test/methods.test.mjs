// Every method of the class, against a real server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as berth from '../dist/index.js';
import { client, killAll, sandbox } from './world.mjs';

const box = sandbox({ sleepAfter: '30m', keepAlive: true });
const { collectFile, parseSSEStream, streamFile } = berth;

async function all(iterable) {
  const out = [];
  for await (const item of iterable) out.push(item);
  return out;
}

test('the class has every method of the seed', () => {
  const methods = `exec execStream startProcess listProcesses getProcess killProcess killAllProcesses cleanupCompletedProcesses
    getProcessLogs streamProcessLogs gitCheckout mkdir writeFile readFile readFileStream deleteFile renameFile moveFile listFiles
    exists exposePort unexposePort getExposedPorts isPortExposed validatePortToken createSession getSession setEnvVars
    createCodeContext runCode runCodeStream listCodeContexts deleteCodeContext destroy setLimits getNetwork setNetwork lockNetwork getSecurityEvents getEvents getUsage wake sleep execParallel`.split(/\s+/);
  for (const name of methods) assert.equal(typeof box[name], 'function', name);
});

test('exec gives all fields, and a failure is a result', async () => {
  const r = await box.exec("sh -c 'echo o; echo e >&2; exit 3'");
  assert.deepEqual([r.success, r.exitCode, r.stdout, r.stderr, r.kind], [false, 3, 'o\n', 'e\n', 'exited']);
  assert.equal(r.command, "sh -c 'echo o; echo e >&2; exit 3'");
  assert.ok(r.duration >= 0 && !Number.isNaN(Date.parse(r.timestamp)) && r.sessionId);
});

test('an option that there is not is an error, and not left out', async () => {
  const named = (name) => ({ name: 'TypeError', message: new RegExp(`no option "${name}"`) });
  assert.throws(() => berth.getSandbox(client, 'x', { memroy: 512 }), named('memroy'));
  assert.throws(() => new berth.Berth({ baseURL: 'http://127.0.0.1:1' }), named('baseURL'));
  await assert.rejects(box.exec('true', { timeoutMs: 5 }), named('timeoutMs'));
  await assert.rejects(box.startProcess('true', { onStdout() {} }), named('onStdout'));
  await assert.rejects(box.createSession({ sessionId: 'a' }), named('sessionId'));
  await assert.rejects(box.runCode('1', { lang: 'python' }), named('lang'));
  await assert.rejects(box.createCodeContext({ env: {} }), named('env'));
  await assert.rejects(box.writeFile('/tmp/f', 'x', { perm: '0600' }), named('perm'));
  await assert.rejects(box.readFile('/tmp/f', { enc: 'base64' }), named('enc'));
  await assert.rejects(box.mkdir('/tmp/d', { parents: true }), named('parents'));
  await assert.rejects(box.listFiles('/tmp', { hidden: true }), named('hidden'));
  await assert.rejects(box.gitCheckout('https://h.example/r', { dir: '/x' }), named('dir'));
  await assert.rejects(berth.listSandboxes(client, { label: {} }), named('label'));
  assert.equal((await box.exec('echo o', { timeoutMs: undefined })).stdout, 'o\n');
});

test('it sleeps and wakes with its files', async () => {
  const other = sandbox();
  await other.exec('cd /tmp; echo kept > /root/f');
  assert.equal((await other.sleep()).state, 'asleep');
  assert.equal((await other.wake()).state, 'ready');
  assert.equal((await other.exec('cat /root/f')).stdout, 'kept\n');
});

test('W-8 W-9: options are in the record before the first command runs', async () => {
  const record = await box.info();
  assert.equal(record.sleep_after_ms, 30 * 60 * 1000);
  assert.equal(record.keep_alive, true);
});

test('W-9: options for one that is there are carried out, or refused by name', async () => {
  const made = await sandbox({ limits: { pids: 99 }, labels: { a: '1' } }).info();
  const again = (options, through = client) => berth.getSandbox(through, made.name, options).info();
  assert.equal((await again({})).id, made.id);
  assert.equal((await again({}, new berth.Berth({ image: 'another' }))).id, made.id); // the client's is for new ones
  const changed = await again({ limits: { pids: 99 }, labels: { b: '2' }, keepAlive: true, sleepAfter: '1h' });
  assert.deepEqual([changed.id, changed.labels, changed.keep_alive, changed.sleep_after_ms], [made.id, { b: '2' }, true, 3_600_000]);
  for (const [options, says] of [[{ limits: { pids: 98 } }, 'pids is 99, not 98'], [{ image: 'another' }, 'not another'],
    [{ network: ['a.example.com'], labels: {} }, 'network differs']]) {
    await assert.rejects(again(options), (e) => e instanceof berth.ConflictError && e.reason === 'options_differ' && e.message.includes(says)
      && e.remediation !== '' && e.message.endsWith(` (${e.remediation})`));
  }
  assert.deepEqual((await again({})).labels, { b: '2' });
});

test('runtime, env and lifetime are given to a new one; variables of one that is there are set', async () => {
  const made = sandbox({ runtime: 'crun', env: { A: 'one', B: 'two' }, lifetime: '1h' });
  const record = await made.info();
  assert.deepEqual([record.runtime, record.env], ['crun', { A: 'one', B: 'two' }]);
  assert.ok(Math.abs(Date.parse(record.expires_at) - Date.now() - 3_600_000) < 600_000, record.expires_at);
  assert.equal((await made.exec('echo $A $B')).stdout, 'one two\n');
  const again = berth.getSandbox(client, made.id, { env: { B: 'three' } });
  assert.deepEqual((await again.info()).env, { A: 'one', B: 'three' });
  await assert.rejects(berth.getSandbox(client, made.id, { runtime: 'runsc' }).info(), (e) => e.reason === 'options_differ');
  await assert.rejects(sandbox({ env: { 'a b': '' } }).info(), { code: 'invalid' });
  await assert.rejects(sandbox({ lifetime: 'long' }).info(), /lifetime long is no time/);
});

test('an identity means one sandbox, whoever asks', async () => {
  const identity = { org: `o${process.pid}`, user: 'ann', session: `ts${process.pid}` };
  const one = berth.getSandbox(client, identity, { labels: { who: 'ann' } });
  const two = berth.getSandbox(client, { ...identity }, { labels: { who: 'bob' } });
  const [a, b] = [await one.info(), await two.info()];
  assert.deepEqual([one.id, two.id, a.id, b.labels], [a.id, a.id, b.id, { who: 'bob' }]);
  assert.match(a.identity_key, /^ses-/);
  assert.equal((await one.exec('echo in')).stdout, 'in\n');
  assert.equal((await one.destroy()).state, 'gone');
});

test('sandboxes are listed by label and state', async () => {
  const mark = `m${process.pid}`;
  const boxes = [sandbox({ labels: { mark, n: '1' } }), sandbox({ labels: { mark, n: '2' } }), sandbox({ labels: { mark } })];
  const ids = [];
  for (const b of boxes) ids.push((await b.info()).id);
  const found = async (options) => (await berth.listSandboxes(client, options)).map((r) => r.id).sort();
  assert.deepEqual(await found({ labels: { mark } }), [...ids].sort());
  assert.deepEqual(await found({ labels: { mark, n: '2' } }), [ids[1]]);
  assert.deepEqual(await found({ labels: { mark }, selector: 'n!=1', state: 'ready' }), [ids[1], ids[2]].sort());
  assert.deepEqual(await found({ labels: { mark }, state: 'asleep' }), []);
  assert.ok((await found()).length >= 3);
});

test('commands side by side, each by itself', async () => {
  await box.exec('rm -f /tmp/side.*');
  const meet = (n) => `touch /tmp/side.${n}; while [ ! -e /tmp/side.${1 - n} ]; do sleep 0.05; done; echo ${n}; exit ${n}`;
  const results = await box.execParallel([meet(0), meet(1)], { timeout: 30_000 });
  assert.deepEqual(results.map((r) => [r.stdout, r.exitCode]), [['0\n', 0], ['1\n', 1]]);
  assert.deepEqual((await box.execParallel(['pwd', 'echo $X'], { env: { X: 'x' }, concurrency: 1 })).map((r) => r.stdout), ['/workspace\n', 'x\n']);
  await assert.rejects(box.execParallel(['sleep 60', 'true'], { timeout: 300 }), berth.CommandTimeoutError);
  assert.deepEqual(await box.execParallel([]), []);
});

test('policies are added, listed and removed', async () => {
  const policies = new berth.Policies(client);
  const made = await policies.add({ scope: 'org', subject: `p${process.pid}`, isolation: 'shared' });
  assert.deepEqual([made.isolation, made.runtime], ['shared', '']);
  assert.ok((await policies.list()).some((p) => p.id === made.id));
  assert.equal((await policies.remove(made.id)).id, made.id);
  assert.ok(!(await policies.list()).some((p) => p.id === made.id));
});

test('the disk is counted when that is asked for', async () => {
  await box.exec('head -c 10485760 /dev/urandom > /root/ten');
  const usage = await box.getUsage({ fresh: true });
  assert.ok(usage.disk_bytes >= 10 << 20 && !Number.isNaN(Date.parse(usage.disk_at)), JSON.stringify(usage));
  assert.equal((await box.getUsage()).disk_at, undefined);
  await box.exec('rm /root/ten');
});

test('variables that two set at once are both set', async () => {
  const names = ['R0', 'R1', 'R2'];
  await Promise.all(names.map((name) => berth.getSandbox(client, box.id).setEnvVars({ [name]: 'x' })));
  const { env } = await box.info();
  assert.deepEqual(names.filter((name) => env[name] === 'x'), names);
  await box.setEnvVars({ R0: undefined });
  assert.equal((await box.info()).env.R0, undefined);
});

test('state persists between commands of a session', async () => {
  await box.exec('cd /tmp; export A=1; f() { echo "f $1"; }');
  assert.equal((await box.exec('echo $PWD $A $(f x)')).stdout, '/tmp 1 f x\n');
  await box.exec('cd /workspace');
});

test('W-14: cwd, env and timeout are honoured, and do not leak into the next command', async () => {
  const r = await box.exec('echo $PWD $ONLY', { cwd: '/tmp', env: { ONLY: 'here' } });
  assert.equal(r.stdout, '/tmp here\n');
  assert.equal((await box.exec('echo $PWD [$ONLY]')).stdout, '/workspace []\n');
  await assert.rejects(box.exec('sleep 60', { timeout: 300 }), (e) => {
    assert.ok(e instanceof berth.CommandTimeoutError);
    assert.equal(e.result.kind, 'timed_out');
    assert.equal(e.result.exitCode, null);
    return true;
  });
  assert.equal((await box.exec('pgrep -f "sleep 60" || echo none')).stdout, 'none\n');
});

test('callbacks are called as it happens', async () => {
  const heard = [];
  let complete;
  const r = await box.exec('echo one; echo two >&2', { stream: true, onOutput: (s, d) => heard.push([s, d]), onComplete: (x) => { complete = x; } });
  assert.deepEqual(heard, [['stdout', 'one\n'], ['stderr', 'two\n']]);
  assert.equal(complete, r);
  let error;
  await assert.rejects(box.exec('sleep 60', { timeout: 200, onError: (e) => { error = e; } }));
  assert.ok(error instanceof berth.CommandTimeoutError);
});

test('an abort while the start is under way leaves no command', async () => {
  for (const wait of [0, 1, 2, 5]) {
    const stop = new AbortController();
    const gone = box.exec('sleep 4322', { signal: stop.signal });
    setTimeout(() => stop.abort(), wait);
    await assert.rejects(gone, { name: 'AbortError' });
  }
  assert.equal((await box.exec('pgrep -f "sleep 4322" || echo none')).stdout, 'none\n');
});

test('an abort stops the command, not only the listening', async () => {
  const stop = new AbortController();
  const gone = box.exec('echo up; sleep 4321', { signal: stop.signal, onOutput: () => stop.abort() });
  await assert.rejects(gone, { name: 'AbortError' });
  assert.equal((await box.exec('pgrep -f "sleep 4321" || echo none')).stdout, 'none\n');
  await assert.rejects(box.exec('echo never', { signal: AbortSignal.abort() }), { name: 'AbortError' });
});

test('W-15: execStream ends in complete with the exit code', async () => {
  const events = await all(parseSSEStream(await box.execStream('echo hi; exit 4')));
  assert.deepEqual(events.map((e) => e.type), ['start', 'stdout', 'complete']);
  assert.equal(events[1].data, 'hi\n');
  assert.equal(events[2].exitCode, 4);
});

test('EX-2: encoding says how output is told, and no other is taken for one', async () => {
  const print = "printf 'a\\377\\303\\251'; printf '\\000' >&2";
  const heard = [];
  const r = await box.exec(print, { encoding: 'base64', onOutput: (stream, data) => heard.push([stream, data]) });
  const bytes = Buffer.from([97, 255, 195, 169]);
  assert.deepEqual([r.stdout, r.stderr, Buffer.from(r.stdoutBytes)], [bytes.toString('base64'), 'AA==', bytes]);
  assert.deepEqual(Buffer.concat(heard.filter(([s]) => s === 'stdout').map(([, d]) => Buffer.from(d, 'base64'))), bytes);
  assert.equal((await box.exec(print)).stdout, 'a\ufffdé');
  const events = await all(parseSSEStream(await box.execStream(print, { encoding: 'base64' })));
  const told = events.filter((e) => e.type === 'stdout').map((e) => Buffer.from(e.data, 'base64'));
  assert.deepEqual(Buffer.concat(told), bytes);
  assert.equal((await box.execParallel([print], { encoding: 'base64' }))[0].stderr, 'AA==');
  for (const call of [() => box.exec('touch /tmp/ran-anyway', { encoding: 'latin9' }), () => box.startProcess('touch /tmp/ran-anyway', { encoding: 'x' }),
    () => box.execParallel(['touch /tmp/ran-anyway'], { encoding: 'x' })]) {
    await assert.rejects(call(), berth.InvalidError);
  }
  assert.equal((await box.exists('/tmp/ran-anyway')).exists, false);
});

test('PC-1: encoding of a process, and autoCleanup forgets it when it has ended', async () => {
  const heard = [];
  let ended;
  const exited = new Promise((resolve) => { ended = resolve; });
  const p = await box.startProcess("printf '\\303'; sleep 0.3; printf '\\251\\377'", { encoding: 'base64',
    onOutput: (_, data) => heard.push(Buffer.from(data, 'base64')), onExit: ended });
  assert.equal(await exited, 0);
  const bytes = Buffer.from([195, 169, 255]);
  assert.deepEqual(Buffer.concat(heard), bytes);
  assert.equal((await p.getLogs()).stdout, bytes.toString('base64'));
  assert.equal((await p.getLogs({ encoding: 'utf8' })).stdout, 'é\ufffd');
  assert.equal((await box.getProcessLogs(p.id, { encoding: 'base64' })).stdout, bytes.toString('base64'));
  const told = (await all(parseSSEStream(await box.streamProcessLogs(p.id, { encoding: 'base64' })))).filter((e) => e.type === 'stdout');
  assert.deepEqual(Buffer.concat(told.map((e) => Buffer.from(e.data, 'base64'))), bytes);
  const text = [];
  const cut = await box.startProcess("printf '\\303'; sleep 0.3; printf '\\251'", { onOutput: (_, data) => text.push(data) });
  await cut.waitForExit(30_000);
  for (const until = Date.now() + 30_000; text.join('') === '' && Date.now() < until;) await box.exec('sleep 0.05');
  assert.equal(text.join(''), 'é');
  await box.startProcess('true', { processId: 'forgotten', autoCleanup: true });
  for (const until = Date.now() + 30_000; (await box.getProcess('forgotten')) !== null;) assert.ok(Date.now() < until, 'it is still there');
  assert.notEqual(await box.getProcess(p.id), null);
  await box.cleanupCompletedProcesses();
});

test('PC-2: every status, and a start that fails is an error', async () => {
  const statusAfter = async (command, options) => {
    const p = await box.startProcess(command, options);
    await p.waitForExit(30_000);
    return p.getStatus();
  };
  assert.equal((await box.startProcess('sleep 1000', { processId: 'st-running' })).status, 'running');
  assert.equal(await statusAfter('true'), 'completed');
  assert.equal(await statusAfter('exit 3'), 'failed');
  assert.equal(await statusAfter('kill -SEGV $$'), 'killed');
  assert.equal(await statusAfter('sleep 1000', { timeout: 200 }), 'killed');
  await box.killProcess('st-running');
  assert.equal((await box.getProcess('st-running')).status, 'killed');
  const told = [];
  await assert.rejects(box.startProcess('true', { cwd: '/no/such/directory', onError: (e) => told.push(e) }), berth.BerthError);
  assert.equal(told.length, 1);
  await box.cleanupCompletedProcesses();
  const other = sandbox();
  const lost = await other.startProcess('sleep 1000');
  await killAll((await other.info()).id);
  for (const until = Date.now() + 60_000; (await lost.getStatus()) === 'running';) assert.ok(Date.now() < until, 'it is still running');
  assert.equal(lost.status, 'error');
  assert.equal(lost.exitCode, null);
});

test('processes: start, list, get, logs, stream, kill, cleanup', async () => {
  const p = await box.startProcess('echo ready; echo oops >&2; sleep 300', { processId: 'server-1', env: { X: '1' }, cwd: '/tmp' });
  assert.deepEqual([p.id, p.status], ['server-1', 'running']);
  assert.ok(p.pid > 0);
  await assert.rejects(box.startProcess('true', { processId: 'server-1' }), berth.ConflictError);
  assert.equal((await p.waitForLog('ready', 30_000)).line, 'ready');
  await p.waitForLog(/^OO+ps$/i, 30_000);
  assert.deepEqual((await box.listProcesses()).map((x) => x.id), ['server-1']);
  assert.equal((await box.getProcess('server-1')).command, p.command);
  assert.equal(await box.getProcess('nobody'), null);
  const logs = await box.getProcessLogs('server-1');
  assert.deepEqual([logs.stdout, logs.stderr], ['ready\n', 'oops\n']);
  const streaming = all(parseSSEStream(await box.streamProcessLogs('server-1')));
  await box.killProcess('server-1');
  assert.equal((await streaming).at(-1).type, 'exit');
  assert.equal(await p.getStatus(), 'killed');
  const done = await box.startProcess('exit 3');
  assert.equal((await done.waitForExit(30_000)).exitCode, 3);
  assert.equal(await done.getStatus(), 'failed');
  assert.equal(await box.cleanupCompletedProcesses(), 2);
  assert.deepEqual(await box.listProcesses(), []);
});

test('W-12: a given signal is delivered, and nothing else', async () => {
  const p = await box.startProcess('trap "echo got usr1" USR1; echo up; while :; do sleep 0.1; done');
  await p.waitForLog('up', 30_000);
  await p.kill('USR1');
  await p.waitForLog('got usr1', 30_000);
  assert.equal(await p.getStatus(), 'running');
  await box.startProcess('sleep 1000');
  assert.equal(await box.killAllProcesses(), 2);
  assert.equal(await p.getStatus(), 'killed');
  await box.cleanupCompletedProcesses();
});

test('a process that ends before it is ready is told apart from one that is slow', async () => {
  const gone = await box.startProcess('echo bye');
  await assert.rejects(gone.waitForLog('never', 30_000), berth.ProcessExitedBeforeReadyError);
  const slow = await box.startProcess('sleep 100');
  await assert.rejects(slow.waitForLog('never', 300), berth.ProcessReadyTimeoutError);
  await assert.rejects(slow.waitForPort(9, { timeout: 300 }), berth.ProcessReadyTimeoutError);
  await slow.kill('KILL');
  await box.cleanupCompletedProcesses();
});

test('files: write, read, list, move, delete', async () => {
  await box.mkdir('/workspace/d/e', { recursive: true });
  await assert.rejects(box.mkdir('/workspace/x/y/z'), berth.FileNotFoundError);
  await box.writeFile('/workspace/d/a.txt', 'grüße\n');
  const text = await box.readFile('/workspace/d/a.txt');
  assert.deepEqual([text.content, text.encoding, text.isBinary, text.mimeType, text.size], ['grüße\n', 'utf-8', false, 'text/plain', 8]);
  const raw = new Uint8Array([0, 255, 10, 13, 128]);
  await box.writeFile('/workspace/d/e/b.bin', raw);
  const coded = await box.readFile('/workspace/d/e/b.bin');
  assert.deepEqual([coded.encoding, coded.isBinary, Buffer.from(coded.content, 'base64')], ['base64', true, Buffer.from(raw)]);
  await box.writeFile('/workspace/d/e/c.bin', Buffer.from(raw).toString('base64'), { encoding: 'base64' });
  assert.deepEqual(Buffer.from(await collectFile(await box.readFileStream('/workspace/d/e/c.bin'))), Buffer.from(raw));
  const parts = await all(streamFile(await box.readFileStream('/workspace/d/a.txt')));
  assert.equal(Buffer.concat(parts).toString(), 'grüße\n');
  await assert.rejects(all(streamFile(await box.readFileStream('/workspace/none'))));
  const described = async (path, content) => {
    await box.writeFile(path, content);
    const events = await all(parseSSEStream(await box.readFileStream(path)));
    assert.deepEqual(events.filter((e) => e.type === 'metadata').length, 1);
    const { mimeType, isBinary, size } = events.find((e) => e.type === 'metadata');
    return [mimeType, isBinary, size];
  };
  assert.deepEqual(await described('/tmp/described/notes', 'plain'), ['text/plain', false, 5]);
  assert.deepEqual(await described('/tmp/described/empty', ''), ['text/plain', false, 0]);
  assert.deepEqual(await described('/tmp/described/long', 'é'.repeat(50_000)), ['text/plain', false, 100_000]);
  assert.deepEqual(await described('/tmp/described/bytes', new Uint8Array([1, 0, 255])), ['application/octet-stream', true, 3]);
  assert.deepEqual(await described('/tmp/described/p.png', new Uint8Array([137, 80, 78, 71, 0])), ['image/png', true, 5]);
  await box.exec('chmod 640 /tmp/described/long && ln -sf long /tmp/described/link');
  const linked = (await all(parseSSEStream(await box.readFileStream('/tmp/described/link'))))[0];
  const real = await (await box.files()).stat('/tmp/described/long');
  assert.deepEqual([linked.type, linked.size, linked.mode, linked.modifiedAt.slice(0, 19)],
    ['metadata', 100_000, '0640', real.modified_at.slice(0, 19)]);
  const [directory] = await all(parseSSEStream(await box.readFileStream('/tmp/described')));
  assert.equal(directory.type, 'error');
  const list = await box.listFiles('/workspace/d', { recursive: true });
  assert.deepEqual(list.files.map((f) => [f.relativePath, f.type]).sort(),
    [['a.txt', 'file'], ['e', 'directory'], ['e/b.bin', 'file'], ['e/c.bin', 'file']]);
  await box.renameFile('/workspace/d/a.txt', '/workspace/d/b.txt');
  await box.moveFile('/workspace/d/b.txt', '/workspace/d/e/b.txt');
  assert.equal((await box.exists('/workspace/d/a.txt')).exists, false);
  assert.equal((await box.exists('/workspace/d/e/b.txt')).exists, true);
  await assert.rejects(box.deleteFile('/workspace/d'), berth.IsDirectoryError);
  await box.deleteFile('/workspace/d/e/b.txt');
  await assert.rejects(box.readFile('/workspace/d/e/b.txt'), (e) => e instanceof berth.FileNotFoundError && e.status === 404);
});

test('files are not behind a command that runs', async () => {
  let up;
  const running = new Promise((resolve) => { up = resolve; });
  const slow = box.exec('echo up; until [ -e /tmp/beside ]; do sleep 0.05; done; echo slept', { timeout: 60_000, onOutput: up });
  await running;
  await box.writeFile('/tmp/beside', 'x');   // the command ends by it
  assert.equal((await slow).stdout, 'up\nslept\n');
});

test('sessions have a directory and variables of their own', async () => {
  const a = await box.createSession({ id: 'a', env: { WHO: 'a' }, cwd: '/tmp' });
  const b = await box.createSession();
  await b.exec('export WHO=b');
  assert.equal((await a.exec('echo $WHO $PWD')).stdout, 'a /tmp\n');
  assert.equal((await b.exec('echo $WHO')).stdout, 'b\n');
  assert.equal((await (await box.getSession('a')).exec('echo $WHO')).stdout, 'a\n');
  await assert.rejects(box.getSession('nobody'), berth.NotFoundError);
  await assert.rejects(box.createSession({ id: 'a' }), berth.ConflictError);
  const [x, y] = await Promise.all([a.exec('sleep 0.5; echo x'), b.exec('echo y')]);
  assert.deepEqual([x.stdout, y.stdout], ['x\n', 'y\n']);
  await box.deleteSession('a');
  await assert.rejects(box.getSession('a'), berth.NotFoundError);
});

test('W-12 PC-5: a session ends its own processes and no others', async () => {
  const [a, b] = [await box.createSession({ id: 'pa' }), await box.createSession({ id: 'pb' })];
  const mine = [await a.startProcess('sleep 1000'), await a.startProcess('sleep 1000')];
  const theirs = [await b.startProcess('sleep 1000'), await box.startProcess('sleep 1000')];
  assert.deepEqual((await b.listProcesses()).filter((p) => p.sessionId === 'pa').length, 2);
  assert.equal(await a.killAllProcesses(), 2);
  for (const p of mine) assert.equal(await p.getStatus(), 'killed');
  for (const p of theirs) assert.equal(await p.getStatus(), 'running');
  assert.equal(await b.cleanupCompletedProcesses(), 0);
  assert.equal(await a.cleanupCompletedProcesses(), 2);
  await box.deleteSession('pb');
  assert.equal(await theirs[0].getStatus(), 'killed');
  assert.equal(await box.killAllProcesses(), 1);
  assert.equal(await box.cleanupCompletedProcesses(), 2);
  await box.deleteSession('pa');
});

test('W-18: variables are data, whatever is in them', async () => {
  const value = `it's "$(touch /tmp/pwned)" \`id\`\nnewline \\ end`;
  await box.setEnvVars({ AWKWARD: value });
  assert.equal((await box.exec('printf %s "$AWKWARD"')).stdout, value);
  const p = await box.startProcess('printf %s "$AWKWARD"');
  await p.waitForExit(30_000);
  assert.equal((await p.getLogs()).stdout, value);
  assert.equal((await box.exists('/tmp/pwned')).exists, false);
  await assert.rejects(box.setEnvVars({ 'a;b': 'x' }), /no name of a variable/);
  await box.setEnvVars({ AWKWARD: undefined });
  assert.equal((await box.exec('echo [$AWKWARD]')).stdout, '[]\n');
  await box.cleanupCompletedProcesses();
});

test('code: contexts, results, errors, streams', async () => {
  const py = await box.createCodeContext({ language: 'python', cwd: '/tmp' });
  await box.runCode('x = 20', { context: py });
  const r = await box.runCode('import os\nprint("out"); os.system("echo child"); x + 1', { context: py });
  assert.equal(r.kind, 'ok');
  assert.equal(r.logs.stdout.join(''), 'out\nchild\n');
  assert.equal(r.results.at(-1).text, '21');
  const other = await box.createCodeContext({ language: 'python' });
  const unknown = await box.runCode('x', { context: other });
  assert.equal(unknown.error.name, 'NameError');
  const wrong = await box.runCode('def (:', { context: py });
  assert.deepEqual([wrong.kind, wrong.error.name, wrong.error.lineNumber], ['error', 'SyntaxError', 1]);
  assert.equal((await box.runCode('const a = 1;\n\nnull.x', { language: 'js' })).error.lineNumber, 3);
  const shown = await box.runCode("display({'application/vnd.berth.data+json': {'a': [1]}, 'application/javascript': 'f()'}, raw=True)");
  assert.deepEqual([shown.results[0].data, shown.results[0].javascript], [{ a: [1] }, 'f()']);
  const js = await box.runCode('const v = await Promise.resolve(6); v * 7', { language: 'javascript' });
  assert.equal(js.results.at(-1).text, '42');
  const events = await all(parseSSEStream(await box.runCodeStream('print("streamed")', { context: py })));
  assert.deepEqual(events.map((e) => e.type), ['stdout', 'end']);
  assert.ok((await box.listCodeContexts()).some((c) => c.id === py.id));
  await box.deleteCodeContext(py.id);
  await assert.rejects(box.runCode('1', { context: py }), berth.NotFoundError);
});

test('git: a checkout, and what can go wrong with it', async () => {
  await box.exec('rm -rf /tmp/src && mkdir /tmp/src && cd /tmp/src && git init -q -b main . && echo hi > f && git add f && ' +
    'git -c user.name=t -c user.email=t@example.com commit -qm one; cd /workspace');
  const done = await box.gitCheckout('file:///tmp/src', { branch: 'main' });
  assert.deepEqual([done.success, done.branch, done.targetDir], [true, 'main', '/workspace/src']);
  assert.equal((await box.readFile('/workspace/src/f')).content, 'hi\n');
  const again = await box.gitCheckout('file:///tmp/src', { sessionBranch: 'session/1', reuse: true });
  assert.deepEqual([again.branch, again.commit, again.targetDir], ['session/1', done.commit, '/workspace/src']);
  await assert.rejects(box.gitCheckout('file:///tmp/src', { branch: 'nope', targetDir: '/workspace/n' }), berth.GitRefNotFoundError);
  await assert.rejects(box.gitCheckout('file:///tmp/nothing', { targetDir: '/workspace/m' }), berth.GitRepositoryNotFoundError);
});

test('W-21 W-22 W-27: ports say not yet, with a type', async () => {
  for (const call of [() => box.exposePort(8080), () => box.unexposePort(8080), () => box.getExposedPorts(), () => box.isPortExposed(8080),
    () => box.validatePortToken(8080, 't')]) await assert.rejects(call(), berth.NotYetError);
});

test('errors have a type, a sentence and a way out', async () => {
  const nobody = berth.getSandbox(new berth.Berth({ baseUrl: client.baseUrl, apiKey: 'wrong', retries: 0 }), 'x');
  await assert.rejects(nobody.exec('true'), (e) => e instanceof berth.UnauthenticatedError && e.remediation !== '' && e.requestId !== '');
  const nowhere = berth.getSandbox(new berth.Berth({ baseUrl: 'http://127.0.0.1:1', retries: 0 }), 'x');
  await assert.rejects(nowhere.exec('true'), berth.ConnectionError);
});

test('what it may use, and what it used', async () => {
  const used = sandbox({ profile: 'validation', limits: { pids: 99 } });
  const made = await used.info();
  assert.deepEqual([made.profile, made.memory_mb, made.pids], ['validation', 512, 99]);
  const changed = await used.setLimits({ memory_mb: 256 });
  assert.deepEqual([changed.memory_mb, changed.pids, changed.limits_in_force], [256, 99, true]);
  await assert.rejects(used.setLimits({ memory_mb: 1 }), /memory_mb must be/);
  await used.exec('true');
  const { id } = await used.destroy();
  const usage = await used.getUsage();   // and makes no other one for that
  assert.deepEqual([usage.sandbox, usage.gone, usage.cpu_ms > 0], [id, true, true]);
  const events = await used.getEvents();
  assert.equal(events.at(-1).to, 'gone');
  assert.deepEqual(await used.getEvents(events.at(-1).seq), []);
});

test('what it may reach', async () => {
  const reaching = sandbox({ network: ['api.example.com'] });
  const made = await reaching.getNetwork();
  assert.deepEqual([made.mode, made.in_force, made.rules.map((r) => r.host)], ['allow', true, ['api.example.com']]);
  await reaching.runCode("import socket\ntry: socket.gethostbyname('evil.example.org')\nexcept OSError: pass");
  let refused = [];
  for (const until = Date.now() + 30_000; !refused.length && Date.now() < until;) refused = await reaching.getSecurityEvents();
  assert.deepEqual(refused.map((e) => [e.kind, e.name]), [['name', 'evil.example.org']]);
  assert.deepEqual(await reaching.getSecurityEvents(refused[0].seq), []);
  assert.equal((await reaching.setNetwork({ mode: 'allow', bootstrap: [{ host: '*.example.net' }] })).phase, 'bootstrap');
  assert.equal((await reaching.lockNetwork()).phase, 'locked');
  assert.equal((await reaching.setNetwork([])).mode, 'none');
  assert.equal((await reaching.setNetwork('open')).mode, 'open');
  assert.equal((await reaching.getNetwork()).in_force, true);
  assert.equal((await reaching.setNetwork('none')).mode, 'none');
  await assert.rejects(reaching.setNetwork(['https://api.example.com']), /is no host name/);
  await reaching.destroy();
  assert.deepEqual([(await reaching.getNetwork()).in_force, await reaching.getSecurityEvents()], [false, refused]);
});

test('secrets', async () => {
  const secrets = new berth.Secrets(client);
  const made = await secrets.set('ts-token', { host: 'api.example.com', value: 'Bearer 0123456789', paths: ['/v1/*'] });
  assert.deepEqual([made.host, made.header, made.paths], ['api.example.com', 'Authorization', ['/v1/*']]);
  const all = await secrets.list();
  assert.ok(all.some((k) => k.name === 'ts-token') && !JSON.stringify(all).includes('0123456789'));
  assert.equal((await secrets.remove('ts-token')).name, 'ts-token');
  await assert.rejects(secrets.remove('ts-token'), berth.NotFoundError);
});

test('destroy gives the receipt', async () => {
  const gone = sandbox();
  await gone.exec('true');
  const receipt = await gone.destroy();
  assert.equal(receipt.state, 'gone');
  assert.equal(receipt.receipt.process, 'absent');
  assert.deepEqual(await gone.destroy(), receipt);   // and makes no other one for that
});
