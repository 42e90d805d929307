/** A command on a pty. It belongs to no client: it goes on while nobody looks. */
import type * as Api from './api.js';
import { randomId } from './bytes.js';
import { Berth } from './client.js';
import { UnsupportedError } from './errors.js';
import { OutputEvent, follow } from './exec.js';

export interface TerminalOptions {
  /** Without: bash as at a login, or sh if there is no bash. */
  argv?: string[];
  cwd?: string;
  env?: Record<string, string>;
  cols?: number;
  rows?: number;
  id?: string;
  /** Milliseconds, then it is killed with all it started; default an hour, 0 is never. */
  timeout?: number;
}

type SocketMaker = new (url: string, options: { headers: Record<string, string> }) => WebSocket;

export class Terminal {
  constructor(public record: Api.Terminal, private readonly client: Berth, private readonly base: string) {}

  get id(): string {
    return this.record.id ?? '';
  }

  #path(rest = ''): string {
    return `${this.base}/terminals/${encodeURIComponent(this.id)}${rest}`;
  }

  async refresh(): Promise<Api.Terminal> {
    this.record = await this.client.json('GET', this.#path());
    return this.record;
  }

  /** What runs in it is told by SIGWINCH. */
  async resize(cols: number, rows: number): Promise<void> {
    this.record = await this.client.json('POST', this.#path('/resize'), { json: { cols, rows } });
  }

  /** What it shows, from the beginning (or a position) to its end, over as many connections as it takes. */
  output(options: { from?: number; signal?: AbortSignal } = {}): AsyncGenerator<OutputEvent> {
    return follow(this.client, this.base, this.id, options.from ?? 0, options.signal);
  }

  /**
   * To see it and type into it: a WebSocket whose binary messages are bytes, and whose texts are told in docs/terminals.md. Node has
   * WebSocket from 22 on; give one like it where it has not. A browser's cannot carry the key: put a proxy of yours in between.
   */
  attach(options: { from?: number; WebSocket?: unknown } = {}): WebSocket {
    const Maker = (options.WebSocket ?? (globalThis as { WebSocket?: unknown }).WebSocket) as SocketMaker | undefined;
    if (Maker === undefined) {
      throw new UnsupportedError({ code: 'unsupported', message: 'there is no WebSocket here', remediation: 'Use Node 22, or give { WebSocket }.' });
    }
    const socket = new Maker(this.client.socketUrl(this.#path(`/attach?from=${options.from ?? 0}`)), { headers: this.client.headers() });
    socket.binaryType = 'arraybuffer';
    return socket;
  }

  /** Kill it and all it started, and forget it: how it ended. */
  async end(): Promise<Api.Terminal> {
    this.record = await this.client.json('DELETE', this.#path());
    return this.record;
  }
}

export class Terminals {
  constructor(private readonly client: Berth, private readonly base: string) {}

  async create(options: TerminalOptions = {}): Promise<Terminal> {
    const { timeout, ...rest } = options;
    const json = timeout === undefined ? rest : { ...rest, timeout_ms: timeout };
    return this.#of(await this.client.json('POST', `${this.base}/terminals`, { json, key: randomId('tm_') }));
  }

  /** Also those that have ended, until they are deleted. */
  async list(): Promise<Terminal[]> {
    return (await this.client.json<{ terminals: Api.Terminal[] }>('GET', `${this.base}/terminals`)).terminals.map((t) => this.#of(t));
  }

  async get(id: string): Promise<Terminal> {
    return this.#of(await this.client.json('GET', `${this.base}/terminals/${encodeURIComponent(id)}`));
  }

  #of(record: Api.Terminal): Terminal {
    return new Terminal(record, this.client, this.base);
  }
}
