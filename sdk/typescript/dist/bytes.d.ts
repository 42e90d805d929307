/** Bytes and text, without anything that only Node or only a browser has. */
export declare function fromBase64(text: string): Uint8Array;
export declare function toBase64(bytes: Uint8Array): string;
export declare function concat(parts: Uint8Array[]): Uint8Array;
/** Null if it is not UTF-8. */
export declare function asText(bytes: Uint8Array): string | null;
/** As text whatever it is: what is no UTF-8 becomes U+FFFD. */
export declare function lossyText(bytes: Uint8Array): string;
/** The bytes of a member that is `data` or `data_base64`. */
export declare function dataOf(event: {
    data?: string;
    data_base64?: string;
}): Uint8Array;
export declare function randomId(prefix: string): string;
