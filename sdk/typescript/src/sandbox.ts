/** A sandbox and its sessions: the class an agent works with. */
import type * as Api from './api.js';
import { Encoding, randomId } from './bytes.js';
import { Berth, pause } from './client.js';
import { Code, CodeContext, ContextOptions, Execution, RunCodeOptions } from './code.js';
import { BerthError, ConflictError, NotFoundError, NotYetError } from './errors.js';
import { ExecOptions, ExecRecord, ExecResult, OutputEvent, askOf, checkedEncoding, collect, execEvents, run } from './exec.js';
import { FileContent, Files } from './files.js';
import { checkOptions, type OptionNames } from './options.js';
import { Process, ProcessOptions, killProcess, killProcesses, logEvents, logs, startProcess } from './process.js';
import { writeEvents } from './sse.js';
import { Terminals } from './terminal.js';

/**
 * Of one that is there, `sleepAfter`, `keepAlive`, `labels` and the variables of `env` are changed if they differ; `image`, `runtime`,
 * `profile`, `limits` and `network` must be as it has them (ConflictError, `reason` `options_differ`), or be left out.
 */
export interface SandboxOptions {
  /** Another server than the client's. */
  baseUrl?: string;
  /** Sleep after so long without use: seconds, or `30s`, `10m`, `2h`. */
  sleepAfter?: number | string;
  /** Never sleep. */
  keepAlive?: boolean;
  /** The image of a new one; default: the client's. */
  image?: string;
  labels?: Record<string, string>;
  /** The engine of a new one: `crun` or `runsc`; default: the server's, or a policy's. */
  runtime?: string;
  /** Variables of every command; `setEnvVars` changes them. */
  env?: Record<string, string>;
  /** A new one is deleted after so long, whatever it does: seconds, or `10m`, `2h`. */
  lifetime?: number | string;
  /** The limits of a new one, by name and one by one. */
  profile?: string;
  limits?: Limits;
  /** What a new one may reach: a whole policy, names, or a mode that needs no more. */
  network?: Policy;
}

const SANDBOX_OPTIONS: OptionNames<SandboxOptions> = { baseUrl: true, sleepAfter: true, keepAlive: true, image: true, labels: true, runtime: true,
  env: true, lifetime: true, profile: true, limits: true, network: true };

/** The whole of it, the names it allows, every public address, or nothing. */
export type Policy = Api.NetworkPolicy | string[] | 'open' | 'none';

/** For whom a sandbox is: which one that means is decided by policies, once. */
export type Identity = NonNullable<Api.SandboxSpec['identity']>;

export type Limits = Partial<Omit<Api.Profile, 'name' | 'built_in'>>;

export interface SessionOptions {
  id?: string;
  name?: string;
  env?: Record<string, string>;
  cwd?: string;
}

const SESSION_OPTIONS: OptionNames<SessionOptions> = { id: true, name: true, env: true, cwd: true };

export type SandboxRecord = Api.Sandbox;
export type Receipt = Api.Gone;

/** What was done about a sandbox that failed, and what is lost by that. */
export interface Recovered {
  /** `there`: it had not failed; `woken`, with its files; `new`: a new one is made by the next use. */
  how: 'there' | 'woken' | 'new' | 'unknown';
  lost: 'nothing' | 'processes' | 'everything' | 'unknown';
  why: string;
}

export const WORKSPACE = '/workspace';
const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const DELETE_POLL_MS = 500;
const DELETE_WAIT_MS = 120_000;

export function milliseconds(after: number | string, what = 'sleepAfter'): number {
  if (typeof after === 'number') return after * 1000;
  const m = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(after);
  const unit = UNITS[m?.[2] ?? ''];
  if (m === null || unit === undefined) {
    throw new BerthError({ code: 'invalid', message: `${what} ${after} is no time`, remediation: 'Write 30s, 10m or 2h.' });
  }
  return Math.round(Number(m[1]) * unit);
}

/** Where commands, files and code go: a whole sandbox, or one session of it. */
export abstract class Workspace {
  constructor(protected readonly client: Berth) {}

