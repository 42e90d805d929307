/** A sandbox and its sessions: the class an agent works with. */
import type * as Api from './api.js';
import { Berth } from './client.js';
import { CodeContext, ContextOptions, Execution, RunCodeOptions } from './code.js';
import { ExecOptions, ExecResult, OutputEvent } from './exec.js';
import { FileContent, Files } from './files.js';
import { Process, ProcessOptions } from './process.js';
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
}
export interface SessionOptions {
    id?: string;
    name?: string;
    env?: Record<string, string>;
    cwd?: string;
}
export declare type SandboxRecord = Api.Sandbox;
export declare type Receipt = Api.Gone;
export declare const WORKSPACE = "/workspace";
export declare function milliseconds(after: number | string): number;
/** Where commands, files and code go: a whole sandbox, or one session of it. */
export declare abstract class Workspace {
    #private;
    protected readonly client: Berth;
    constructor(client: Berth);
    /** The id of the session commands run in. */
    abstract readonly sessionId: string;
    /** `/v1/sandboxes/ID`, once the sandbox is there. */
    protected abstract base(): Promise<string>;
    /** Its shell, made on first use. */
    protected abstract shell(): Promise<string>;
    /**
     * In this session's shell: what it changes (directory, variables, functions)
     * is there for the next one. A command that fails is a result, not an error;
     * one that ran out of time, or that nobody saw end, is an error.
     */
    exec(command: string, options?: ExecOptions): Promise<ExecResult>;
    /** The same as it happens, byte for byte. */
    events(command: string, options?: ExecOptions): AsyncGenerator<OutputEvent>;
    /** Events for `parseSSEStream`. */
    execStream(command: string, options?: ExecOptions): Promise<ReadableStream<Uint8Array>>;
    startProcess(command: string, options?: ProcessOptions): Promise<Process>;
    /** Where processes start; the sandbox's directory for work. */
    protected cwd(): Promise<string>;
    listProcesses(): Promise<Process[]>;
    /** Null if there is none. */
    getProcess(id: string): Promise<Process | null>;
    killProcess(id: string, signal?: string | number): Promise<void>;
    killAllProcesses(): Promise<number>;
    cleanupCompletedProcesses(): Promise<number>;
    getProcessLogs(id: string): Promise<{
        stdout: string;
        stderr: string;
        processId: string;
    }>;
    streamProcessLogs(id: string, options?: {
        signal?: AbortSignal;
    }): Promise<ReadableStream<Uint8Array>>;
    files(): Promise<Files>;
    mkdir(path: string, options?: {
        recursive?: boolean;
    }): Promise<{
        success: true;
        path: string;
        recursive: boolean;
        timestamp: string;
    }>;
    writeFile(path: string, content: FileContent, options?: {
        encoding?: string;
        mode?: string;
    }): Promise<{
        success: true;
        path: string;
        timestamp: string;
    }>;
    readFile(path: string, options?: {
        encoding?: string;
    }): Promise<import("./files.js").ReadFileResult>;
    /** Events for `streamFile` and `collectFile`. */
    readFileStream(path: string): Promise<ReadableStream<Uint8Array>>;
    deleteFile(path: string): Promise<{
        success: true;
        path: string;
        timestamp: string;
    }>;
    renameFile(oldPath: string, newPath: string): Promise<{
        success: true;
        path: string;
        newPath: string;
        timestamp: string;
    }>;
    moveFile(sourcePath: string, destinationPath: string): Promise<{
        success: true;
        path: string;
        newPath: string;
        timestamp: string;
    }>;
    listFiles(path: string, options?: {
        recursive?: boolean;
        includeHidden?: boolean;
    }): Promise<{
        success: true;
        path: string;
        files: import("./files.js").FileInfo[];
        count: number;
        timestamp: string;
    }>;
    exists(path: string): Promise<{
        success: true;
        path: string;
        exists: boolean;
        timestamp: string;
    }>;
    gitCheckout(repoUrl: string, options?: {
        branch?: string;
        targetDir?: string;
        depth?: number;
        username?: string;
        token?: string;
        timeout?: number;
    }): Promise<{
        success: true;
        repoUrl: string;
        branch: string;
        targetDir: string;
        commit: string;
        timestamp: string;
    }>;
    createCodeContext(options?: ContextOptions): Promise<CodeContext>;
    runCode(code: string, options?: RunCodeOptions): Promise<Execution>;
    runCodeStream(code: string, options?: RunCodeOptions): Promise<ReadableStream<Uint8Array>>;
    listCodeContexts(): Promise<CodeContext[]>;
    deleteCodeContext(id: string): Promise<void>;
    exposePort(_port: number, _options?: {
        hostname?: string;
        name?: string;
    }): Promise<{
        url: string;
        port: number;
        name?: string;
    }>;
    unexposePort(_port: number): Promise<void>;
    getExposedPorts(_hostname?: string): Promise<{
        url: string;
        port: number;
        status: string;
    }[]>;
    isPortExposed(_port: number): Promise<boolean>;
    validatePortToken(_port: number, _token: string): Promise<boolean>;
}
export declare class Session extends Workspace {
    readonly id: string;
    private readonly at;
    private readonly start;
    constructor(client: Berth, id: string, at: () => Promise<string>, start: string);
    get sessionId(): string;
    protected base(): Promise<string>;
    protected shell(): Promise<string>;
    protected cwd(): Promise<string>;
    /** For what this session runs from now on. */
    setEnvVars(env: Record<string, string | undefined>): Promise<void>;
}
export declare class Sandbox extends Workspace {
    #private;
    readonly id: string;
    private readonly options;
    readonly sessionId: string;
    constructor(client: Berth, id: string, options?: SandboxOptions);
    /** Its record; it is made by the first call that needs it. */
    info(): Promise<SandboxRecord>;
    protected base(): Promise<string>;
    protected shell(): Promise<string>;
    /** A shell of its own with the whole API: same files and processes, other directory and variables. */
    createSession(options?: SessionOptions): Promise<Session>;
    /** One that is there; NotFoundError otherwise. */
    getSession(id: string): Promise<Session>;
    deleteSession(id: string): Promise<void>;
    /** For everything that starts from now on, in this sandbox's record: a restart does not lose them. */
    setEnvVars(env: Record<string, string | undefined>): Promise<void>;
    /** Gone, and proven: the receipt. */
    destroy(): Promise<Receipt>;
}
/** The sandbox of this name, made by its first use. */
export declare function getSandbox(client: Berth, id: string, options?: SandboxOptions): Sandbox;
