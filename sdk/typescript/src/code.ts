/** Code contexts. */
import type { CodeError as WireError, Context } from './api.js';
import { dataOf, randomId } from './bytes.js';
import { Berth } from './client.js';
import { ConnectionError, errorFrom } from './errors.js';
import { checkOptions, type OptionNames } from './options.js';
import { readEvents } from './sse.js';

export type Language = 'python' | 'javascript' | 'typescript';

export interface ContextOptions {
  language?: Language | 'python3' | 'js' | 'node' | 'ts';
  cwd?: string;
  envVars?: Record<string, string>;
  timeout?: number;
}

const CONTEXT_OPTIONS: OptionNames<ContextOptions> = { language: true, cwd: true, envVars: true, timeout: true };

export interface CodeContext {
  id: string;
  language: Language;
  cwd: string;
  createdAt: Date;
}

export interface Result {
  text?: string;
  html?: string;
  png?: string;
  jpeg?: string;
  svg?: string;
  latex?: string;
  markdown?: string;
  javascript?: string;
  json?: unknown;
  chart?: unknown;
  data?: unknown;
}

export interface CodeError {
  name: string;
  message: string;
  traceback: string[];
  /** The line of the code that was run, from 1, if it is known. */
  lineNumber?: number;
}

export interface RunCodeOptions {
  context?: { id: string };
  language?: ContextOptions['language'];
  envVars?: Record<string, string>;
  timeout?: number;
  signal?: AbortSignal;
  onStdout?: (output: { text: string; timestamp: number }) => void;
  onStderr?: (output: { text: string; timestamp: number }) => void;
  onResult?: (result: Result) => void;
  onError?: (error: CodeError) => void;
}

const RUN_OPTIONS: OptionNames<RunCodeOptions> = { context: true, language: true, envVars: true, timeout: true, signal: true, onStdout: true,
  onStderr: true, onResult: true, onError: true };

export interface Execution {
  code: string;
  kind: 'ok' | 'error' | 'timed_out' | 'killed' | 'lost';
  logs: { stdout: string[]; stderr: string[] };
  error?: CodeError;
  results: Result[];
  executionCount?: number;
}

export type CodeEvent =
  | { type: 'stdout' | 'stderr'; text: string; timestamp: number }
  | { type: 'result'; result: Result; timestamp: number }
  | { type: 'error'; error: CodeError; timestamp: number }
  | { type: 'end'; kind: Execution['kind']; timestamp: number };

const ALIASES: Record<string, Language> = { python3: 'python', js: 'javascript', node: 'javascript', ts: 'typescript' };

const contextOf = (c: Context): CodeContext => ({ id: c.id, language: c.language, cwd: c.cwd, createdAt: new Date(c.created_at) });

function errorOf({ line_number, ...rest }: WireError): CodeError {
  return line_number === undefined ? rest : { ...rest, lineNumber: line_number };
}

function languageOf(given: string | undefined): string {
  return ALIASES[given ?? 'python'] ?? given ?? 'python';
}

export class Code {
  constructor(private readonly client: Berth, private readonly base: string) {}

  async create(options: ContextOptions = {}): Promise<CodeContext> {
    checkOptions('createCodeContext', options, CONTEXT_OPTIONS);
    const json: Record<string, unknown> = { language: languageOf(options.language) };
    if (options.cwd !== undefined) json.cwd = options.cwd;
    if (options.envVars !== undefined) json.env = options.envVars;
    if (options.timeout !== undefined) json.timeout_ms = options.timeout;
    return contextOf(await this.client.json<Context>('POST', `${this.base}/contexts`, { json, key: randomId('ctx_') }));
  }

  async list(): Promise<CodeContext[]> {
    const page = await this.client.json<{ contexts: Context[] }>('GET', `${this.base}/contexts`);
    return page.contexts.map(contextOf);
  }

  async remove(id: string): Promise<void> {
    await this.client.send('DELETE', `${this.base}/contexts/${encodeURIComponent(id)}`, { key: randomId('rm_') });
  }

  async *events(code: string, options: RunCodeOptions = {}): AsyncGenerator<CodeEvent> {
    checkOptions('runCode', options, RUN_OPTIONS);
    const json: Record<string, unknown> = { code };
    if (options.context !== undefined) json.context = options.context.id;
    else json.language = languageOf(options.language);
    if (options.envVars !== undefined) json.env = options.envVars;
    if (options.timeout !== undefined) json.timeout_ms = options.timeout;
    const answer = await this.client.send('POST', `${this.base}/code`,
      { json, headers: { Accept: 'text/event-stream' }, ...(options.signal ? { signal: options.signal } : {}) });
    if (answer.body === null) throw new ConnectionError({ code: 'connection', message: 'an answer without a body' });
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    for await (const e of readEvents(answer.body)) {
      const data = JSON.parse(e.data);
      const timestamp = Date.now();
      if (e.event === 'stdout' || e.event === 'stderr') {
        yield { type: e.event, text: decoders[e.event].decode(dataOf(data), { stream: true }), timestamp };
      } else if (e.event === 'result') yield { type: 'result', result: data, timestamp };
      else if (e.event === 'error_output') yield { type: 'error', error: errorOf(data), timestamp };
      else if (e.event === 'error') throw errorFrom(data, 500);
      else if (e.event === 'end') {
        yield { type: 'end', kind: data.kind, timestamp };
        return;
      }
    }
    throw new ConnectionError({ code: 'connection', message: 'the run broke off, and its end was not seen' });
  }

  async run(code: string, options: RunCodeOptions = {}): Promise<Execution> {
    const out: Execution = { code, kind: 'lost', logs: { stdout: [], stderr: [] }, results: [] };
    for await (const e of this.events(code, options)) {
      if (e.type === 'stdout' || e.type === 'stderr') {
        out.logs[e.type].push(e.text);
        (e.type === 'stdout' ? options.onStdout : options.onStderr)?.({ text: e.text, timestamp: e.timestamp });
      } else if (e.type === 'result') {
        out.results.push(e.result);
        options.onResult?.(e.result);
      } else if (e.type === 'error') {
        out.error = e.error;
        options.onError?.(e.error);
      } else if (e.type === 'end') out.kind = e.kind;
    }
    return out;
  }
}

