import { Berth } from './client.js';
import { BerthError } from './errors.js';
import { ExecRecord } from './exec.js';
export declare type ProcessStatus = 'starting' | 'running' | 'completed' | 'failed' | 'killed' | 'error';
export interface ProcessOptions {
    processId?: string;
    cwd?: string;
    env?: Record<string, string>;
    timeout?: number;
    /** Forget its record as soon as it has ended. */
    autoCleanup?: boolean;
    onStart?: (process: Process) => void;
    onOutput?: (stream: 'stdout' | 'stderr', data: string) => void;
    onExit?: (code: number | null) => void;
    onError?: (error: Error) => void;
}
export interface LogEvent {
    type: 'stdout' | 'stderr' | 'exit' | 'error';
    timestamp: string;
    data: string;
    processId: string;
    exitCode?: number | null;
}
/** It did not get ready in the time it was given. */
export declare class ProcessReadyTimeoutError extends BerthError {
}
/** It ended before it was ready. */
export declare class ProcessExitedBeforeReadyError extends BerthError {
}
export declare class Process {
    #private;
    readonly record: ExecRecord;
    private readonly client;
    private readonly base;
    readonly id: string;
    readonly pid: number;
    readonly command: string;
    readonly startTime: Date;
    status: ProcessStatus;
    endTime: Date | undefined;
    exitCode: number | null | undefined;
    readonly sessionId: string | undefined;
    constructor(record: ExecRecord, client: Berth, base: string);
    getStatus(): Promise<ProcessStatus>;
    /** The given signal to all of it; without one TERM, and KILL after five seconds. */
    kill(signal?: string | number): Promise<void>;
    getLogs(): Promise<{
        stdout: string;
        stderr: string;
    }>;
    waitForExit(timeout?: number): Promise<{
        exitCode: number | null;
    }>;
    /** A text, or a regular expression, in what it writes. */
    waitForLog(pattern: string | RegExp, timeout?: number): Promise<{
        line: string;
    }>;
    waitForPort(port: number, options?: {
        timeout?: number;
    }): Promise<void>;
}
export declare function killProcess(client: Berth, base: string, id: string, signal?: string | number): Promise<ExecRecord>;
/** Everything it has written so far. */
export declare function logs(client: Berth, base: string, id: string): Promise<{
    stdout: string;
    stderr: string;
}>;
export declare function logEvents(client: Berth, base: string, id: string, signal?: AbortSignal): AsyncGenerator<LogEvent>;
export declare function startProcess(client: Berth, base: string, command: string, options: ProcessOptions, more: Record<string, unknown>): Promise<Process>;
