export interface BerthOptions {
    /** `http://127.0.0.1:7070`; default: BERTH_URL of the environment. */
    baseUrl?: string;
    /** Default: BERTH_API_KEY of the environment. */
    apiKey?: string;
    /** The image of sandboxes that `getSandbox` makes; default `base`. */
    image?: string;
    fetch?: typeof fetch;
    /** How often a request that may be repeated is sent again after its connection failed; default 5. */
    retries?: number;
}
export interface Call {
    query?: Record<string, string | number | boolean | undefined>;
    json?: unknown;
    body?: BodyInit | ReadableStream<Uint8Array>;
    headers?: Record<string, string>;
    signal?: AbortSignal;
    /** Sent again when the connection fails. GET always is; others need a key to be safe. */
    key?: string;
}
export declare function pause(ms: number, signal?: AbortSignal): Promise<void>;
export declare function backoff(attempt: number): number;
export declare function aborted(signal: AbortSignal): unknown;
export declare class Berth {
    #private;
    readonly baseUrl: string;
    readonly image: string;
    readonly retries: number;
    constructor(options?: BerthOptions);
    /** The same key at another address. */
    at(baseUrl: string): Berth;
    /** The address of a WebSocket route, and the protocol that carries the key where headers cannot. */
    socketUrl(path: string): string;
    headers(): Record<string, string>;
    /** The answer as it comes; a status of 400 and above is thrown. */
    send(method: string, path: string, call?: Call): Promise<Response>;
    json<T>(method: string, path: string, call?: Call): Promise<T>;
}
