import { dataOf, randomId } from './bytes.js';
import { ConnectionError, errorFrom } from './errors.js';
import { readEvents } from './sse.js';
const ALIASES = { python3: 'python', js: 'javascript', node: 'javascript', ts: 'typescript' };
const contextOf = (c) => ({ id: c.id, language: c.language, cwd: c.cwd, createdAt: new Date(c.created_at) });
function languageOf(given) {
    return ALIASES[given ?? 'python'] ?? given ?? 'python';
}
export class Code {
    client;
    base;
    constructor(client, base) {
        this.client = client;
        this.base = base;
    }
    async create(options = {}) {
        const json = { language: languageOf(options.language) };
        if (options.cwd !== undefined)
            json.cwd = options.cwd;
        if (options.envVars !== undefined)
            json.env = options.envVars;
        if (options.timeout !== undefined)
            json.timeout_ms = options.timeout;
        return contextOf(await this.client.json('POST', `${this.base}/contexts`, { json, key: randomId('ctx_') }));
    }
    async list() {
        const page = await this.client.json('GET', `${this.base}/contexts`);
        return page.contexts.map(contextOf);
    }
    async remove(id) {
        await this.client.send('DELETE', `${this.base}/contexts/${encodeURIComponent(id)}`, { key: randomId('rm_') });
    }
    async *events(code, options = {}) {
        const json = { code };
        if (options.context !== undefined)
            json.context = options.context.id;
        else
            json.language = languageOf(options.language);
        if (options.envVars !== undefined)
            json.env = options.envVars;
        if (options.timeout !== undefined)
            json.timeout_ms = options.timeout;
        const answer = await this.client.send('POST', `${this.base}/code`, { json, headers: { Accept: 'text/event-stream' }, ...(options.signal ? { signal: options.signal } : {}) });
        if (answer.body === null)
            throw new ConnectionError({ code: 'connection', message: 'an answer without a body' });
        const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
        for await (const e of readEvents(answer.body)) {
            const data = JSON.parse(e.data);
            const timestamp = Date.now();
            if (e.event === 'stdout' || e.event === 'stderr') {
                yield { type: e.event, text: decoders[e.event].decode(dataOf(data), { stream: true }), timestamp };
            }
            else if (e.event === 'result')
                yield { type: 'result', result: data, timestamp };
            else if (e.event === 'error_output')
                yield { type: 'error', error: data, timestamp };
            else if (e.event === 'error')
                throw errorFrom(data, 500);
            else if (e.event === 'end') {
                yield { type: 'end', kind: data.kind, timestamp };
                return;
            }
        }
        throw new ConnectionError({ code: 'connection', message: 'the run broke off, and nobody here saw how it ended' });
    }
    async run(code, options = {}) {
        const out = { code, kind: 'lost', logs: { stdout: [], stderr: [] }, results: [] };
        for await (const e of this.events(code, options)) {
            if (e.type === 'stdout' || e.type === 'stderr') {
                out.logs[e.type].push(e.text);
                (e.type === 'stdout' ? options.onStdout : options.onStderr)?.({ text: e.text, timestamp: e.timestamp });
            }
            else if (e.type === 'result') {
                out.results.push(e.result);
                options.onResult?.(e.result);
            }
            else if (e.type === 'error') {
                out.error = e.error;
                options.onError?.(e.error);
            }
            else if (e.type === 'end')
                out.kind = e.kind;
        }
        return out;
    }
}
