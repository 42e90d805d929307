/** A command in the background. */
import { Encoding, Pieces, concat, encoded, fromBase64, randomId } from './bytes.js';
import { Berth } from './client.js';
import { BerthError } from './errors.js';
import { ExecRecord, checkedEncoding, follow, kill } from './exec.js';
import { checkOptions, type OptionNames } from './options.js';

/**
 * `running`; `completed`: it exited with 0; `failed`: with another code; `killed`: by a signal, at its timeout, or for memory;
 * `error`: it was started, and its end was not seen. One that could not be started is no process: `startProcess` throws.
 */
export type ProcessStatus = 'running' | 'completed' | 'failed' | 'killed' | 'error';

export interface ProcessOptions {
  processId?: string;
  cwd?: string;
  env?: Record<string, string>;
  timeout?: number;
  /** It waits for what `write` gives it; without, it reads nothing. */
  stdin?: boolean;
  /** Of what `onOutput` and `getLogs` tell: text, or `base64`. */
  encoding?: Encoding | 'utf-8';
  /**
   * Forget its record and output as soon as it has ended. This client does it: if it is gone by then, they stay until
   * `cleanupCompletedProcesses`.
   */
  autoCleanup?: boolean;
  onStart?: (process: Process) => void;
  onOutput?: (stream: 'stdout' | 'stderr', data: string) => void;
  onExit?: (code: number | null) => void;
  onError?: (error: Error) => void;
}

const PROCESS_OPTIONS: OptionNames<ProcessOptions> = { processId: true, cwd: true, env: true, timeout: true, stdin: true, encoding: true,
  autoCleanup: true, onStart: true, onOutput: true, onExit: true, onError: true };

export interface LogEvent {
  type: 'stdout' | 'stderr' | 'exit' | 'error';
  timestamp: string;
  data: string;
  processId: string;
  exitCode?: number | null;
}

const KILL_GRACE_MS = 5000;

/** It did not get ready in the time it was given. */
export class ProcessReadyTimeoutError extends BerthError {}
/** It ended before it was ready. */
export class ProcessExitedBeforeReadyError extends BerthError {}

function statusOf(e: ExecRecord): ProcessStatus {
  if (e.state === 'running') return 'running';
  switch (e.kind) {
    case 'exited':
      return e.exit_code === 0 ? 'completed' : 'failed';
    case 'lost':
      return 'error';
    default:
      return 'killed';
  }
}

/** What was asked for, without the shell that a text is given to. */
function commandOf(argv: string[]): string {
  return argv.length === 3 && argv[0] === '/bin/sh' && argv[1] === '-c' ? argv[2] ?? '' : argv.join(' ');
}

export class Process {
  readonly id: string;
  readonly pid: number;
  readonly command: string;
  readonly startTime: Date;
  status: ProcessStatus;
  endTime: Date | undefined;
  exitCode: number | null | undefined;
  readonly sessionId: string | undefined;

  constructor(readonly record: ExecRecord, private readonly client: Berth, private readonly base: string,
    private readonly encoding: Encoding = 'utf8') {
    this.id = record.id;
    this.pid = record.pid;
    this.command = commandOf(record.argv);
    this.startTime = new Date(record.started_at);
    this.status = statusOf(record);
    this.endTime = record.ended_at ? new Date(record.ended_at) : undefined;
    this.exitCode = record.state === 'ended' ? record.exit_code : undefined;
    this.sessionId = record.shell || record.group || undefined;
  }

  #path(rest = ''): string {
    return `${this.base}/execs/${encodeURIComponent(this.id)}${rest}`;
  }

  #take(e: ExecRecord): ProcessStatus {
    this.status = statusOf(e);
    this.endTime = e.ended_at ? new Date(e.ended_at) : undefined;
    this.exitCode = e.state === 'ended' ? e.exit_code : undefined;
    return this.status;
  }

  async getStatus(): Promise<ProcessStatus> {
    return this.#take(await this.client.json<ExecRecord>('GET', this.#path()));
  }

  /** The given signal to all of it; without one TERM, and KILL after five seconds. */
  async kill(signal?: string | number): Promise<void> {
    this.#take(await killProcess(this.client, this.base, this.id, signal));
  }

  getLogs(options: { encoding?: Encoding | 'utf-8' } = {}): Promise<{ stdout: string; stderr: string }> {
    return logs(this.client, this.base, this.id, checkedEncoding(options.encoding ?? this.encoding));
  }

  /** Bytes to its standard input, of one that was started with `stdin`; `end`: they are the last. */
  async write(data: string | Uint8Array, options: { end?: boolean } = {}): Promise<void> {
    await this.client.json('POST', this.#path('/stdin'), { query: { end: options.end || undefined }, body: data as BodyInit,
      headers: { 'Content-Type': 'application/octet-stream' } });
  }

  async waitForExit(timeout?: number): Promise<{ exitCode: number | null }> {
    const e = await this.#wait({ for: 'exit', timeout_ms: timeout });
    return { exitCode: e.exit_code ?? null };
  }

  /** A text, or a regular expression, in what it writes. */
  async waitForLog(pattern: string | RegExp, timeout?: number): Promise<{ line: string }> {
    const text = typeof pattern === 'string' ? pattern : `/${pattern.source}/${pattern.ignoreCase ? 'i' : ''}`;
    await this.#wait({ for: 'log', pattern: text, timeout_ms: timeout });
    const { stdout, stderr } = await this.getLogs({ encoding: 'utf8' });
    const found = (line: string): boolean => (typeof pattern === 'string' ? line.includes(pattern) : pattern.test(line));
    return { line: [...stdout.split('\n'), ...stderr.split('\n')].find(found) ?? '' };
  }

  async waitForPort(port: number, options: { timeout?: number } = {}): Promise<void> {
    await this.#wait({ for: 'port', port, timeout_ms: options.timeout });
  }

  async #wait(query: Record<string, string | number | undefined>): Promise<ExecRecord> {
    const answer = await this.client.json<{ ready: boolean; why: string; exec: ExecRecord }>('GET', this.#path('/wait'), { query });
    this.#take(answer.exec);
    if (answer.ready) return answer.exec;
    const message = `${this.command}: ${answer.why}`;
    if (answer.exec.state === 'ended') throw new ProcessExitedBeforeReadyError({ code: 'process_exited_before_ready', message });
    throw new ProcessReadyTimeoutError({ code: 'process_ready_timeout', message });
  }
}