  /** The id of the session commands run in. */
  abstract readonly sessionId: string;

  /** `/v1/sandboxes/ID`, once the sandbox is there. */
  protected abstract base(): Promise<string>;

  /** Its shell, made on first use. */
  protected abstract shell(): Promise<string>;

  // -- commands --------------------------------------------------------------------------------

  /**
   * In this session's shell: what it changes (directory, variables, functions)
   * is there for the next one. A command that fails is a result, not an error;
   * one that ran out of time, or whose end was not seen, is an error.
   */
  async exec(command: string, options: ExecOptions = {}): Promise<ExecResult> {
    checkedEncoding(options.encoding);
    return collect(this.events(command, options), command, this.sessionId, options);
  }

  /**
   * Side by side: each by itself, not in the session's shell, at most `concurrency` (8) at a time. Results in the order of the
   * commands. What `exec` would throw is thrown when all have ended.
   */
  async execParallel(commands: string[], options: ExecOptions & { concurrency?: number } = {}): Promise<ExecResult[]> {
    const { concurrency = 8, ...each } = options;
    checkedEncoding(each.encoding);
    const base = await this.base();
    const cwd = each.cwd ?? (await this.cwd());
    const results: ExecResult[] = new Array(commands.length);
    const failures: unknown[] = [];
    let next = 0;
    const work = async (): Promise<void> => {
      for (let i = next++; i < commands.length; i = next++) {
        const command = commands[i] as string;
        try {
          const ask = askOf(command, { ...each, cwd }, undefined);
          results[i] = await collect(run(this.client, base, ask, each.signal), command, this.sessionId, each);
        } catch (error) {
          failures.push(error);
        }
      }
    };
    await Promise.all(Array.from({ length: Math.max(1, Math.min(concurrency, commands.length)) }, work));
    if (failures.length > 0) throw failures[0];
    return results;
  }

  /** The same as it happens, byte for byte. */
  async *events(command: string, options: ExecOptions = {}): AsyncGenerator<OutputEvent> {
    yield* run(this.client, await this.base(), askOf(command, options, await this.shell()), options.signal);
  }

  /** Events for `parseSSEStream`. */
  async execStream(command: string, options: ExecOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return writeEvents(execEvents(this.events(command, options), command, checkedEncoding(options.encoding)));
  }

  // -- processes -------------------------------------------------------------------------------

  async startProcess(command: string, options: ProcessOptions = {}): Promise<Process> {
    return startProcess(this.client, await this.base(), command, { cwd: await this.cwd(), ...options }, { group: this.sessionId });
  }

  /** Where processes start; the sandbox's directory for work. */
  protected async cwd(): Promise<string> {
    await this.shell();
    return WORKSPACE;
  }

  async listProcesses(): Promise<Process[]> {
    const base = await this.base();
    const found: Process[] = [];
    for (let after: string | undefined; ;) {
      const page = await this.client.json<{ execs: ExecRecord[]; next: string }>('GET', `${base}/execs`, { query: { background: 1, after } });
      for (const e of page.execs) found.push(new Process(e, this.client, base));
      if (!page.next) return found;
      after = page.next;
    }
  }

