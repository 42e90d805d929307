// A real server, named by BERTH_URL and BERTH_API_KEY (tests/sdk/run.py starts one), and sandboxes that are gone afterwards.
import { readFile, readdir } from 'node:fs/promises';
import net from 'node:net';
import { after } from 'node:test';
import { Berth, getSandbox } from '../dist/index.js';

export const client = new Berth({ image: process.env.BERTH_IMAGE ?? 'tools' });
export const CASES = Number(process.env.BERTH_SDK_CASES ?? 40);

let count = 0;

/** A sandbox for the tests of one file. */
export function sandbox(options = {}, through = client) {
  const box = getSandbox(through, `ts-${process.pid}-${++count}`, options);
  after(async () => {
    await getSandbox(client, box.id).destroy().catch((error) => {
      if (error.code !== 'not_found') throw error;
    });
  });
  return box;
}

/** Every process of a sandbox, by the host: what a crash of it is to its users. */
export async function killAll(id) {
  let dirs;
  for (let i = 0; !dirs && i < 100; i++) {
    dirs = await readdir('/sys/fs/cgroup', { recursive: true, withFileTypes: true }).catch((error) => {
      if (error.code !== 'ENOENT') throw error;   // a group was removed while they were listed
    });
  }
  for (const d of dirs ?? []) {
    const path = `${d.parentPath ?? d.path}/${d.name}`;
    if (d.name !== 'cgroup.procs' || !path.includes(id)) continue;
    for (const pid of (await readFile(path, 'utf8').catch(() => '')).split('\n').filter(Boolean)) {
      try {
        process.kill(Number(pid), 'SIGKILL');
      } catch (error) {
        if (error.code !== 'ESRCH') throw error;
      }
    }
  }
}

/** Random numbers that a failing run can repeat: set BERTH_SEED. */
const seed = Number(process.env.BERTH_SEED ?? Date.now() % 1e9);
let state = seed >>> 0 || 1;
export function random(below) {
  state ^= state << 13;
  state >>>= 0;
  state ^= state >>> 17;
  state ^= state << 5;
  state >>>= 0;
  return state % below;
}
console.log(`# BERTH_SEED=${seed}`);

/** Bytes of every awkward kind: NUL, no UTF-8, cut characters, long lines, no newline at the end. */
export function randomBytes(most) {
  const n = random(most + 1);
  const kind = random(5);
  const out = Buffer.alloc(n);
  const word = Buffer.from(['line of text\n', '\0', '\xff\xfe', 'é€𝄞', '\n\n\r\n'][kind], kind === 2 ? 'latin1' : 'utf8');
  for (let i = 0; i < n; i++) out[i] = random(3) === 0 ? random(256) : word[i % word.length];
  return out;
}

/** A way to the server whose connections break after so many bytes of an answer. */
export async function breaking(bytes) {
  const to = new URL(client.baseUrl);
  let broken = 0;
  const server = net.createServer((near) => {
    const far = net.connect(Number(to.port), to.hostname);
    let left = typeof bytes === 'function' ? bytes() : bytes;
    near.pipe(far);
    far.on('data', (data) => {
      if (data.length >= left) {
        broken++;
        near.write(data.subarray(0, left), () => near.destroy());
        far.destroy();
      } else {
        left -= data.length;
        if (!near.write(data)) {
          far.pause();
          near.once('drain', () => far.resume());
        }
      }
    });
    far.on('end', () => near.end());
    near.on('error', () => far.destroy());
    far.on('error', () => near.destroy());
    near.on('close', () => far.destroy());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  after(() => server.close());
  return { url: `http://127.0.0.1:${server.address().port}`, broken: () => broken };
}
