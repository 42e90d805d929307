/**
 * One command. The server journals it under an id that is chosen here, so a
 * connection that breaks is only a pause: it goes on from its position, and
 * nothing is run twice.
 */
import type { Exec, ExecExit } from './api.js';
import { Encoding, Pieces, concat, dataOf, encoded, encodingOf, randomId } from './bytes.js';
import { Berth, Call, aborted, backoff, pause } from './client.js';
import { BerthError, ConnectionError, InvalidError, NotFoundError, errorFrom } from './errors.js';
import { checkOptions, type OptionNames } from './options.js';
import { readEvents } from './sse.js';

/** A missing exit code is null, never 0. */
export type { ExecExit };
export type ExecKind = ExecExit['kind'];
export type ExecRecord = Exec;

export interface ExecOptions {
  /** Milliseconds; the whole tree is killed then. */
  timeout?: number;
  cwd?: string;
  env?: Record<string, string>;
  /** Bytes or text for its standard input; without, it reads nothing. */
  stdin?: string;
  signal?: AbortSignal;
  /** Of `stdout`, `stderr` and what `onOutput` is told: text, or `base64`. The bytes are in `stdoutBytes` and `stderrBytes` anyway. */
  encoding?: Encoding | 'utf-8';
  /** Call `onOutput` while it runs. */
  stream?: boolean;
  onOutput?: (stream: 'stdout' | 'stderr', data: string) => void;
  onComplete?: (result: ExecResult) => void;
  onError?: (error: Error) => void;
}

const EXEC_OPTIONS: OptionNames<ExecOptions> = { timeout: true, cwd: true, env: true, stdin: true, signal: true, encoding: true, stream: true,
  onOutput: true, onComplete: true, onError: true };

export type OutputEvent =
  | { type: 'started'; id: string; pid: number }
  | { type: 'stdout' | 'stderr'; bytes: Uint8Array }
  | { type: 'gap'; lost: number }
  | { type: 'exit'; exit: ExecExit };

/** How a command ended, and all it wrote. */
export class ExecResult {
  readonly success: boolean;
  readonly exitCode: number | null;
  readonly kind: ExecKind;
  readonly signal: number;
  readonly stdoutBytes: Uint8Array;
  readonly stderrBytes: Uint8Array;
  readonly duration: number;
  readonly timestamp: string;
  /** Bytes that were not kept because the output was longer than a journal may be. */
  readonly gapBytes: number;
  /** Of a command in a shell: that shell had to be started anew. */
  readonly restarted: boolean;

  constructor(readonly command: string, readonly id: string, readonly sessionId: string, readonly exit: ExecExit,
    stdout: Uint8Array[], stderr: Uint8Array[], gap: number, readonly encoding: Encoding = 'utf8') {
    this.kind = exit.kind;
    this.exitCode = exit.exit_code;
    this.success = exit.kind === 'exited' && exit.exit_code === 0;
    this.signal = exit.signal;
    this.stdoutBytes = concat(stdout);
    this.stderrBytes = concat(stderr);
    this.duration = exit.wall_ms;
    this.timestamp = new Date().toISOString();
    this.gapBytes = gap;
    this.restarted = exit.restarted ?? false;
  }

  get stdout(): string {
    return encoded(this.stdoutBytes, this.encoding);
  }

  get stderr(): string {
    return encoded(this.stderrBytes, this.encoding);
  }
}

/** It did not end in its time, and was killed with everything it had started. */
export class CommandTimeoutError extends BerthError {
  constructor(readonly result: ExecResult, timeout: number | undefined) {
    super({ code: 'timed_out', message: `${result.command}: Command timeout after ${timeout ?? result.duration} ms`,
      remediation: 'Give it more time. Its output until then is in result.' });
  }
}

/** Nobody saw how it ended. It may have done all, some or nothing of its work. */
export class CommandLostError extends BerthError {
  constructor(readonly result: ExecResult) {
    super({ code: 'lost', message: `${result.command}: its end was not seen`,
      remediation: 'Look at what it should have done. Its output until then is in result.' });
  }
}

