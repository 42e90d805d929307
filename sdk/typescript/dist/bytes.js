/** Bytes and text, without anything that only Node or only a browser has. */
export function fromBase64(text) {
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++)
        bytes[i] = raw.charCodeAt(i);
    return bytes;
}
export function toBase64(bytes) {
    const CHUNK = 0x8000; // arguments of one call
    let raw = '';
    for (let i = 0; i < bytes.length; i += CHUNK)
        raw += String.fromCharCode(...bytes.subarray(i, i + CHUNK));
    return btoa(raw);
}
export function concat(parts) {
    const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
    let at = 0;
    for (const p of parts) {
        all.set(p, at);
        at += p.length;
    }
    return all;
}
/** Null if it is not UTF-8. */
export function asText(bytes) {
    try {
        return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    }
    catch {
        return null;
    }
}
/** As text whatever it is: what is no UTF-8 becomes U+FFFD. */
export function lossyText(bytes) {
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}
/** The bytes of a member that is `data` or `data_base64`. */
export function dataOf(event) {
    return event.data_base64 !== undefined ? fromBase64(event.data_base64) : new TextEncoder().encode(event.data ?? '');
}
export function randomId(prefix) {
    const bytes = crypto.getRandomValues(new Uint8Array(10));
    return prefix + [...bytes].map((b) => b.toString(16).padStart(2, '0')).join('');
}
