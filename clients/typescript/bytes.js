// SPDX-License-Identifier: Apache-2.0
// Bytes; HMAC-SHA256, and the generator of the operating system, by WebCrypto.
const { subtle } = globalThis.crypto;
const HMAC = { name: "HMAC", hash: "SHA-256" };

/** A key of `hmac`. */
export const keyOf = (bytes) => subtle.importKey("raw", bytes, HMAC, false, ["sign"]);

export const hmac = async (key, text) => new Uint8Array(await subtle.sign("HMAC", key, text));

export const fromBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

export const utf8 = (text) => new TextEncoder().encode(text);

export const hex = (bytes) =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export const concat = (...parts) => {
  const found = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    found.set(part, at);
    at += part.length;
  }
  return found;
};

/** An integer in `size` bytes, the most significant first. */
export const bigEndian = (number, size) => {
  const found = new Uint8Array(size);
  let rest = BigInt(number);
  for (let i = size - 1; i >= 0; i -= 1) {
    found[i] = Number(rest & 255n);
    rest >>= 8n;
  }
  return found;
};

/** The bytes as words of 64 bits. */
export const wordsOf = (bytes) => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const found = new Array(bytes.length >> 3);
  for (let i = 0; i < found.length; i += 1) found[i] = view.getBigUint64(8 * i);
  return found;
};

/** Words of the operating system's generator; it gives at most 65,536 bytes a call. */
export const systemWords = (count) => {
  const found = new BigUint64Array(count);
  for (let at = 0; at < count; at += 8192) {
    globalThis.crypto.getRandomValues(found.subarray(at, at + 8192));
  }
  return found;
};
