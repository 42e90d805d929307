/** Files of a sandbox, in the seed's words. */
import type { FileChange, FileEntry } from './api.js';
import { asText, concat, fromBase64, randomId, toBase64 } from './bytes.js';
import { Berth, aborted } from './client.js';
import { BusyError, ConnectionError, FileNotFoundError, IsDirectoryError, NotFoundError } from './errors.js';
import { checkOptions } from './options.js';
import { parseSSEStream, readEvents } from './sse.js';

export type Entry = FileEntry;

export interface FileInfo {
  name: string;
  absolutePath: string;
  relativePath: string;
  type: 'file' | 'directory' | 'symlink' | 'other';
  size: number;
  modifiedAt: string;
  mode: string;
  permissions: { readable: boolean; writable: boolean; executable: boolean };
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

export type FileContent = string | Uint8Array | ArrayBuffer | Blob | ReadableStream<Uint8Array>;

export type FileStreamEvent =
  | { type: 'metadata'; mimeType: string; size: number; isBinary: boolean; encoding: 'utf-8' | 'base64'; mode: string; modifiedAt: string }
  | { type: 'chunk'; data: string }
  | { type: 'complete'; bytesRead: number }
  | { type: 'error'; error: string };

const LOOK_BYTES = 8192;

/** The few kinds that people ask about; everything else is judged by its bytes. */
const MIME: Record<string, string> = {
  txt: 'text/plain', md: 'text/markdown', html: 'text/html', css: 'text/css', csv: 'text/csv', js: 'text/javascript',
  mjs: 'text/javascript', ts: 'text/typescript', py: 'text/x-python', sh: 'text/x-shellscript', c: 'text/x-c', json: 'application/json',
  xml: 'application/xml', yaml: 'application/yaml', yml: 'application/yaml', png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg',
  gif: 'image/gif', svg: 'image/svg+xml', webp: 'image/webp', pdf: 'application/pdf', zip: 'application/zip', gz: 'application/gzip',
  tar: 'application/x-tar', wasm: 'application/wasm',
};

function mimeOf(path: string, isText: boolean): string {
  const dot = path.lastIndexOf('.');
  const known = dot > path.lastIndexOf('/') ? MIME[path.slice(dot + 1).toLowerCase()] : undefined;
  return known ?? (isText ? 'text/plain' : 'application/octet-stream');
}

/** What the server says of the file it has opened: of what a link leads to, and of no other file that took its place since. */
interface Opened {
  size: number | undefined;
  mode: string;
  modifiedAt: string;
}

function openedOf(headers: Headers): Opened {
  const size = headers.get('Content-Length');
  const modified = headers.get('Last-Modified');
  return { size: size === null ? undefined : Number(size), mode: headers.get('Berth-Mode') ?? '',
    modifiedAt: modified === null ? '' : new Date(modified).toISOString() };
}

/**
 * Only whether it is text is judged, by its first bytes: what follows is not there yet. `encoding` is that of the chunks, which may
 * be cut anywhere.
 */
function metadataOf(path: string, opened: Opened, first: Uint8Array): FileStreamEvent {
  const look = first.subarray(0, LOOK_BYTES);
  const size = opened.size ?? first.length;
  const isBinary = !looksLikeText(look, look.length < size);
  return { type: 'metadata', mimeType: mimeOf(path, !isBinary), size, isBinary, encoding: 'base64', mode: opened.mode,
    modifiedAt: opened.modifiedAt };
}

/** UTF-8 without NUL; `cut`: its last character may not be whole. */
function looksLikeText(bytes: Uint8Array, cut: boolean): boolean {
  try {
    return !new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: cut }).includes('\0');
  } catch {
    return false;
  }
}

const stamp = (): string => new Date().toISOString();

export class Files {
  constructor(private readonly client: Berth, private readonly base: string) {}

  async write(path: string, content: FileContent, options: { encoding?: string; mode?: string; parents?: boolean } = {}) {
    checkOptions('writeFile', options, { encoding: true, mode: true, parents: true });
    let body: BodyInit | ReadableStream<Uint8Array>;
    if (typeof content === 'string') {
      body = options.encoding === 'base64' ? fromBase64(content) : new TextEncoder().encode(content);
    } else {
      body = content as BodyInit;
    }
    await this.client.json<Entry>('PUT', `${this.base}/files`, {
      query: { path, mode: options.mode, parents: options.parents ?? true }, body, key: randomId('write_'),
      headers: { 'Content-Type': 'application/octet-stream' } });
    return { success: true as const, path, timestamp: stamp() };
  }

