/** One server and one key. */
import { BerthError, ConnectionError, errorFrom } from './errors.js';
const PAUSE_FIRST_MS = 100;
const PAUSE_MAX_MS = 3000;
function environment(name) {
    const process = globalThis.process;
    return process?.env?.[name];
}
export function pause(ms, signal) {
    return new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, ms);
        signal?.addEventListener('abort', () => {
            clearTimeout(timer);
            reject(aborted(signal));
        }, { once: true });
    });
}
export function backoff(attempt) {
    return Math.min(PAUSE_FIRST_MS * 2 ** attempt, PAUSE_MAX_MS);
}
export function aborted(signal) {
    return signal.reason ?? new DOMException('aborted', 'AbortError');
}
export class Berth {
    baseUrl;
    image;
    retries;
    #key;
    #fetch;
    constructor(options = {}) {
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
    at(baseUrl) {
        return new Berth({ baseUrl, apiKey: this.#key, image: this.image, retries: this.retries, fetch: this.#fetch });
    }
    /** The address of a WebSocket route, and the protocol that carries the key where headers cannot. */
    socketUrl(path) {
        return this.baseUrl.replace(/^http/, 'ws') + path;
    }
    headers() {
        return this.#key ? { Authorization: `Bearer ${this.#key}` } : {};
    }
    /** The answer as it comes; a status of 400 and above is thrown. */
    async send(method, path, call = {}) {
        const again = method === 'GET' || call.key !== undefined;
        const streams = call.body instanceof ReadableStream; // can be sent only once
        for (let attempt = 0;; attempt++) {
            try {
                return await this.#once(method, path, call);
            }
            catch (error) {
                if (call.signal?.aborted)
                    throw aborted(call.signal);
                const lost = error instanceof ConnectionError || (error instanceof BerthError && error.status === 503);
                if (!lost || !again || streams || attempt >= this.retries)
                    throw error;
                await pause(backoff(attempt), call.signal);
            }
        }
    }
    async #once(method, path, call) {
        const query = new URLSearchParams();
        for (const [name, value] of Object.entries(call.query ?? {})) {
            if (value !== undefined)
                query.set(name, value === true ? '1' : String(value));
        }
        const text = query.toString();
        const init = {
            method,
            headers: {
                ...this.headers(),
                ...(call.json !== undefined ? { 'Content-Type': 'application/json' } : {}),
                ...(call.key !== undefined ? { 'Idempotency-Key': call.key } : {}),
                ...call.headers,
            },
            signal: call.signal ?? null,
        };
        if (call.json !== undefined)
            init.body = JSON.stringify(call.json);
        else if (call.body !== undefined)
            init.body = call.body;
        if (call.body instanceof ReadableStream)
            init.duplex = 'half';
        let answer;
        try {
            answer = await this.#fetch(`${this.baseUrl}${path}${text ? `?${text}` : ''}`, init);
        }
        catch (cause) {
            if (call.signal?.aborted)
                throw aborted(call.signal);
            throw new ConnectionError({ code: 'connection', message: `no answer from ${this.baseUrl}: ${describe(cause)}`,
                remediation: 'Is the server up, and is this its address?' }, 0, { cause });
        }
        if (answer.status >= 400)
            throw await failure(answer);
        return answer;
    }
    async json(method, path, call = {}) {
        const again = method === 'GET' || call.key !== undefined;
        for (let attempt = 0;; attempt++) {
            const answer = await this.send(method, path, call);
            try {
                return (await answer.json());
            }
            catch (cause) {
                if (call.signal?.aborted)
                    throw aborted(call.signal);
                const error = new ConnectionError({ code: 'connection', message: `the answer to ${method} ${path} broke off` }, answer.status, { cause });
                if (!again || attempt >= this.retries)
                    throw error;
                await pause(backoff(attempt), call.signal);
            }
        }
    }
}
async function failure(answer) {
    let body;
    try {
        body = await answer.json();
    }
    catch {
        body = undefined;
    }
    return errorFrom(body, answer.status);
}
function describe(cause) {
    const inner = cause?.cause;
    return inner?.code ?? inner?.message ?? (cause instanceof Error ? cause.message : String(cause));
}
