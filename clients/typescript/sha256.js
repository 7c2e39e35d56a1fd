// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4). That of WebCrypto takes 40 us for a short text, and a report needs three.
// The secret of a device is not hashed here: HMAC, like all that has a key, is that of WebCrypto.

/** The first 32 bits after the point of the square root (k = 2) or cube root of a number. */
const rootBits = (number, k) => {
  const scaled = BigInt(number) << BigInt(32 * k);
  let found = 0n;
  for (let bit = 1n << 36n; bit; bit >>= 1n) {
    if ((found + bit) ** BigInt(k) <= scaled) found += bit;
  }
  return Number(found & 0xffffffffn);
};

const primes = [];
for (let n = 2; primes.length < 64; n += 1) {
  if (primes.every((prime) => n % prime)) primes.push(n);
}
const ROUNDS = Int32Array.from(primes, (prime) => rootBits(prime, 3));
const START = Int32Array.from(primes.slice(0, 8), (prime) => rootBits(prime, 2));

const turned = (x, n) => (x >>> n) | (x << (32 - n));
const mixed = (x, i, j, k) => turned(x, i) ^ turned(x, j) ^ turned(x, k);

/** Adds the block of a message at a place to the sums; `w` is room for 64 words. */
const addBlock = (sums, view, at, w) => {
  let [a, b, c, d, e, f, g, h] = sums;
  for (let i = 0; i < 64; i += 1) {
    if (i < 16) w[i] = view.getInt32(at + 4 * i);
    else {
      const [x, y] = [w[i - 15], w[i - 2]];
      const small = turned(x, 7) ^ turned(x, 18) ^ (x >>> 3);
      w[i] = w[i - 16] + small + w[i - 7] + (turned(y, 17) ^ turned(y, 19) ^ (y >>> 10));
    }
    const one = h + mixed(e, 6, 11, 25) + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i];
    const two = mixed(a, 2, 13, 22) + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((x, i) => {
    sums[i] += x;
  });
};

export const sha256 = (bytes) => {
  const padded = new Uint8Array(64 * Math.ceil((bytes.length + 9) / 64));
  padded.set(bytes);
  padded[bytes.length] = 128;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, 8n * BigInt(bytes.length));
  const sums = START.slice();
  const w = new Int32Array(64);
  for (let at = 0; at < padded.length; at += 64) addBlock(sums, view, at, w);
  const found = new DataView(new ArrayBuffer(32));
  sums.forEach((sum, i) => found.setInt32(4 * i, sum));
  return new Uint8Array(found.buffer);
};
