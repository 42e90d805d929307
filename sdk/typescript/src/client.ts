/** One server and one key. */
import { BerthError, ConnectionError, ErrorBody, errorFrom, isNotYet } from './errors.js';
import { checkOptions, type OptionNames } from './options.js';

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
  /**
   * Milliseconds for what is not ready yet: a request that may be repeated is sent again while the server answers that its sandbox
   * is being made ready; default 60 000. Any other 503 is thrown at once.
   */
  readyBudget?: number;
}

const BERTH_OPTIONS: OptionNames<BerthOptions> = { baseUrl: true, apiKey: true, image: true, fetch: true, retries: true, readyBudget: true };

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
const READY_BUDGET_MS = 60_000;
const READY_PAUSE_FIRST_MS = 2000; // where the server names no time
const READY_PAUSE_MAX_MS = 16_000;
const READY_LEAST_PART = 1 / 6; // of the budget, that must be left for one more request

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

/** How long until what is not ready is asked for again; undefined: the budget has no room for that. */
export function readyPause(attempt: number, spent: number, budget: number, retryAfter: number | undefined): number | undefined {
  const ms = retryAfter === undefined ? Math.min(READY_PAUSE_FIRST_MS * 2 ** attempt, READY_PAUSE_MAX_MS) : Math.max(retryAfter * 1000, PAUSE_FIRST_MS);
  return budget - spent - ms >= budget * READY_LEAST_PART ? ms : undefined;
}

export function aborted(signal: AbortSignal): unknown {
  return signal.reason ?? new DOMException('aborted', 'AbortError');
}

export class Berth {
  readonly baseUrl: string;
  readonly image: string;
  readonly retries: number;
  readonly readyBudget: number;
  readonly #key: string;
  readonly #fetch: typeof fetch;

  constructor(options: BerthOptions = {}) {
    checkOptions('new Berth', options, BERTH_OPTIONS);
    const url = options.baseUrl ?? environment('BERTH_URL');
    if (!url) {
      throw new BerthError({ code: 'invalid', message: 'no server was named', remediation: 'Give baseUrl, or set BERTH_URL.' });
    }
    this.baseUrl = url.replace(/\/+$/, '');
    this.image = options.image ?? 'base';
    this.retries = options.retries ?? 5;
    this.readyBudget = options.readyBudget ?? READY_BUDGET_MS;
    this.#key = options.apiKey ?? environment('BERTH_API_KEY') ?? '';
    const given = options.fetch;
    this.#fetch = given ?? ((input, init) => fetch(input, init));
  }

  /** The same key at another address. */
  at(baseUrl: string): Berth {
    return new Berth({ baseUrl, apiKey: this.#key, image: this.image, retries: this.retries, readyBudget: this.readyBudget,
      fetch: this.#fetch });
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
    const began = Date.now();
    let lost = 0; // answers that did not come
    for (let early = 0; ;) {
      try {
        return await this.#once(method, path, call);
      } catch (error) {
        if (call.signal?.aborted) throw aborted(call.signal);
        if (!again || streams) throw error;
        let wait: number | undefined;
        if (isNotYet(error)) wait = readyPause(early++, Date.now() - began, this.readyBudget, error.retryAfter);
        // A server that comes back may be busy for a moment, and whether the first request was carried out is still to be found out.
        else if (error instanceof ConnectionError || (lost > 0 && error instanceof BerthError && error.status === 503)) {
          wait = lost < this.retries ? backoff(lost++) : undefined;
        }
        if (wait === undefined) throw error;
        await pause(wait, call.signal);
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
  const after = Number(answer.headers.get('Retry-After') ?? NaN);
  const told = Number.isFinite(after) && after >= 0 ? { retry_after: after } : {};
  return errorFrom({ ...(body as Partial<ErrorBody> | undefined), ...told }, answer.status);
}

function describe(cause: unknown): string {
  const inner = (cause as { cause?: { code?: string; message?: string } } | undefined)?.cause;
  return inner?.code ?? inner?.message ?? (cause instanceof Error ? cause.message : String(cause));
}
