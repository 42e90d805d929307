/** One server and one key. */
import { BerthError, ConnectionError, errorFrom } from './errors.js';

export interface BerthOptions {
  /** `http://127.0.0.1:7070`; default: BERTH_URL of the environment. */
  baseUrl?: string;
  /** Default: BERTH_API_KEY of the environment. */
  apiKey?: string;
  /** The image of sandboxes that `getSandbox` makes; default `base`. */
  image?: string;
  fetch?: typeof fetch;
  /** How often a request that may be repeated is sent again after its connection failed; default 5. */
  retries?: number;
}

export interface Call {
  query?: Record<string, string | number | boolean | undefined>;
  json?: unknown;
  body?: BodyInit | ReadableStream<Uint8Array>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Sent again when the connection fails. GET always is; others need a key to be safe. */
  key?: string;
}

const PAUSE_FIRST_MS = 100;
const PAUSE_MAX_MS = 3000;

function environment(name: string): string | undefined {
  const process = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process;
  return process?.env?.[name];
}

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(aborted(signal));
    }, { once: true });
  });
}

export function backoff(attempt: number): number {
  return Math.min(PAUSE_FIRST_MS * 2 ** attempt, PAUSE_MAX_MS);
}

export function aborted(signal: AbortSignal): unknown {
  return signal.reason ?? new DOMException('aborted', 'AbortError');
}

export class Berth {
  readonly baseUrl: string;
  readonly image: string;
  readonly retries: number;
  readonly #key: string;
  readonly #fetch: typeof fetch;

  constructor(options: BerthOptions = {}) {
    const url = options.baseUrl ?? environment('BERTH_URL');
    if (!url) {
      throw new BerthError({ code: 'invalid', message: 'no server was named', remediation: 'Give baseUrl, or set BERTH_URL.' });
    }
    this.baseUrl = url.replace(/\/+$/, '');
    this.image = options.image ?? 'base';
    this.retries = options.retries ?? 5;
    this.#key = options.apiKey ?? environment('BERTH_API_KEY') ?? '';
    const given = options.fetch;
    this.#fetch = given ?? ((input, init) => fetch(input, init));
  }

  /** The same key at another address. */
  at(baseUrl: string): Berth {
    return new Berth({ baseUrl, apiKey: this.#key, image: this.image, retries: this.retries, fetch: this.#fetch });
  }

  /** The address of a WebSocket route, and the protocol that carries the key where headers cannot. */
  socketUrl(path: string): string {
    return this.baseUrl.replace(/^http/, 'ws') + path;
  }

  headers(): Record<string, string> {
    return this.#key ? { Authorization: `Bearer ${this.#key}` } : {};
  }

  /** The answer as it comes; a status of 400 and above is thrown. */
  async send(method: string, path: string, call: Call = {}): Promise<Response> {
    const again = method === 'GET' || call.key !== undefined;
    const streams = call.body instanceof ReadableStream; // can be sent only once
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#once(method, path, call);
      } catch (error) {
        if (call.signal?.aborted) throw aborted(call.signal);
        const lost = error instanceof ConnectionError || (error instanceof BerthError && error.status === 503);
        if (!lost || !again || streams || attempt >= this.retries) throw error;
        await pause(backoff(attempt), call.signal);
      }
    }
  }

  async #once(method: string, path: string, call: Call): Promise<Response> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) query.set(name, value === true ? '1' : String(value));
    }
    const text = query.toString();
    const init: RequestInit & { duplex?: 'half' } = {
      method,
      headers: {
        ...this.headers(),
        ...(call.json !== undefined ? { 'Content-Type': 'application/json' } : {}),
        ...(call.key !== undefined ? { 'Idempotency-Key': call.key } : {}),
        ...call.headers,
      },
      signal: call.signal ?? null,
    };
    if (call.json !== undefined) init.body = JSON.stringify(call.json);
    else if (call.body !== undefined) init.body = call.body as BodyInit;
    if (call.body instanceof ReadableStream) init.duplex = 'half';
    let answer: Response;
    try {
      answer = await this.#fetch(`${this.baseUrl}${path}${text ? `?${text}` : ''}`, init);
    } catch (cause) {
      if (call.signal?.aborted) throw aborted(call.signal);
      throw new ConnectionError({ code: 'connection', message: `no answer from ${this.baseUrl}: ${describe(cause)}`,
        remediation: 'Is the server up, and is this its address?' }, 0, { cause });
    }
    if (answer.status >= 400) throw await failure(answer);
    return answer;
  }

  async json<T>(method: string, path: string, call: Call = {}): Promise<T> {
    const again = method === 'GET' || call.key !== undefined;
    for (let attempt = 0; ; attempt++) {
      const answer = await this.send(method, path, call);
      try {
        return (await answer.json()) as T;
      } catch (cause) {
        if (call.signal?.aborted) throw aborted(call.signal);
        const error = new ConnectionError({ code: 'connection', message: `the answer to ${method} ${path} broke off` },
          answer.status, { cause });
        if (!again || attempt >= this.retries) throw error;
        await pause(backoff(attempt), call.signal);
      }
    }
  }
}

async function failure(answer: Response): Promise<BerthError> {
  let body: unknown;
  try {
    body = await answer.json();
  } catch {
    body = undefined;
  }
  return errorFrom(body, answer.status);
}

function describe(cause: unknown): string {
  const inner = (cause as { cause?: { code?: string; message?: string } } | undefined)?.cause;
  return inner?.code ?? inner?.message ?? (cause instanceof Error ? cause.message : String(cause));
}