interface Ask {
  command?: string;
  argv?: string[];
  cwd?: string;
  env?: Record<string, string>;
  stdin?: string;
  timeout_ms?: number;
  shell?: string;
}

/** How often a stream is tried again without a single event coming in between, or lasting a while. */
const PATIENCE = 8;
const A_WHILE_MS = 10_000;

/**
 * The events of one exec from a position on, over as many connections as it takes.
 * `first` is the request that starts it, for the first connection.
 */
export async function* follow(client: Berth, base: string, id: string, position: number, signal?: AbortSignal,
  first?: () => Promise<Response>): AsyncGenerator<OutputEvent> {
  let failures = 0;
  let open = first;
  let known = first === undefined; // it may run: what is refused now is not its start
  for (;;) {
    const began = Date.now();
    try {
      const answer = open ? await open() : await attach(client, base, id, position, signal);
      open = undefined;
      if (answer.body === null) throw new ConnectionError({ code: 'connection', message: 'an answer without a body' });
      for await (const e of readEvents(answer.body)) {
        const data = JSON.parse(e.data);
        if (e.event === 'stdout' || e.event === 'stderr') {
          const bytes = dataOf(data);
          position = e.id !== '' ? Number(e.id) : position + bytes.length;
          failures = 0;
          yield { type: e.event, bytes };
        } else if (e.event === 'gap') {
          position = e.id !== '' ? Number(e.id) : position + data.bytes;
          yield { type: 'gap', lost: data.bytes };
        } else if (e.event === 'started') {
          yield { type: 'started', id: data.id ?? id, pid: data.pid };
        } else if (e.event === 'exit') {
          yield { type: 'exit', exit: data as ExecExit };
          return;
        } else if (e.event === 'error') {
          throw errorFrom(data, 500);
        }
      }
      throw new ConnectionError({ code: 'connection', message: `the stream of ${id} ended, and how it ended was not in it` });
    } catch (error) {
      if (signal?.aborted) throw aborted(signal);
      if (Date.now() - began > A_WHILE_MS) failures = 0;
      const lost = !(error instanceof BerthError) || error instanceof ConnectionError;
      if (!lost && !(known && [502, 503, 504].includes(error.status))) throw error;
      known = true;
      if (++failures > PATIENCE) {
        throw error instanceof BerthError ? error : new ConnectionError(
          { code: 'connection', message: `the output of ${id} broke off and could not be taken up again` }, 0, { cause: error });
      }
    }
    await pause(backoff(failures), signal);
  }
}

function attach(client: Berth, base: string, id: string, position: number, signal?: AbortSignal): Promise<Response> {
  const call: Call = { query: { from: position, follow: 1 }, headers: { Accept: 'text/event-stream' } };
  if (signal) call.signal = signal;
  return client.send('GET', `${base}/execs/${encodeURIComponent(id)}/output`, call);
}

/** Start a command and follow it to its end. An abort kills it. */
export async function* run(client: Berth, base: string, ask: Ask, signal?: AbortSignal): AsyncGenerator<OutputEvent> {
  if (signal?.aborted) throw aborted(signal);
  const id = randomId('ex_');
  const start: Call = { json: { ...ask, id, keep: true }, key: id, headers: { Accept: 'text/event-stream' } };
  if (signal) start.signal = signal;
  let over = false, started = false;
  try {
    for await (const e of follow(client, base, id, 0, signal, () => client.send('POST', `${base}/exec`, start))) {
      started = true;
      if (e.type === 'exit') over = true;
      yield e;
    }
  } catch (error) {
    over = !signal?.aborted;
    throw error;
  } finally {
    // Who stops listening wants it stopped.
    if (!over) await stop(client, base, id, started);
  }
}

/** A start that was cut off may still be under way: then there is no such command yet. */
async function stop(client: Berth, base: string, id: string, started: boolean): Promise<void> {
  for (let tries = started ? 1 : 10; tries > 0; tries--) {
    try {
      await kill(client, base, id, 'KILL');
      return;
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
    }
    if (tries > 1) await pause(100);
  }
}

