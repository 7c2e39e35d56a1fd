// SPDX-License-Identifier: Apache-2.0
// The oracles of spec/telemetry/format.md. Weights and random words are BigInts of 64 bits.
import { bigEndian, concat, utf8, wordsOf } from "./bytes.js";
import { sha256 } from "./sha256.js";

const WHOLE = 1n << 64n;

/** The least number of bytes that holds a number. */
const sizeOf = (most) => {
  let count = 1;
  while (256 ** count <= most) count += 1;
  return count;
};

/** Bits as bytes, the least significant first: 1 where the word is below the weight of its bit. */
const drawnBits = (count, words, from, weightOf) => {
  const payload = new Uint8Array(Math.ceil(count / 8));
  for (let i = 0; i < count; i += 1) {
    if (words[from + i] < weightOf(i)) payload[i >> 3] |= 1 << (i & 7);
  }
  return payload;
};

/** The place itself, or another one, of words that give the truth the weight `truth`. */
const perhaps = (word, truth, other, place) => {
  if (word < truth) return place;
  const found = Number((word - truth) / other);
  return found >= place ? found + 1 : found;
};

const category = (o, v, w) => {
  const said = perhaps(w[0], BigInt(o.truth), BigInt(o.other_weight), v);
  return bigEndian(said, sizeOf(o.values - 1));
};

const hashed = (o, v, w) => {
  const high = ((w[0] * BigInt(v) + w[1]) % WHOLE) >> 32n;
  const own = Number((high * BigInt(o.buckets)) >> 32n);
  const bucket = perhaps(w[2], BigInt(o.truth), BigInt(o.other_weight), own);
  const said = bigEndian(bucket, sizeOf(o.buckets - 1));
  return concat(bigEndian(w[0], 8), bigEndian(w[1], 8), said);
};

/** The parity of the number of ones. */
const parity = (bits) => {
  let sign = 0n;
  for (let rest = bits; rest; rest &= rest - 1n) sign ^= 1n;
  return sign;
};

const rowBits = (values) => 32 - Math.clz32(values - 1);

const bit = (o, v, w) => {
  const m = rowBits(o.values);
  const row = w[0] >> BigInt(64 - m);
  const sign = parity(row & BigInt(v));
  const said = w[1] < BigInt(o.truth) ? sign : 1n - sign;
  return bigEndian(2n * row + said, sizeOf(2 ** (m + 1) - 1));
};

const unary = (o, v, w) => {
  const kept = BigInt(o.kept);
  const added = BigInt(o.added);
  return drawnBits(o.values, w, 0, (i) => (i === v ? kept : added));
};

const digitsOf = (x, q, count) => {
  const found = new Array(count);
  let rest = x;
  for (let i = count - 1; i >= 0; i -= 1) {
    found[i] = rest % q;
    rest = Math.floor(rest / q);
  }
  return found;
};

/** (q^f - 1)/(q - 1): how many points have fewer than f digits after the leading one. */
const pointsBelow = (q, f) => (q ** f - 1) / (q - 1);

const freeDigits = (x, q) => {
  let f = 0;
  while (pointsBelow(q, f + 1) <= x) f += 1;
  return f;
};

const vectorOf = (x, q) => {
  const f = freeDigits(x, q);
  return x - pointsBelow(q, f) + q ** f;
};

/** The vector with the digits of `rest` whose product with the value is `product`. */
const completed = (o, v, rest, product) => {
  const { prime: q, dimension: t } = o;
  const f = freeDigits(v, q);
  const coefficients = digitsOf(vectorOf(v, q), q, t).reverse();
  const cut = q ** (t - 1 - f);
  const upper = Math.floor(rest / cut);
  const known = digitsOf(upper, q, f).reduce((sum, u, i) => sum + coefficients[i] * u, 0);
  const x = (((product - known) % q) + q) % q;
  return (upper * q + x) * cut + (rest % cut);
};

const inverse = (leading, q) => {
  let k = 1;
  while ((k * leading) % q !== 1) k += 1;
  return k;
};

/** The number of the point that a vector is a multiple of. */
const pointOf = (vector, q, t) => {
  const found = digitsOf(vector, q, t);
  const first = found.findIndex((digit) => digit > 0);
  const scale = inverse(found[first], q);
  const free = t - 1 - first;
  const scaled = found.reduce((x, digit) => x * q + ((digit * scale) % q), 0);
  return scaled - q ** free + pointsBelow(q, free);
};

const projective = (o, v, w) => {
  const { prime: q, dimension: t } = o;
  const near = BigInt(o.near);
  const edge = near * BigInt(pointsBelow(q, t - 1));
  const isNear = w[0] < edge;
  const rest = isNear
    ? vectorOf(Number(w[0] / near), q)
    : Number((w[0] - edge) / BigInt(o.far));
  const point = pointOf(completed(o, v, rest, isNear ? 0 : 1), q, t);
  return bigEndian(point, sizeOf(pointsBelow(q, t) - 1));
};

const meanPlace = (o, v, word) => {
  const near = BigInt(o.near);
  const inside = near * BigInt(o.window);
  if (word < inside) return 2 + v + Number(word / near);
  const j = Number((word - inside) / BigInt(o.far));
  return 2 + j + (j >= v ? o.window : 0);
};

const mean = (o, v, w) => {
  const share = BigInt(o.share);
  const low = BigInt(o.low);
  const slope = (BigInt(o.high) - low) / BigInt(o.values - 1);
  const coin = () => Number(w[1] < low + slope * BigInt(v));
  const said = w[0] >= share ? coin() : meanPlace(o, v, w[1]);
  return bigEndian(said, sizeOf(share ? o.window + o.values : 1));
};

