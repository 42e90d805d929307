/** Images: what sandboxes are made of. Reading is for all, the rest for admins. */
import type * as Api from './api.js';
import type { Berth } from './client.js';
import { ConnectionError, errorFrom } from './errors.js';
import { readEvents } from './sse.js';

export type ImageProgress = Api.ImageProgress;

export interface MakeOptions {
  /** How far it is, as it happens. */
  onProgress?: (progress: ImageProgress) => void;
  signal?: AbortSignal;
}

export class Images {
  constructor(private readonly client: Berth) {}

  async list(): Promise<Api.Image[]> {
    return (await this.client.json<{ images: Api.Image[] }>('GET', '/v1/images')).images;
  }

  /** From a registry: `host[:port]/path[:tag][@digest]`. The work goes on if this client leaves. */
  pull(reference: string, options: MakeOptions & { name?: string } = {}): Promise<Api.Image> {
    const json = options.name === undefined ? { reference } : { reference, name: options.name };
    return this.#make('POST', '/v1/images', { json }, options);
  }

  /** From a tar of a root filesystem, or of an image's layers as `docker save` writes them. */
  import(name: string, tar: Uint8Array | Blob | ReadableStream<Uint8Array>, options: MakeOptions = {}): Promise<Api.Image> {
    return this.#make('PUT', path(name), { body: tar as BodyInit, headers: { 'Content-Type': 'application/x-tar' } }, options);
  }

  async remove(name: string): Promise<void> {
    await this.client.json('DELETE', path(name));
  }

  async #make(method: string, at: string, call: { json?: unknown; body?: BodyInit; headers?: Record<string, string> },
    options: MakeOptions): Promise<Api.Image> {
    const answer = await this.client.send(method, at, { ...call, headers: { ...call.headers, Accept: 'text/event-stream' },
      ...(options.signal ? { signal: options.signal } : {}) });
    if (answer.body !== null) {
      for await (const e of readEvents(answer.body)) {
        if (e.event === 'progress') options.onProgress?.(JSON.parse(e.data));
        else if (e.event === 'image') return JSON.parse(e.data);
        else if (e.event === 'error') throw errorFrom(JSON.parse(e.data), 500);
      }
    }
    throw new ConnectionError({ code: 'connection', message: 'the answer broke off before the image was told',
      remediation: 'Look whether it is in the list by now.' });
  }
}

const path = (name: string): string => `/v1/images/${encodeURIComponent(name)}`;