export function kill(client: Berth, base: string, id: string, signal: string | number, graceMs?: number): Promise<ExecRecord> {
  return client.json<ExecRecord>('POST', `${base}/execs/${encodeURIComponent(id)}/kill`, {
    json: graceMs === undefined ? { signal } : { signal, grace_ms: graceMs }, key: randomId('kill_') });
}

/** Before anything runs: an encoding that is none is said, and not taken for another. */
export function checkedEncoding(given: string | undefined): Encoding {
  const encoding = encodingOf(given);
  if (encoding !== undefined) return encoding;
  throw new InvalidError({ code: 'invalid', message: `${given} is no encoding of output`,
    remediation: 'Give utf8 or base64; the bytes are in stdoutBytes and stderrBytes.' });
}

/** All of a command: events to the callbacks, one result at the end. */
export async function collect(events: AsyncGenerator<OutputEvent>, command: string, sessionId: string,
  options: ExecOptions): Promise<ExecResult> {
  const parts = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  const encoding = checkedEncoding(options.encoding);
  const pieces = { stdout: new Pieces(encoding), stderr: new Pieces(encoding) };
  const tells = options.onOutput !== undefined && options.stream !== false;
  let id = '';
  let gap = 0;
  try {
    for await (const e of events) {
      if (e.type === 'started') id = e.id;
      else if (e.type === 'gap') gap += e.lost;
      else if (e.type === 'exit') {
        const result = new ExecResult(command, id, sessionId, e.exit, parts.stdout, parts.stderr, gap, encoding);
        if (result.kind === 'timed_out') throw new CommandTimeoutError(result, options.timeout);
        if (result.kind === 'lost') throw new CommandLostError(result);
        options.onComplete?.(result);
        return result;
      } else {
        parts[e.type].push(e.bytes);
        if (tells) {
          const text = pieces[e.type].next(e.bytes);
          if (text !== '') options.onOutput?.(e.type, text);
        }
      }
    }
    throw new ConnectionError({ code: 'connection', message: `${command}: Stream ended without completion event` });
  } catch (error) {
    options.onError?.(error as Error);
    throw error;
  }
}

/** Events as the seed's `execStream` gives them. */
export interface ExecEvent {
  type: 'start' | 'stdout' | 'stderr' | 'complete' | 'error';
  timestamp: string;
  command?: string;
  data?: string;
  exitCode?: number | null;
  result?: ExecExit;
  error?: string;
}

export async function* execEvents(events: AsyncGenerator<OutputEvent>, command: string,
  encoding: Encoding = 'utf8'): AsyncGenerator<ExecEvent> {
  const pieces = { stdout: new Pieces(encoding), stderr: new Pieces(encoding) };
  const now = (): string => new Date().toISOString();
  yield { type: 'start', timestamp: now(), command };
  try {
    for await (const e of events) {
      if (e.type === 'stdout' || e.type === 'stderr') {
        const data = pieces[e.type].next(e.bytes);
        if (data !== '') yield { type: e.type, timestamp: now(), data };
      } else if (e.type === 'exit') {
        for (const stream of ['stdout', 'stderr'] as const) {
          const rest = pieces[stream].rest();
          if (rest !== '') yield { type: stream, timestamp: now(), data: rest };
        }
        if (e.exit.kind === 'lost') yield { type: 'error', timestamp: now(), error: `${command}: its end was not seen` };
        else yield { type: 'complete', timestamp: now(), exitCode: e.exit.exit_code, result: e.exit };
        return;
      }
    }
  } catch (error) {
    yield { type: 'error', timestamp: now(), error: (error as Error).message };
  }
}

export function askOf(command: string, options: ExecOptions, shell?: string): Ask {
  checkOptions('exec', options, EXEC_OPTIONS);
  const ask: Ask = { command };
  if (options.cwd !== undefined) ask.cwd = options.cwd;
  if (options.env !== undefined) ask.env = options.env;
  if (options.stdin !== undefined) ask.stdin = options.stdin;
  if (options.timeout !== undefined) ask.timeout_ms = options.timeout;
  if (shell !== undefined) ask.shell = shell;
  return ask;
}