export async function killProcess(client: Berth, base: string, id: string, signal?: string | number): Promise<ExecRecord> {
  return signal === undefined ? kill(client, base, id, 'TERM', KILL_GRACE_MS) : kill(client, base, id, signal);
}

/** All of a group, or all in the background. */
export async function killProcesses(client: Berth, base: string, group?: string): Promise<number> {
  const json = group === undefined ? { scope: 'background' } : { scope: 'group', group };
  return (await client.json<{ killed: number }>('POST', `${base}/execs/kill`, { json, key: randomId('kill_') })).killed;
}

interface Output {
  stdout?: string;
  stdout_base64?: string;
  stderr?: string;
  stderr_base64?: string;
  next: number;
  ended: boolean;
  output_bytes?: number;
}

/** Everything it has written so far. */
export async function logs(client: Berth, base: string, id: string,
  encoding: Encoding = 'utf8'): Promise<{ stdout: string; stderr: string }> {
  const all = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  for (let from = 0; ;) {
    const o = await client.json<Output>('GET', `${base}/execs/${encodeURIComponent(id)}/output`, { query: { from } });
    for (const stream of ['stdout', 'stderr'] as const) {
      const coded = o[`${stream}_base64`];
      all[stream].push(coded !== undefined ? fromBase64(coded) : new TextEncoder().encode(o[stream] ?? ''));
    }
    if (o.next === from) break;
    from = o.next;
  }
  return { stdout: encoded(concat(all.stdout), encoding), stderr: encoded(concat(all.stderr), encoding) };
}

export async function* logEvents(client: Berth, base: string, id: string, signal?: AbortSignal,
  encoding: Encoding = 'utf8'): AsyncGenerator<LogEvent> {
  const pieces = { stdout: new Pieces(encoding), stderr: new Pieces(encoding) };
  for await (const e of follow(client, base, id, 0, signal)) {
    const timestamp = new Date().toISOString();
    if (e.type === 'stdout' || e.type === 'stderr') {
      yield { type: e.type, timestamp, processId: id, data: pieces[e.type].next(e.bytes) };
    } else if (e.type === 'exit') {
      if (e.exit.kind === 'lost') yield { type: 'error', timestamp, processId: id, data: 'its end was not seen' };
      else yield { type: 'exit', timestamp, processId: id, data: e.exit.kind, exitCode: e.exit.exit_code };
    }
  }
}

export async function startProcess(client: Berth, base: string, command: string, options: ProcessOptions,
  more: Record<string, unknown>): Promise<Process> {
  checkOptions('startProcess', options, PROCESS_OPTIONS);
  const encoding = checkedEncoding(options.encoding);
  const id = options.processId ?? randomId('proc_');
  const json: Record<string, unknown> = { command, id, background: true, ...more };
  if (options.cwd !== undefined) json.cwd = options.cwd;
  if (options.env !== undefined) json.env = options.env;
  if (options.timeout !== undefined) json.timeout_ms = options.timeout;
  if (options.stdin) json.stdin_open = true;
  let process: Process;
  try {
    process = new Process(await client.json<ExecRecord>('POST', `${base}/exec`, { json, key: randomId('start_') }), client, base, encoding);
  } catch (error) {
    options.onError?.(error as Error);
    throw error;
  }
  options.onStart?.(process);
  if (options.onOutput || options.onExit || options.autoCleanup) void watch(client, base, process, options, encoding);
  return process;
}

async function watch(client: Berth, base: string, process: Process, options: ProcessOptions, encoding: Encoding): Promise<void> {
  const pieces = { stdout: new Pieces(encoding), stderr: new Pieces(encoding) };
  try {
    for await (const e of follow(client, base, process.id, 0)) {
      if (e.type === 'stdout' || e.type === 'stderr') options.onOutput?.(e.type, pieces[e.type].next(e.bytes));
      else if (e.type === 'exit') options.onExit?.(e.exit.exit_code);
    }
    if (options.autoCleanup) await client.json('DELETE', `${base}/execs/${encodeURIComponent(process.id)}`, { key: randomId('rm_') });
  } catch (error) {
    options.onError?.(error as Error);
  }
}