  /** The bytes, over as many connections as it takes while the file stays the same. */
  async *bytes(path: string, signal?: AbortSignal, onOpened?: (opened: Opened) => void): AsyncGenerator<Uint8Array> {
    let at = 0;
    let tag = '';
    let size: number | undefined;
    for (let attempt = 0; ; attempt++) {
      const headers: Record<string, string> = at > 0 ? { Range: `bytes=${at}-`, 'If-Range': tag } : {};
      const answer = await this.client.send('GET', `${this.base}/files`, { query: { path }, headers, ...(signal ? { signal } : {}) });
      if (at > 0 && (answer.status !== 206 || (answer.headers.get('ETag') ?? '') !== tag)) {
        throw new ConnectionError({ code: 'connection', message: `${path} was changed while it was read` });
      }
      if (at === 0) {
        tag = answer.headers.get('ETag') ?? '';
        const opened = openedOf(answer.headers);
        size = opened.size;
        onOpened?.(opened);
      }
      try {
        const reader = answer.body?.getReader();
        for (;;) {
          const part = await reader?.read();
          if (part === undefined || part.done) break;
          at += part.value.length;
          attempt = 0;
          yield part.value;
        }
        if (size === undefined || at === size) return;
        if (at > size) throw new ConnectionError({ code: 'connection', message: `${path} was changed while it was read` });
      } catch (error) {
        if (signal?.aborted) throw aborted(signal);
        if (tag === '' || attempt >= this.client.retries) {
          throw new ConnectionError({ code: 'connection', message: `reading ${path} broke off after ${at} bytes` }, 0, { cause: error });
        }
      }
      if (attempt >= this.client.retries) {
        throw new ConnectionError({ code: 'connection', message: `reading ${path} broke off after ${at} of ${size} bytes` });
      }
    }
  }

  async read(path: string, options: { encoding?: string } = {}): Promise<ReadFileResult> {
    checkOptions('readFile', options, { encoding: true });
    const parts: Uint8Array[] = [];
    for await (const part of this.bytes(path)) parts.push(part);
    const all = concat(parts);
    const text = options.encoding === 'base64' ? null : asText(all);
    const isBinary = asText(all) === null;
    return { success: true, path, content: text ?? toBase64(all), encoding: text === null ? 'base64' : 'utf-8', isBinary,
      mimeType: mimeOf(path, !isBinary), size: all.length, timestamp: stamp() };
  }

  async *readEvents(path: string): AsyncGenerator<FileStreamEvent> {
    try {
      let opened: Opened = { size: undefined, mode: '', modifiedAt: '' };
      let bytesRead = 0;
      for await (const part of this.bytes(path, undefined, (told) => { opened = told; })) {
        if (bytesRead === 0) yield metadataOf(path, opened, part);
        bytesRead += part.length;
        yield { type: 'chunk', data: toBase64(part) };
      }
      if (bytesRead === 0) yield metadataOf(path, opened, new Uint8Array());
      yield { type: 'complete', bytesRead };
    } catch (error) {
      yield { type: 'error', error: (error as Error).message };
    }
  }

  stat(path: string): Promise<Entry> {
    return this.client.json<Entry>('GET', `${this.base}/files/stat`, { query: { path } });
  }

  async exists(path: string) {
    try {
      await this.stat(path);
      return { success: true as const, path, exists: true, timestamp: stamp() };
    } catch (error) {
      if (!(error instanceof FileNotFoundError) && !(error instanceof NotFoundError)) throw error;
      if (error instanceof NotFoundError && error.reason === '' ) throw error; // the sandbox itself is gone
      return { success: true as const, path, exists: false, timestamp: stamp() };
    }
  }

  async remove(path: string, recursive = false) {
    await this.client.json('DELETE', `${this.base}/files`, { query: { path, recursive: recursive || undefined }, key: randomId('rm_') });
    return { success: true as const, path, timestamp: stamp() };
  }

  async removeFile(path: string) {
    if ((await this.stat(path)).type === 'directory') {
      throw new IsDirectoryError({ code: 'invalid', message: `${path} is a directory`, reason: 'is_a_directory',
        remediation: 'deleteFile takes files; use exec with rm -r.' });
    }
    return this.remove(path);
  }

  async mkdir(path: string, options: { recursive?: boolean } = {}) {
    checkOptions('mkdir', options, { recursive: true });
    const recursive = options.recursive ?? false;
    await this.client.json('POST', `${this.base}/files/mkdir`, { json: { path, parents: recursive }, key: randomId('mkdir_') });
    return { success: true as const, path, recursive, timestamp: stamp() };
  }

