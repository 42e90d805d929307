/** Server-sent events, read and written. */
export interface ServerEvent {
    event: string;
    id: string;
    data: string;
}
/** The events of one answer, until it ends; an event that was cut off is not given. */
export declare function readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent>;
/** A byte stream of `data:` events out of any objects. */
export declare function writeEvents<T>(events: AsyncGenerator<T>): ReadableStream<Uint8Array>;
/** What `execStream`, `streamProcessLogs`, `readFileStream` and `runCodeStream` give, one object each. */
export declare function parseSSEStream<T>(stream: ReadableStream<Uint8Array>, signal?: AbortSignal): AsyncGenerator<T>;
