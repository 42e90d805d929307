import { Berth } from './client.js';
export declare type Language = 'python' | 'javascript' | 'typescript';
export interface ContextOptions {
    language?: Language | 'python3' | 'js' | 'node' | 'ts';
    cwd?: string;
    envVars?: Record<string, string>;
    timeout?: number;
}
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
}
export interface RunCodeOptions {
    context?: {
        id: string;
    };
    language?: ContextOptions['language'];
    envVars?: Record<string, string>;
    timeout?: number;
    signal?: AbortSignal;
    onStdout?: (output: {
        text: string;
        timestamp: number;
    }) => void;
    onStderr?: (output: {
        text: string;
        timestamp: number;
    }) => void;
    onResult?: (result: Result) => void;
    onError?: (error: CodeError) => void;
}
export interface Execution {
    code: string;
    kind: 'ok' | 'error' | 'timed_out' | 'killed' | 'lost';
    logs: {
        stdout: string[];
        stderr: string[];
    };
    error?: CodeError;
    results: Result[];
    executionCount?: number;
}
export declare type CodeEvent = {
    type: 'stdout' | 'stderr';
    text: string;
    timestamp: number;
} | {
    type: 'result';
    result: Result;
    timestamp: number;
} | {
    type: 'error';
    error: CodeError;
    timestamp: number;
} | {
    type: 'end';
    kind: Execution['kind'];
    timestamp: number;
};
export declare class Code {
    private readonly client;
    private readonly base;
    constructor(client: Berth, base: string);
    create(options?: ContextOptions): Promise<CodeContext>;
    list(): Promise<CodeContext[]>;
    remove(id: string): Promise<void>;
    events(code: string, options?: RunCodeOptions): AsyncGenerator<CodeEvent>;
    run(code: string, options?: RunCodeOptions): Promise<Execution>;
}
