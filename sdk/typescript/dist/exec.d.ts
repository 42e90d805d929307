/**
 * One command. The server journals it under an id that is chosen here, so a
 * connection that breaks is only a pause: it goes on from its position, and
 * nothing is run twice.
 */
import type { Exec, ExecExit } from './api.js';
import { Berth } from './client.js';
import { BerthError } from './errors.js';
/** A missing exit code is null, never 0. */
export type { ExecExit };
export declare type ExecKind = ExecExit['kind'];
export declare type ExecRecord = Exec;
export interface ExecOptions {
    /** Milliseconds; the whole tree is killed then. */
    timeout?: number;
    cwd?: string;
    env?: Record<string, string>;
    /** Bytes or text for its standard input; without, it reads nothing. */
    stdin?: string;
    signal?: AbortSignal;
    /** Call `onOutput` while it runs. */
    stream?: boolean;
    onOutput?: (stream: 'stdout' | 'stderr', data: string) => void;
    onComplete?: (result: ExecResult) => void;
    onError?: (error: Error) => void;
}
export declare type OutputEvent = {
    type: 'started';
    id: string;
    pid: number;
} | {
    type: 'stdout' | 'stderr';
    bytes: Uint8Array;
} | {
    type: 'gap';
    lost: number;
} | {
    type: 'exit';
    exit: ExecExit;
};
/** How a command ended, and all it wrote. */
export declare class ExecResult {
    readonly command: string;
    readonly id: string;
    readonly sessionId: string;
    readonly exit: ExecExit;
    readonly success: boolean;
    readonly exitCode: number | null;
    readonly kind: ExecKind;
    readonly signal: number;
    readonly stdoutBytes: Uint8Array;
    readonly stderrBytes: Uint8Array;
    readonly duration: number;
    readonly timestamp: string;
    /** Bytes that were not kept because the output was longer than a journal may be. */
    readonly gapBytes: number;
    /** Of a command in a shell: that shell had to be started anew. */
    readonly restarted: boolean;
    constructor(command: string, id: string, sessionId: string, exit: ExecExit, stdout: Uint8Array[], stderr: Uint8Array[], gap: number);
    get stdout(): string;
    get stderr(): string;
}
/** It did not end in its time, and was killed with everything it had started. */
export declare class CommandTimeoutError extends BerthError {
    readonly result: ExecResult;
    constructor(result: ExecResult, timeout: number | undefined);
}
/** Nobody saw how it ended. It may have done all, some or nothing of its work. */
export declare class CommandLostError extends BerthError {
    readonly result: ExecResult;
    constructor(result: ExecResult);
}
interface Ask {
    command?: string;
    argv?: string[];
    cwd?: string;
    env?: Record<string, string>;
    stdin?: string;
    timeout_ms?: number;
    shell?: string;
}
/**
 * The events of one exec from a position on, over as many connections as it takes.
 * `first` is the request that starts it, for the first connection.
 */
export declare function follow(client: Berth, base: string, id: string, position: number, signal?: AbortSignal, first?: () => Promise<Response>): AsyncGenerator<OutputEvent>;
/** Start a command and follow it to its end. An abort kills it. */
export declare function run(client: Berth, base: string, ask: Ask, signal?: AbortSignal): AsyncGenerator<OutputEvent>;
export declare function kill(client: Berth, base: string, id: string, signal: string | number, graceMs?: number): Promise<ExecRecord>;
/** All of a command: events to the callbacks, one result at the end. */
export declare function collect(events: AsyncGenerator<OutputEvent>, command: string, sessionId: string, options: ExecOptions): Promise<ExecResult>;
/** Events as the seed's `execStream` gives them. */
export interface ExecEvent {
    type: 'start' | 'stdout' | 'stderr' | 'complete' | 'error';
    timestamp: string;
    command?: string;
    data?: string;
    exitCode?: number | null;
    result?: ExecExit;
    error?: string;
}
export declare function execEvents(events: AsyncGenerator<OutputEvent>, command: string): AsyncGenerator<ExecEvent>;
export declare function askOf(command: string, options: ExecOptions, shell?: string): Ask;