/** The payload of one part, after its place and with zeros up to the size of the largest. */
const onePart = (o, place, v, words) => {
  const payload = new Uint8Array(payloadSize(o));
  payload[0] = place;
  payload.set(encode(o.parts[place], v, words), 1);
  return payload;
};

const drawn = (count, word) => Number((word * BigInt(count)) >> 64n);

const levels = (o, v, w) => {
  const level = drawn(o.parts.length, w[0]);
  return onePart(o, level, Math.floor(v / o.branching ** level), w.slice(1));
};

const attributes = (o, v, w) => {
  const place = drawn(o.parts.length, w[0]);
  const below = o.parts.slice(0, place).reduce((size, part) => size * BigInt(part.values), 1n);
  const own = (BigInt(v) / below) % BigInt(o.parts[place].values);
  return onePart(o, place, Number(own), w.slice(1));
};

/** The bucket of a text under the hash function of a row. */
const bucketOf = (values, v, row) => {
  const label = concat(utf8("sfumato telemetry sketch 1"), bigEndian(row, 4));
  const [first, second, shift] = wordsOf(sha256(label));
  const text = BigInt(v);
  const mixed = (first * (text >> 32n) + second * (text & 0xffffffffn) + shift) % WHOLE;
  return drawn(values, mixed);
};

const sketch = (o, v, w) => {
  const row = drawn(o.rows, w[0]);
  const bucket = bucketOf(o.part.values, v, row);
  return concat(bigEndian(row, 2), encode(o.part, bucket, w.slice(1)));
};

const prefixes = (o, v, w) => {
  const place = drawn(o.parts.length, w[0]);
  const after = Math.max(o.length - (place + 1) * o.step, 0);
  const prefix = BigInt(v) / BigInt(o.symbols) ** BigInt(after);
  return onePart(o, place, prefix, w.slice(1));
};

const fragments = (o, v, w) => {
  const [few, whole] = o.parts;
  const base = BigInt(o.symbols);
  const place = drawn(Math.ceil(o.length / o.step), w[0]);
  const left = o.length - place * o.step;
  const width = Math.min(o.step, left);
  const cut = (BigInt(v) / base ** BigInt(left - width)) % base ** BigInt(width);
  const piece = BigInt(bucketOf(256, v, 65536));
  const marked = piece * base ** BigInt(o.step) + cut;
  const end = 1 + drawsOf(few);
  return concat([place], encode(few, marked, w.slice(1)), encode(whole, v, w.slice(end)));
};

/** The bits of a text in a cohort. */
const ownBits = (o, cohort, v) => {
  const seed = concat(bigEndian(cohort, 4), bigEndian(v, 8));
  const digest = new DataView(sha256(seed).buffer);
  const place = (i) => (BigInt(digest.getUint32(4 * i)) * BigInt(o.bits)) >> 32n;
  return new Set(Array.from({ length: o.hashes }, (_, i) => Number(place(i))));
};

const rappor = (o, v, w) => {
  const cohort = drawn(o.cohorts, w[0]);
  const own = ownBits(o, cohort, v);
  const kept = BigInt(o.kept);
  const added = BigInt(o.added);
  return concat(bigEndian(cohort, 2), drawnBits(o.bits, w, 1, (i) => (own.has(i) ? kept : added)));
};

/** The instantaneous step of RAPPOR: a permanent answer with its bits drawn again. */
export const blurred = (o, answer, words) => {
  const isSet = (i) => (answer[2 + (i >> 3)] >> (i & 7)) & 1;
  const weights = [BigInt(o.zero), BigInt(o.one)];
  const bits = drawnBits(o.bits, words, 0, (i) => weights[isSet(i)]);
  return concat(answer.subarray(0, 2), bits);
};

const largest = (parts, measure) => Math.max(...parts.map(measure));
const one = () => 1;

const sumOf = ({ parts }, measure) => parts.reduce((sum, part) => sum + measure(part), 1);
const drawsOfPart = (o) => 1 + largest(o.parts, drawsOf);
const sizeOfPart = (o) => 1 + largest(o.parts, payloadSize);

// Of each kind: its encoder, its random words and the bytes of its payload.
const KINDS = {
  category: [category, one, (o) => sizeOf(o.values - 1)],
  hashed: [hashed, () => 3, (o) => 16 + sizeOf(o.buckets - 1)],
  bit: [bit, () => 2, (o) => sizeOf(2 ** (rowBits(o.values) + 1) - 1)],
  unary: [unary, (o) => o.values, (o) => Math.ceil(o.values / 8)],
  projective: [projective, one, (o) => sizeOf(pointsBelow(o.prime, o.dimension) - 1)],
  mean: [mean, () => 2, (o) => sizeOf(BigInt(o.share) ? o.window + o.values : 1)],
  levels: [levels, drawsOfPart, sizeOfPart],
  attributes: [attributes, drawsOfPart, sizeOfPart],
  prefixes: [prefixes, drawsOfPart, sizeOfPart],
  fragments: [fragments, (o) => sumOf(o, drawsOf), (o) => sumOf(o, payloadSize)],
  sketch: [sketch, (o) => 1 + drawsOf(o.part), (o) => 2 + payloadSize(o.part)],
  rappor: [rappor, (o) => 1 + o.bits, (o) => 2 + o.bits / 8],
};

/** How many random words an oracle takes. */
export const drawsOf = (o) => KINDS[o.kind][1](o);

/** How many bytes its payload has, whatever the value is. */
export const payloadSize = (o) => KINDS[o.kind][2](o);

/** The payload of the number of a value. */
export const encode = (o, value, words) => KINDS[o.kind][0](o, value, words);