  /** Null if there is none. */
  async getProcess(id: string): Promise<Process | null> {
    const base = await this.base();
    try {
      return new Process(await this.client.json<ExecRecord>('GET', `${base}/execs/${encodeURIComponent(id)}`), this.client, base);
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
  }

  async killProcess(id: string, signal?: string | number): Promise<void> {
    await killProcess(this.client, await this.base(), id, signal);
  }

  /** Whose processes are killed and cleaned up: a sandbox's all. */
  protected get group(): string | undefined {
    return undefined;
  }

  async killAllProcesses(): Promise<number> {
    return killProcesses(this.client, await this.base(), this.group);
  }

  async cleanupCompletedProcesses(): Promise<number> {
    const mine = (p: Process): boolean => this.group === undefined || p.record.group === this.group;
    const done = (await this.listProcesses()).filter((p) => p.record.state === 'ended' && mine(p));
    const base = await this.base();
    for (const p of done) {
      await this.client.json('DELETE', `${base}/execs/${encodeURIComponent(p.id)}`, { key: randomId('rm_') });
    }
    return done.length;
  }

  async getProcessLogs(id: string, options: { encoding?: Encoding | 'utf-8' } = {}): Promise<{ stdout: string; stderr: string; processId: string }> {
    return { ...(await logs(this.client, await this.base(), id, checkedEncoding(options.encoding))), processId: id };
  }

  async streamProcessLogs(id: string, options: { signal?: AbortSignal; encoding?: Encoding | 'utf-8' } = {}): Promise<ReadableStream<Uint8Array>> {
    return writeEvents(logEvents(this.client, await this.base(), id, options.signal, checkedEncoding(options.encoding)));
  }

  // -- files -----------------------------------------------------------------------------------

  async files(): Promise<Files> {
    return new Files(this.client, await this.base());
  }

  /** Commands on a pty: to see, and to type into. */
  async terminals(): Promise<Terminals> {
    return new Terminals(this.client, await this.base());
  }

  async mkdir(path: string, options: { recursive?: boolean } = {}) {
    return (await this.files()).mkdir(path, options);
  }

  async writeFile(path: string, content: FileContent, options: { encoding?: string; mode?: string } = {}) {
    return (await this.files()).write(path, content, options);
  }

  async readFile(path: string, options: { encoding?: string } = {}) {
    return (await this.files()).read(path, options);
  }

  /** Events for `streamFile` and `collectFile`. */
  async readFileStream(path: string): Promise<ReadableStream<Uint8Array>> {
    return writeEvents((await this.files()).readEvents(path));
  }

  async deleteFile(path: string) {
    return (await this.files()).removeFile(path);
  }

  async renameFile(oldPath: string, newPath: string) {
    return (await this.files()).move(oldPath, newPath);
  }

  async moveFile(sourcePath: string, destinationPath: string) {
    return (await this.files()).move(sourcePath, destinationPath);
  }

  async listFiles(path: string, options: { recursive?: boolean; includeHidden?: boolean } = {}) {
    return (await this.files()).list(path, options);
  }

  async exists(path: string) {
    return (await this.files()).exists(path);
  }

  /**
   * `branch` or `ref` must be there remotely. `sessionBranch` is the one to work on: found here, tracked, or made from them. With `reuse` a clone
   * of this repository that is at `targetDir` already is used; without, it is in the way.
   */
  async gitCheckout(repoUrl: string, options: { branch?: string; ref?: string; sessionBranch?: string; reuse?: boolean; targetDir?: string;
    depth?: number; username?: string; token?: string; timeout?: number } = {}) {
    checkOptions('gitCheckout', options, { branch: true, ref: true, sessionBranch: true, reuse: true, targetDir: true, depth: true, username: true,
      token: true, timeout: true });
    const name = repoUrl.replace(/\/+$/, '').split('/').pop()?.replace(/\.git$/, '') || 'repository';
    const json: Record<string, unknown> = { url: repoUrl, path: options.targetDir ?? `${await this.cwd()}/${name}` };
    for (const word of ['branch', 'ref', 'reuse', 'depth', 'username', 'token'] as const) {
      if (options[word] !== undefined) json[word] = options[word];
    }
    if (options.sessionBranch !== undefined) json.session_branch = options.sessionBranch;
    if (options.timeout !== undefined) json.timeout_ms = options.timeout;
    const done = await this.client.json<{ path: string; commit: string; branch: string }>('POST', `${await this.base()}/git/checkout`,
      { json, key: randomId('git_') });
    return { success: true as const, repoUrl, branch: done.branch, targetDir: done.path, commit: done.commit, timestamp: new Date().toISOString() };
  }

  // -- code ------------------------------------------------------------------------------------

  async #code(): Promise<Code> {
    return new Code(this.client, await this.base());
  }

