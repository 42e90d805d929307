import { randomId } from './bytes.js';
import { pause } from './client.js';
import { Code } from './code.js';
import { BerthError, ConflictError, NotFoundError, NotYetError } from './errors.js';
import { askOf, collect, execEvents, run } from './exec.js';
import { Files } from './files.js';
import { Process, killProcess, logEvents, logs, startProcess } from './process.js';
import { writeEvents } from './sse.js';
export const WORKSPACE = '/workspace';
const UNITS = { ms: 1, s: 1000, m: 60000, h: 3600000 };
const DELETE_POLL_MS = 500;
const DELETE_WAIT_MS = 120000;
export function milliseconds(after) {
    if (typeof after === 'number')
        return after * 1000;
    const m = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(after);
    const unit = UNITS[m?.[2] ?? ''];
    if (m === null || unit === undefined) {
        throw new BerthError({ code: 'invalid', message: `sleepAfter ${after} is no time`, remediation: 'Write 30s, 10m or 2h.' });
    }
    return Math.round(Number(m[1]) * unit);
}
/** Where commands, files and code go: a whole sandbox, or one session of it. */
export class Workspace {
    client;
    constructor(client) {
        this.client = client;
    }
    // -- commands --------------------------------------------------------------------------------
    /**
     * In this session's shell: what it changes (directory, variables, functions)
     * is there for the next one. A command that fails is a result, not an error;
     * one that ran out of time, or that nobody saw end, is an error.
     */
    async exec(command, options = {}) {
        return collect(this.events(command, options), command, this.sessionId, options);
    }
    /** The same as it happens, byte for byte. */
    async *events(command, options = {}) {
        yield* run(this.client, await this.base(), askOf(command, options, await this.shell()), options.signal);
    }
    /** Events for `parseSSEStream`. */
    async execStream(command, options = {}) {
        return writeEvents(execEvents(this.events(command, options), command));
    }
    // -- processes -------------------------------------------------------------------------------
    async startProcess(command, options = {}) {
        return startProcess(this.client, await this.base(), command, { cwd: await this.cwd(), ...options }, {});
    }
    /** Where processes start; the sandbox's directory for work. */
    async cwd() {
        await this.shell();
        return WORKSPACE;
    }
    async listProcesses() {
        const base = await this.base();
        const found = [];
        for (let after;;) {
            const page = await this.client.json('GET', `${base}/execs`, { query: { background: 1, after } });
            for (const e of page.execs)
                found.push(new Process(e, this.client, base));
            if (!page.next)
                return found;
            after = page.next;
        }
    }
    /** Null if there is none. */
    async getProcess(id) {
        const base = await this.base();
        try {
            return new Process(await this.client.json('GET', `${base}/execs/${encodeURIComponent(id)}`), this.client, base);
        }
        catch (error) {
            if (error instanceof NotFoundError)
                return null;
            throw error;
        }
    }
    async killProcess(id, signal) {
        await killProcess(this.client, await this.base(), id, signal);
    }
    async killAllProcesses() {
        const { killed } = await this.client.json('POST', `${await this.base()}/execs/kill`, { json: { scope: 'background' }, key: randomId('kill_') });
        return killed;
    }
    async cleanupCompletedProcesses() {
        const done = (await this.listProcesses()).filter((p) => p.record.state === 'ended');
        const base = await this.base();
        for (const p of done) {
            await this.client.json('DELETE', `${base}/execs/${encodeURIComponent(p.id)}`, { key: randomId('rm_') });
        }
        return done.length;
    }
    async getProcessLogs(id) {
        return { ...(await logs(this.client, await this.base(), id)), processId: id };
    }
    async streamProcessLogs(id, options = {}) {
        return writeEvents(logEvents(this.client, await this.base(), id, options.signal));
    }
    // -- files -----------------------------------------------------------------------------------
    async files() {
        return new Files(this.client, await this.base());
    }
    async mkdir(path, options = {}) {
        return (await this.files()).mkdir(path, options);
    }
    async writeFile(path, content, options = {}) {
        return (await this.files()).write(path, content, options);
    }
    async readFile(path, options = {}) {
        return (await this.files()).read(path, options);
    }
    /** Events for `streamFile` and `collectFile`. */
    async readFileStream(path) {
        return writeEvents((await this.files()).readEvents(path));
    }
    async deleteFile(path) {
        return (await this.files()).removeFile(path);
    }
    async renameFile(oldPath, newPath) {
        return (await this.files()).move(oldPath, newPath);
    }
    async moveFile(sourcePath, destinationPath) {
        return (await this.files()).move(sourcePath, destinationPath);
    }
    async listFiles(path, options = {}) {
        return (await this.files()).list(path, options);
    }
    async exists(path) {
        return (await this.files()).exists(path);
    }
    async gitCheckout(repoUrl, options = {}) {
        const name = repoUrl.replace(/\/+$/, '').split('/').pop()?.replace(/\.git$/, '') || 'repository';
        const json = { url: repoUrl, path: options.targetDir ?? `${await this.cwd()}/${name}` };
        for (const word of ['branch', 'depth', 'username', 'token']) {
            if (options[word] !== undefined)
                json[word] = options[word];
        }
        if (options.timeout !== undefined)
            json.timeout_ms = options.timeout;
        const done = await this.client.json('POST', `${await this.base()}/git/checkout`, { json, key: randomId('git_') });
        return { success: true, repoUrl, branch: done.branch, targetDir: done.path, commit: done.commit, timestamp: new Date().toISOString() };
    }
    // -- code ------------------------------------------------------------------------------------
    async #code() {
        return new Code(this.client, await this.base());
    }
    async createCodeContext(options = {}) {
        return (await this.#code()).create(options);
    }
    async runCode(code, options = {}) {
        return (await this.#code()).run(code, options);
    }
    async runCodeStream(code, options = {}) {
        return writeEvents((await this.#code()).events(code, options));
    }
    async listCodeContexts() {
        return (await this.#code()).list();
    }
    async deleteCodeContext(id) {
        return (await this.#code()).remove(id);
    }
    // -- ports: with previews ----------------------------------------------------------------------
    async exposePort(_port, _options) {
        throw new NotYetError('exposePort');
    }
    async unexposePort(_port) {
        throw new NotYetError('unexposePort');
    }
    async getExposedPorts(_hostname) {
        throw new NotYetError('getExposedPorts');
    }
    async isPortExposed(_port) {
        throw new NotYetError('isPortExposed');
    }
    async validatePortToken(_port, _token) {
        throw new NotYetError('validatePortToken');
    }
}
const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
function exports(env) {
    return Object.entries(env).map(([k, v]) => (v === undefined ? `unset ${k}` : `export ${k}=${quoted(v)}`)).join('\n');
}
function checkNames(env) {
    for (const name of Object.keys(env)) {
        if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
            throw new BerthError({ code: 'invalid', message: `${JSON.stringify(name)} is no name of a variable`,
                remediation: 'Use letters, digits and _, and no digit first.' });
        }
    }
}
export class Session extends Workspace {
    id;
    at;
    start;
    constructor(client, id, at, start) {
        super(client);
        this.id = id;
        this.at = at;
        this.start = start;
    }
    get sessionId() {
        return this.id;
    }
    base() {
        return this.at();
    }
    async shell() {
        return this.id;
    }
    async cwd() {
        return this.start;
    }
    /** For what this session runs from now on. */
    async setEnvVars(env) {
        checkNames(env);
        const done = await this.exec(exports(env));
        if (!done.success)
            throw new BerthError({ code: 'invalid', message: `the variables could not be set: ${done.stderr}` });
    }
}
export class Sandbox extends Workspace {
    id;
    options;
    #there;
    #shell;
    sessionId;
    constructor(client, id, options = {}) {
        super(options.baseUrl === undefined ? client : client.at(options.baseUrl));
        this.id = id;
        this.options = options;
        this.sessionId = `sandbox-${id}`.slice(0, 63);
    }
    /** Its record; it is made by the first call that needs it. */
    async info() {
        return this.client.json('GET', await this.base());
    }
    async base() {
        this.#there ??= this.#ensure().catch((error) => {
            this.#there = undefined;
            throw error;
        });
        return `/v1/sandboxes/${(await this.#there).id}`;
    }
    /** All options are part of the one request that makes it, or of one that changes it. */
    async #ensure() {
        const wanted = {};
        if (this.options.sleepAfter !== undefined)
            wanted.sleep_after_ms = milliseconds(this.options.sleepAfter);
        if (this.options.keepAlive !== undefined)
            wanted.keep_alive = this.options.keepAlive;
        if (this.options.labels !== undefined)
            wanted.labels = this.options.labels;
        let record;
        if (this.id.startsWith('sb_')) {
            record = await this.client.json('GET', `/v1/sandboxes/${this.id}`);
        }
        else {
            record = await this.client.json('POST', '/v1/sandboxes', {
                json: { image: this.options.image ?? this.client.image, name: this.id, ...wanted }, key: randomId('create_')
            });
        }
        const differs = ['sleep_after_ms', 'keep_alive'].some((k) => k in wanted && wanted[k] !== record[k]);
        if (differs)
            record = await this.client.json('PATCH', `/v1/sandboxes/${record.id}`, { json: wanted, key: randomId('patch_') });
        return record;
    }
    shell() {
        this.#shell ??= this.#makeShell(this.sessionId, WORKSPACE).catch((error) => {
            this.#shell = undefined;
            throw error;
        });
        return this.#shell;
    }
    async #makeShell(name, cwd, env) {
        const base = await this.base();
        if (cwd === WORKSPACE)
            await (await this.files()).mkdir(WORKSPACE, { recursive: true });
        try {
            await this.client.json('POST', `${base}/shells`, { json: env === undefined ? { name, cwd } : { name, cwd, env }, key: randomId('shell_') });
        }
        catch (error) {
            if (!(error instanceof ConflictError) || name !== this.sessionId)
                throw error; // it is there: that is what was wanted
        }
        return name;
    }
    /** A shell of its own with the whole API: same files and processes, other directory and variables. */
    async createSession(options = {}) {
        const id = options.id ?? options.name ?? randomId('session-');
        if (options.env)
            checkNames(options.env);
        const cwd = options.cwd ?? WORKSPACE;
        await this.#makeShell(id, cwd, options.env);
        return new Session(this.client, id, () => this.base(), cwd);
    }
    /** One that is there; NotFoundError otherwise. */
    async getSession(id) {
        const shell = await this.client.json('GET', `${await this.base()}/shells/${encodeURIComponent(id)}`);
        return new Session(this.client, shell.name, () => this.base(), shell.cwd || WORKSPACE);
    }
    async deleteSession(id) {
        await this.client.send('DELETE', `${await this.base()}/shells/${encodeURIComponent(id)}`, { key: randomId('rm_') });
    }
    /** For everything that starts from now on, in this sandbox's record: a restart does not lose them. */
    async setEnvVars(env) {
        checkNames(env);
        const record = await this.client.json('GET', await this.base());
        const all = { ...record.env };
        for (const [k, v] of Object.entries(env)) {
            if (v === undefined)
                delete all[k];
            else
                all[k] = v;
        }
        await this.client.json('PATCH', await this.base(), { json: { env: all }, key: randomId('env_') });
        const done = await this.exec(exports(env));
        if (!done.success)
            throw new BerthError({ code: 'invalid', message: `the variables could not be set: ${done.stderr}` });
    }
    /** Gone, and proven: the receipt. */
    async destroy() {
        const base = await this.base();
        const until = Date.now() + DELETE_WAIT_MS;
        for (;;) {
            const answer = await this.client.json('DELETE', base, { key: randomId('rm_') });
            if (answer.state === 'gone') {
                this.#there = undefined;
                this.#shell = undefined;
                return answer;
            }
            if (Date.now() > until) {
                throw new BerthError({ code: 'busy', message: `${this.id} is not proven gone yet: ${answer.reason}`,
                    remediation: 'The wish is on record and tried again by itself; destroy() again to look.' });
            }
            await pause(DELETE_POLL_MS);
        }
    }
}
/** The sandbox of this name, made by its first use. */
export function getSandbox(client, id, options = {}) {
    return new Sandbox(client, id, options);
}
