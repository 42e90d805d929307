/** A command in the background. */
import { fromBase64, lossyText, randomId } from './bytes.js';
import { BerthError } from './errors.js';
import { follow, kill } from './exec.js';
const KILL_GRACE_MS = 5000;
/** It did not get ready in the time it was given. */
export class ProcessReadyTimeoutError extends BerthError {
}
/** It ended before it was ready. */
export class ProcessExitedBeforeReadyError extends BerthError {
}
function statusOf(e) {
    if (e.state === 'running')
        return 'running';
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
function commandOf(argv) {
    return argv.length === 3 && argv[0] === '/bin/sh' && argv[1] === '-c' ? argv[2] ?? '' : argv.join(' ');
}
export class Process {
    record;
    client;
    base;
    id;
    pid;
    command;
    startTime;
    status;
    endTime;
    exitCode;
    sessionId;
    constructor(record, client, base) {
        this.record = record;
        this.client = client;
        this.base = base;
        this.id = record.id;
        this.pid = record.pid;
        this.command = commandOf(record.argv);
        this.startTime = new Date(record.started_at);
        this.status = statusOf(record);
        this.endTime = record.ended_at ? new Date(record.ended_at) : undefined;
        this.exitCode = record.state === 'ended' ? record.exit_code : undefined;
        this.sessionId = record.shell || undefined;
    }
    #path(rest = '') {
        return `${this.base}/execs/${encodeURIComponent(this.id)}${rest}`;
    }
    #take(e) {
        this.status = statusOf(e);
        this.endTime = e.ended_at ? new Date(e.ended_at) : undefined;
        this.exitCode = e.state === 'ended' ? e.exit_code : undefined;
        return this.status;
    }
    async getStatus() {
        return this.#take(await this.client.json('GET', this.#path()));
    }
    /** The given signal to all of it; without one TERM, and KILL after five seconds. */
    async kill(signal) {
        this.#take(await killProcess(this.client, this.base, this.id, signal));
    }
    getLogs() {
        return logs(this.client, this.base, this.id);
    }
    async waitForExit(timeout) {
        const e = await this.#wait({ for: 'exit', timeout_ms: timeout });
        return { exitCode: e.exit_code ?? null };
    }
    /** A text, or a regular expression, in what it writes. */
    async waitForLog(pattern, timeout) {
        const text = typeof pattern === 'string' ? pattern : `/${pattern.source}/`;
        await this.#wait({ for: 'log', pattern: text, timeout_ms: timeout });
        const { stdout, stderr } = await this.getLogs();
        const found = (line) => (typeof pattern === 'string' ? line.includes(pattern) : pattern.test(line));
        return { line: [...stdout.split('\n'), ...stderr.split('\n')].find(found) ?? '' };
    }
    async waitForPort(port, options = {}) {
        await this.#wait({ for: 'port', port, timeout_ms: options.timeout });
    }
    async #wait(query) {
        const answer = await this.client.json('GET', this.#path('/wait'), { query });
        this.#take(answer.exec);
        if (answer.ready)
            return answer.exec;
        const message = `${this.command}: ${answer.why}`;
        if (answer.exec.state === 'ended')
            throw new ProcessExitedBeforeReadyError({ code: 'process_exited_before_ready', message });
        throw new ProcessReadyTimeoutError({ code: 'process_ready_timeout', message });
    }
}
export async function killProcess(client, base, id, signal) {
    return signal === undefined ? kill(client, base, id, 'TERM', KILL_GRACE_MS) : kill(client, base, id, signal);
}
/** Everything it has written so far. */
export async function logs(client, base, id) {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    const all = { stdout: '', stderr: '' };
    for (let from = 0;;) {
        const o = await client.json('GET', `${base}/execs/${encodeURIComponent(id)}/output`, { query: { from } });
        for (const stream of ['stdout', 'stderr']) {
            const coded = o[`${stream}_base64`];
            const bytes = coded !== undefined ? fromBase64(coded) : new TextEncoder().encode(o[stream] ?? '');
            all[stream] += decoders[stream].decode(bytes, { stream: true });
        }
        if (o.next === from)
            break;
        from = o.next;
    }
    return { stdout: all.stdout + decoders.stdout.decode(), stderr: all.stderr + decoders.stderr.decode() };
}
export async function* logEvents(client, base, id, signal) {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    for await (const e of follow(client, base, id, 0, signal)) {
        const timestamp = new Date().toISOString();
        if (e.type === 'stdout' || e.type === 'stderr') {
            yield { type: e.type, timestamp, processId: id, data: decoders[e.type].decode(e.bytes, { stream: true }) };
        }
        else if (e.type === 'exit') {
            if (e.exit.kind === 'lost')
                yield { type: 'error', timestamp, processId: id, data: 'nobody saw how it ended' };
            else
                yield { type: 'exit', timestamp, processId: id, data: e.exit.kind, exitCode: e.exit.exit_code };
        }
    }
}
export async function startProcess(client, base, command, options, more) {
    const id = options.processId ?? randomId('proc_');
    const json = { command, id, background: true, ...more };
    if (options.cwd !== undefined)
        json.cwd = options.cwd;
    if (options.env !== undefined)
        json.env = options.env;
    if (options.timeout !== undefined)
        json.timeout_ms = options.timeout;
    let process;
    try {
        process = new Process(await client.json('POST', `${base}/exec`, { json, key: randomId('start_') }), client, base);
    }
    catch (error) {
        options.onError?.(error);
        throw error;
    }
    options.onStart?.(process);
    if (options.onOutput || options.onExit || options.autoCleanup)
        void watch(client, base, process, options);
    return process;
}
async function watch(client, base, process, options) {
    try {
        for await (const e of follow(client, base, process.id, 0)) {
            if (e.type === 'stdout' || e.type === 'stderr')
                options.onOutput?.(e.type, lossyText(e.bytes));
            else if (e.type === 'exit')
                options.onExit?.(e.exit.exit_code);
        }
        if (options.autoCleanup)
            await client.json('DELETE', `${base}/execs/${encodeURIComponent(process.id)}`, { key: randomId('rm_') });
    }
    catch (error) {
        options.onError?.(error);
    }
}