  async createCodeContext(options: ContextOptions = {}): Promise<CodeContext> {
    return (await this.#code()).create(options);
  }

  async runCode(code: string, options: RunCodeOptions = {}): Promise<Execution> {
    return (await this.#code()).run(code, options);
  }

  async runCodeStream(code: string, options: RunCodeOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return writeEvents((await this.#code()).events(code, options));
  }

  async listCodeContexts(): Promise<CodeContext[]> {
    return (await this.#code()).list();
  }

  async deleteCodeContext(id: string): Promise<void> {
    return (await this.#code()).remove(id);
  }

  // -- ports: with previews ----------------------------------------------------------------------

  async exposePort(_port: number, _options?: { hostname?: string; name?: string }): Promise<{ url: string; port: number; name?: string }> {
    throw new NotYetError('exposePort');
  }

  async unexposePort(_port: number): Promise<void> {
    throw new NotYetError('unexposePort');
  }

  async getExposedPorts(_hostname?: string): Promise<{ url: string; port: number; status: string }[]> {
    throw new NotYetError('getExposedPorts');
  }

  async isPortExposed(_port: number): Promise<boolean> {
    throw new NotYetError('isPortExposed');
  }

  async validatePortToken(_port: number, _token: string): Promise<boolean> {
    throw new NotYetError('validatePortToken');
  }
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

function exports(env: Record<string, string | undefined>): string {
  return Object.entries(env).map(([k, v]) => (v === undefined ? `unset ${k}` : `export ${k}=${quoted(v)}`)).join('\n');
}

function checkNames(env: Record<string, string | undefined>): void {
  for (const name of Object.keys(env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      throw new BerthError({ code: 'invalid', message: `${JSON.stringify(name)} is no name of a variable`,
        remediation: 'Use letters, digits and _, and no digit first.' });
    }
  }
}

/** Names are the policy that allows them, and nothing else. */
function sameMap(a: Record<string, string>, b: Record<string, string> = {}): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

function policyOf(network: Policy): Api.NetworkPolicy {
  if (typeof network === 'string') return { mode: network };
  if (!Array.isArray(network)) return network;
  return network.length ? { mode: 'allow', rules: network.map((host) => ({ host })) } : { mode: 'none' };
}

export class Session extends Workspace {
  constructor(client: Berth, readonly id: string, private readonly at: () => Promise<string>, private readonly start: string) {
    super(client);
  }

  get sessionId(): string {
    return this.id;
  }

  protected base(): Promise<string> {
    return this.at();
  }

  protected async shell(): Promise<string> {
    return this.id;
  }

  protected override async cwd(): Promise<string> {
    return this.start;
  }

  protected override get group(): string {
    return this.id;
  }

  /** For what this session runs from now on. */
  async setEnvVars(env: Record<string, string | undefined>): Promise<void> {
    checkNames(env);
    const done = await this.exec(exports(env));
    if (!done.success) throw new BerthError({ code: 'invalid', message: `the variables could not be set: ${done.stderr}` });
  }
}

export class Sandbox extends Workspace {
  #there: Promise<SandboxRecord> | undefined;
  #shell: Promise<string> | undefined;
  #gone: string | undefined;
  readonly sessionId: string;
  readonly #identity: Identity | undefined;
  #id: string;

  constructor(client: Berth, of: string | Identity, private readonly options: SandboxOptions = {}) {
    super(options.baseUrl === undefined ? client : client.at(options.baseUrl));
    checkOptions('getSandbox', options, SANDBOX_OPTIONS);
    this.#identity = typeof of === 'string' ? undefined : of;
    this.#id = typeof of === 'string' ? of : '';
    this.sessionId = typeof of === 'string' ? `sandbox-${of}`.slice(0, 63) : 'sandbox-identity';
  }

  /** Its name or id as it was given; of one for an identity, its id, once it is there. */
  get id(): string {
    return this.#id;
  }

  /** Its record; it is made by the first call that needs it. */
  async info(): Promise<SandboxRecord> {
    return this.client.json<SandboxRecord>('GET', await this.base());
  }

  protected async base(): Promise<string> {
    this.#there ??= this.#ensure().catch((error) => {
      this.#there = undefined;
      throw error;
    });
    return `/v1/sandboxes/${(await this.#there).id}`;
  }

  /** All options are part of the one request that makes it, or of one that changes it. */
  async #ensure(): Promise<SandboxRecord> {
    const wanted: Record<string, unknown> = {};
    if (this.options.sleepAfter !== undefined) wanted.sleep_after_ms = milliseconds(this.options.sleepAfter);
    if (this.options.keepAlive !== undefined) wanted.keep_alive = this.options.keepAlive;
    if (this.options.labels !== undefined) wanted.labels = this.options.labels;
    const { env } = this.options;
    if (env !== undefined) checkNames(env);
    const record = this.#identity === undefined && this.id.startsWith('sb_') ? await this.client.json<SandboxRecord>('GET', `/v1/sandboxes/${this.id}`)
      : await this.#create(env === undefined ? wanted : { ...wanted, env });
    if (this.#identity !== undefined) this.#id = record.id;
    const differs = ('sleep_after_ms' in wanted && wanted.sleep_after_ms !== record.sleep_after_ms) ||
      ('keep_alive' in wanted && wanted.keep_alive !== record.keep_alive) ||
      (this.options.labels !== undefined && !sameMap(this.options.labels, record.labels)) ||
      Object.entries(env ?? {}).some(([name, value]) => record.env?.[name] !== value);
    if (!differs) return record;
    return this.client.json<SandboxRecord>('PATCH', `/v1/sandboxes/${record.id}`,
      { json: env === undefined ? wanted : { ...wanted, set_env: env }, key: randomId('patch_') });
  }

  /** A new one with all options, or the one that is there: what can be changed of it need not be as wanted, the rest must. */
  async #create(wanted: Record<string, unknown>): Promise<SandboxRecord> {
    const { image } = this.options;
    try {
      return await this.#post(image ?? this.client.image, wanted);
    } catch (error) {
      if (!(error instanceof ConflictError) || error.reason !== 'options_differ') throw error;
      // An identity's key is the server's to make: what is there is found with nothing said that could differ but the image.
      if (this.#identity !== undefined) return this.#post(image ?? this.client.image, {});
    }
    const there = await this.client.json<SandboxRecord>('GET', `/v1/sandboxes/${encodeURIComponent(this.id)}`);
    return this.#post(image ?? there.image, {});
  }

  #post(image: string, wanted: Record<string, unknown>): Promise<SandboxRecord> {
    return this.client.json<SandboxRecord>('POST', '/v1/sandboxes', {
      json: { image, ...(this.#identity === undefined ? { name: this.id } : { identity: this.#identity }), ...this.#fresh(), ...wanted }, key: randomId('create_') });
  }

  /** What only a new one is given, and one that is there must have. */
  #fresh(): Record<string, unknown> {
    const { profile, limits, network, runtime, lifetime } = this.options;
    return {
      ...limits,
      ...(profile === undefined ? {} : { profile }),
      ...(network === undefined ? {} : { network: policyOf(network) }),
      ...(runtime === undefined ? {} : { runtime }),
      ...(lifetime === undefined ? {} : { lifetime_ms: milliseconds(lifetime, 'lifetime') }),
    };
  }

  protected shell(): Promise<string> {
    this.#shell ??= this.#makeShell(this.sessionId, WORKSPACE).catch((error) => {
      this.#shell = undefined;
      throw error;
    });
    return this.#shell;
  }

  async #makeShell(name: string, cwd: string, env?: Record<string, string>): Promise<string> {
    const base = await this.base();
    if (cwd === WORKSPACE) await (await this.files()).mkdir(WORKSPACE, { recursive: true });
    try {
      await this.client.json('POST', `${base}/shells`, { json: env === undefined ? { name, cwd } : { name, cwd, env }, key: randomId('shell_') });
    } catch (error) {
      if (!(error instanceof ConflictError) || name !== this.sessionId) throw error; // it is there: that is what was wanted
    }
    return name;
  }

  /** A shell of its own with the whole API: same files and processes, other directory and variables. */
  async createSession(options: SessionOptions = {}): Promise<Session> {
    checkOptions('createSession', options, SESSION_OPTIONS);
    const id = options.id ?? options.name ?? randomId('session-');
    if (options.env) checkNames(options.env);
    const cwd = options.cwd ?? WORKSPACE;
    await this.#makeShell(id, cwd, options.env);
    return new Session(this.client, id, () => this.base(), cwd);
  }

  /** One that is there; NotFoundError otherwise. */
  async getSession(id: string): Promise<Session> {
    const shell = await this.client.json<{ name: string; cwd?: string }>('GET', `${await this.base()}/shells/${encodeURIComponent(id)}`);
    return new Session(this.client, shell.name, () => this.base(), shell.cwd || WORKSPACE);
  }

  /** With the processes it started. */
  async deleteSession(id: string): Promise<void> {
    await killProcesses(this.client, await this.base(), id);
    await this.client.send('DELETE', `${await this.base()}/shells/${encodeURIComponent(id)}`, { key: randomId('rm_') });
  }

  /** For everything that starts from now on, in this sandbox's record: a restart does not lose them, nor what others set meanwhile. */
  async setEnvVars(env: Record<string, string | undefined>): Promise<void> {
    checkNames(env);
    const set = Object.fromEntries(Object.entries(env).filter(([, v]) => v !== undefined));
    const unset = Object.keys(env).filter((name) => env[name] === undefined);
    await this.client.json('PATCH', await this.base(), { json: { set_env: set, unset_env: unset }, key: randomId('env_') });
    const done = await this.exec(exports(env));
    if (!done.success) throw new BerthError({ code: 'invalid', message: `the variables could not be set: ${done.stderr}` });
  }

  // -- what it may use and reach, and what it did ----------------------------------------------

  /** At once, while it runs. The record says whether they are `limits_in_force`. */
  async setLimits(limits: Limits & { profile?: string }): Promise<SandboxRecord> {
    return this.client.json('PATCH', await this.base(), { json: limits, key: randomId('limits_') });
  }

  /** The policy, whether it is in force and why not, and what was used of it. */
  async getNetwork(): Promise<Api.Network> {
    return this.client.json('GET', `${await this.#known()}/network`);
  }

  /** The whole policy, or the names it may reach. It holds if the answer says `in_force`. */
  async setNetwork(policy: Policy): Promise<Api.Network> {
    return this.client.json('PUT', `${await this.base()}/network`, { json: policyOf(policy), key: randomId('network_') });
  }

  /** What is allowed for the `bootstrap` only, no longer is. */
  async lockNetwork(): Promise<Api.Network> {
    return this.client.json('POST', `${await this.base()}/network/lock`, { key: randomId('lock_') });
  }

  /** What it was refused, in order, behind the one with this `seq`. */
  async getSecurityEvents(after = 0): Promise<Api.SecurityEvent[]> {
    return (await this.client.json<{ events: Api.SecurityEvent[] }>('GET', `${await this.#known()}/security`, { query: { after } })).events;
  }

  /** What happened to it, in order, behind the one with this `seq`. */
  async getEvents(after = 0): Promise<Api.LogEntry[]> {
    return (await this.client.json<{ events: Api.LogEntry[] }>('GET', `${await this.#known()}/events`, { query: { after } })).events;
  }

  /** What it used in all its lives, also when it is gone. `fresh`: what is on its disk is counted now, not as of up to a minute ago. */
  async getUsage(options: { fresh?: boolean } = {}): Promise<Api.Usage> {
    return this.client.json('GET', `${await this.#known()}/usage`, { query: { fresh: options.fresh || undefined } });
  }

  /** Where its record is: nothing is made for that, if it was destroyed; one that failed is no longer handed out, but there. */
  async #known(): Promise<string> {
    if (this.#gone !== undefined && this.#there === undefined) return this.#gone;
    return this.base().catch((error) => {
      if (error instanceof ConflictError && this.id !== '') return `/v1/sandboxes/${encodeURIComponent(this.id)}`;
      throw error;
    });
  }

  /** Start it with its files: one that is asleep, or has failed. The record; its `last_failure` says what was lost. */
  async wake(): Promise<SandboxRecord> {
    return this.#rest('wake');
  }

  /** End its processes and keep its files; whatever uses it wakes it. */
  async sleep(): Promise<SandboxRecord> {
    return this.#rest('sleep');
  }

  /**
   * If it failed: one whose files are kept is woken, and what ran in it is lost; of any other, and of one that is gone, everything is
   * lost, and the next use makes a new one. One that was named by its id cannot be made anew: NotFoundError.
   */
  async recover(): Promise<Recovered> {
    const made = await this.#there?.catch(() => undefined);
    const record = await this.#record(made?.id ?? this.id);
    if (record?.state === 'failed' && record.last_failure?.files_kept) {
      await this.wake();
      return { how: 'woken', lost: 'processes', why: record.last_failure.why ?? record.reason };
    }
    if (record !== null && !['failed', 'deleting', 'gone'].includes(record.state)) return { how: 'there', lost: 'nothing', why: '' };
    const why = record === null ? 'it is gone' : record.last_failure?.why ?? record.reason;
    if (this.id.startsWith('sb_') && this.#identity === undefined) {
      throw new NotFoundError({ code: 'not_found', message: `${this.id} cannot be brought back: ${why}`,
        remediation: 'Name a sandbox by a name of yours: a new one can be made of that.' }, 404);
    }
    this.#there = undefined;
    this.#shell = undefined;
    return { how: 'new', lost: made === undefined && record === null ? 'nothing' : 'everything', why };
  }

  /** Null if there is none; nothing is made for that. */
  async #record(id: string): Promise<SandboxRecord | null> {
    if (id === '') return null;
    try {
      return await this.client.json<SandboxRecord>('GET', `/v1/sandboxes/${encodeURIComponent(id)}`);
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
  }

  async #rest(verb: 'wake' | 'sleep'): Promise<SandboxRecord> {
    const record = await this.client.json<SandboxRecord>('POST', `${await this.#known()}/${verb}`, { key: randomId(`${verb}_`) });
    this.#shell = undefined; // it ended with the processes
    return record;
  }

  /** Gone, and proven: the receipt. */
  async destroy(): Promise<Receipt> {
    let base = await this.#known();
    const until = Date.now() + DELETE_WAIT_MS;
    for (;;) {
      const answer = await this.client.json<Receipt | (SandboxRecord & { next_attempt_at?: string })>('DELETE', base, { key: randomId('rm_') });
      base = `/v1/sandboxes/${answer.id}`; // its name may be another's by now
      if (answer.state === 'gone') {
        this.#gone = base;
        this.#there = undefined;
        this.#shell = undefined;
        return answer as Receipt;
      }
      if (Date.now() > until) {
        throw new BerthError({ code: 'busy', message: `${this.id} is not proven gone yet: ${(answer as SandboxRecord).reason}`,
          remediation: 'The wish is on record and tried again by itself; destroy() again to look.' });
      }
      await pause(DELETE_POLL_MS);
    }
  }
}

/** The sandbox of this name (or id, or for this identity), made by its first use. */
export function getSandbox(client: Berth, of: string | Identity, options: SandboxOptions = {}): Sandbox {
  return new Sandbox(client, of, options);
}

export interface ListOptions {
  /** Those that have all of these. */
  labels?: Record<string, string>;
  /** The same in the server's words: `repo=berth,env!=prod`. */
  selector?: string;
  state?: SandboxRecord['state'];
}

const LIST_OPTIONS: OptionNames<ListOptions> = { labels: true, selector: true, state: true };

/** The records of all that this key may see. */
export async function listSandboxes(client: Berth, options: ListOptions = {}): Promise<SandboxRecord[]> {
  checkOptions('listSandboxes', options, LIST_OPTIONS);
  const terms = Object.entries(options.labels ?? {}).map(([name, value]) => `${name}=${value}`);
  if (options.selector) terms.push(options.selector);
  const found: SandboxRecord[] = [];
  for (let after: string | undefined; ;) {
    const page = await client.json<{ sandboxes: SandboxRecord[]; next: string }>('GET', '/v1/sandboxes',
      { query: { selector: terms.join(',') || undefined, state: options.state, after } });
    found.push(...page.sandboxes);
    if (!page.next) return found;
    after = page.next;
  }
}