  async move(from: string, to: string) {
    await this.client.json('POST', `${this.base}/files/move`, { json: { from, to, overwrite: true }, key: randomId('mv_') });
    return { success: true as const, path: from, newPath: to, timestamp: stamp() };
  }

  /** A tar of everything below `path`, as it comes; one that breaks off throws. */
  async packTree(path: string, options: { signal?: AbortSignal } = {}): Promise<ReadableStream<Uint8Array>> {
    const answer = await this.client.send('GET', `${this.base}/files/tar`, { query: { path }, ...options });
    if (answer.body === null) throw new ConnectionError({ code: 'connection', message: 'an answer without a body' });
    return answer.body;
  }

  /** Unpack a tar below `path`; how many entries it had. What was unpacked before a failure stays. */
  async unpackTree(path: string, tar: Uint8Array | Blob | ReadableStream<Uint8Array>): Promise<number> {
    return (await this.client.json<{ entries: number }>('PUT', `${this.base}/files/tar`, { query: { path }, body: tar as BodyInit,
      key: randomId('tar_'), headers: { 'Content-Type': 'application/x-tar' } })).entries;
  }

  /** Changes below `path` as they happen, until the loop over them is left. `onWatching`: from now on nothing is missed. */
  async *watch(path: string, options: { recursive?: boolean; signal?: AbortSignal; onWatching?: () => void } = {}): AsyncGenerator<FileChange> {
    checkOptions('watch', options, { recursive: true, signal: true, onWatching: true });
    const answer = await this.client.send('GET', `${this.base}/files/watch`, { query: { path, recursive: options.recursive ?? true },
      headers: { Accept: 'text/event-stream' }, ...(options.signal ? { signal: options.signal } : {}) });
    if (answer.body === null) throw new ConnectionError({ code: 'connection', message: 'an answer without a body' });
    for await (const e of readEvents(answer.body)) {
      if (e.event === 'watching') options.onWatching?.();
      else if (e.event === 'change') yield JSON.parse(e.data);
      else if (e.event === 'overflow') {
        throw new BusyError({ code: 'busy', message: `more changed below ${path} than could be told`, remediation: 'List it again.' });
      }
    }
    throw new ConnectionError({ code: 'connection', message: `watching ${path} broke off`, remediation: 'List it again, and watch on.' });
  }

  async list(path: string, options: { recursive?: boolean; includeHidden?: boolean } = {}) {
    checkOptions('listFiles', options, { recursive: true, includeHidden: true });
    const root = path.replace(/\/+$/, '') || '/';
    const files: FileInfo[] = [];
    for (let after: string | undefined; ;) {
      const page = await this.client.json<{ entries: Entry[]; next: string }>('GET', `${this.base}/files/list`,
        { query: { path, recursive: options.recursive || undefined, after, limit: 1000 } });
      for (const entry of page.entries) files.push(infoOf(entry, root));
      if (page.next === '') break;
      after = page.next;
    }
    const shown = options.includeHidden ? files : files.filter((f) => !f.relativePath.split('/').some((part) => part.startsWith('.')));
    return { success: true as const, path, files: shown, count: shown.length, timestamp: stamp() };
  }
}

function nameOf(text: string | undefined, coded: string | undefined): string {
  return text ?? new TextDecoder().decode(fromBase64(coded ?? ''));
}

function infoOf(e: Entry, root: string): FileInfo {
  const absolutePath = nameOf(e.path, e.path_base64);
  const mode = parseInt(e.mode, 8);
  return {
    name: nameOf(e.name, e.name_base64),
    absolutePath,
    relativePath: absolutePath.slice(root === '/' ? 1 : root.length + 1),
    type: e.type === 'file' || e.type === 'directory' || e.type === 'symlink' ? e.type : 'other',
    size: e.size,
    modifiedAt: e.modified_at,
    mode: e.mode,
    permissions: { readable: (mode & 0o444) !== 0, writable: (mode & 0o222) !== 0, executable: (mode & 0o111) !== 0 },
  };
}

/** The chunks of `readFileStream`, as bytes. */
export async function* streamFile(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  let complete = false;
  for await (const e of parseSSEStream<FileStreamEvent>(stream)) {
    if (e.type === 'chunk') yield fromBase64(e.data);
    else if (e.type === 'error') throw new ConnectionError({ code: 'connection', message: e.error });
    else if (e.type === 'complete') complete = true;
  }
  if (!complete) throw new ConnectionError({ code: 'connection', message: 'the file broke off' });
}

export async function collectFile(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of streamFile(stream)) parts.push(part);
  return concat(parts);
}
