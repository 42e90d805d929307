/** Files of a sandbox, in the seed's words. */
import type { FileEntry } from './api.js';
import { Berth } from './client.js';
export declare type Entry = FileEntry;
export interface FileInfo {
    name: string;
    absolutePath: string;
    relativePath: string;
    type: 'file' | 'directory' | 'symlink' | 'other';
    size: number;
    modifiedAt: string;
    mode: string;
    permissions: {
        readable: boolean;
        writable: boolean;
        executable: boolean;
    };
}
export interface ReadFileResult {
    success: true;
    path: string;
    content: string;
    encoding: 'utf-8' | 'base64';
    isBinary: boolean;
    mimeType: string;
    size: number;
    timestamp: string;
}
export declare type FileContent = string | Uint8Array | ArrayBuffer | Blob | ReadableStream<Uint8Array>;
export declare type FileStreamEvent = {
    type: 'metadata';
    mimeType: string;
    size: number;
    isBinary: boolean;
    encoding: 'utf-8' | 'base64';
} | {
    type: 'chunk';
    data: string;
} | {
    type: 'complete';
    bytesRead: number;
} | {
    type: 'error';
    error: string;
};
export declare class Files {
    private readonly client;
    private readonly base;
    constructor(client: Berth, base: string);
    write(path: string, content: FileContent, options?: {
        encoding?: string;
        mode?: string;
        parents?: boolean;
    }): Promise<{
        success: true;
        path: string;
        timestamp: string;
    }>;
    /** The bytes, over as many connections as it takes while the file stays the same. */
    bytes(path: string, signal?: AbortSignal): AsyncGenerator<Uint8Array>;
    read(path: string, options?: {
        encoding?: string;
    }): Promise<ReadFileResult>;
    readEvents(path: string): AsyncGenerator<FileStreamEvent>;
    stat(path: string): Promise<Entry>;
    exists(path: string): Promise<{
        success: true;
        path: string;
        exists: boolean;
        timestamp: string;
    }>;
    remove(path: string, recursive?: boolean): Promise<{
        success: true;
        path: string;
        timestamp: string;
    }>;
    removeFile(path: string): Promise<{
        success: true;
        path: string;
        timestamp: string;
    }>;
    mkdir(path: string, options?: {
        recursive?: boolean;
    }): Promise<{
        success: true;
        path: string;
        recursive: boolean;
        timestamp: string;
    }>;
    move(from: string, to: string): Promise<{
        success: true;
        path: string;
        newPath: string;
        timestamp: string;
    }>;
    list(path: string, options?: {
        recursive?: boolean;
        includeHidden?: boolean;
    }): Promise<{
        success: true;
        path: string;
        files: FileInfo[];
        count: number;
        timestamp: string;
    }>;
}
/** The chunks of `readFileStream`, as bytes. */
export declare function streamFile(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array>;
export declare function collectFile(stream: ReadableStream<Uint8Array>): Promise<Uint8Array>;
