/** Bytes and text, without anything that only Node or only a browser has. */

export function fromBase64(text: string): Uint8Array {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

export function toBase64(bytes: Uint8Array): string {
  const CHUNK = 0x8000; // arguments of one call
  let raw = '';
  for (let i = 0; i < bytes.length; i += CHUNK) raw += String.fromCharCode(...bytes.subarray(i, i + CHUNK));
  return btoa(raw);
}

export function concat(parts: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) {
    all.set(p, at);
    at += p.length;
  }
  return all;
}

/** Null if it is not UTF-8. */
export function asText(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** As text whatever it is: what is no UTF-8 becomes U+FFFD. */
export function lossyText(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}

/** How output is told: as text, in which what is no UTF-8 becomes U+FFFD, or as base64, in which every byte is. */
export type Encoding = 'utf8' | 'base64';

const ENCODINGS: Record<string, Encoding> = { utf8: 'utf8', 'utf-8': 'utf8', base64: 'base64' };

/** Undefined if it is none of ours. */
export function encodingOf(given: string | undefined): Encoding | undefined {
  return ENCODINGS[given ?? 'utf8'];
}

export function encoded(bytes: Uint8Array, encoding: Encoding): string {
  return encoding === 'base64' ? toBase64(bytes) : lossyText(bytes);
}

/** One stream, piece by piece: a character that is cut is told with the next piece; base64 of each piece is whole by itself. */
export class Pieces {
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });

  constructor(private readonly encoding: Encoding) {}

  next(bytes: Uint8Array): string {
    return this.encoding === 'base64' ? toBase64(bytes) : this.#decoder.decode(bytes, { stream: true });
  }

  /** What was cut, and stayed so. */
  rest(): string {
    return this.#decoder.decode();
  }
}

/** The bytes of a member that is `data` or `data_base64`. */
export function dataOf(event: { data?: string; data_base64?: string }): Uint8Array {
  return event.data_base64 !== undefined ? fromBase64(event.data_base64) : new TextEncoder().encode(event.data ?? '');
}

export function randomId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(10));
  return prefix + [...bytes].map((b) => b.toString(16).padStart(2, '0')).join('');
}
