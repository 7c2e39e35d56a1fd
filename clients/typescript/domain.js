// SPDX-License-Identifier: Apache-2.0
// The number of what a device holds, by exact arithmetic.
import { utf8, wordsOf } from "./bytes.js";
import { sha256 } from "./sha256.js";

/** A finite double as numerator and denominator. */
const doubleAsFraction = (value) => {
  let whole = value;
  let twos = 0n;
  // doubling is exact: a double that is no integer is far from the largest one
  for (; !Number.isInteger(whole); whole *= 2) twos += 1n;
  return [BigInt(whole), 1n << twos];
};

/** A decimal ("0.25", "1e-3") or a quotient ("1/3") as numerator and denominator. */
export const fraction = (text) => {
  const quotient = /^(\d+)\/(\d+)$/.exec(text);
  if (quotient) return [BigInt(quotient[1]), BigInt(quotient[2])];
  const decimal = /^(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,3}))?$/.exec(text);
  if (!decimal) throw new RangeError("This is no positive decimal or quotient.");
  const after = decimal[2] ?? "";
  const shift = Number(decimal[3] ?? 0) - after.length;
  const digits = BigInt(decimal[1] + after);
  const power = 10n ** BigInt(Math.abs(shift));
  return shift < 0 ? [digits, power] : [digits * power, 1n];
};

/** The nearest integer to a quotient with a positive denominator, half to even. */
const rounded = (numerator, denominator) => {
  const cut = numerator / denominator;
  const whole = cut * denominator > numerator ? cut - 1n : cut;
  const rest = 2n * (numerator - whole * denominator);
  const isUp = rest > denominator || (rest === denominator && whole % 2n !== 0n);
  return isUp ? whole + 1n : whole;
};

const clipped = (domain, whole) => {
  const [lower, upper] = [BigInt(domain.lower), BigInt(domain.upper)];
  if (whole < lower) return 0;
  return Number((whole > upper ? upper : whole) - lower);
};

const lattice = (domain, value) => {
  if (typeof value !== "number" && typeof value !== "bigint") return 0;
  if (typeof value === "number" && !Number.isFinite(value)) {
    return value > 0 ? domain.upper - domain.lower : 0;
  }
  const [a, b] = typeof value === "bigint" ? [value, 1n] : doubleAsFraction(value);
  const [c, d] = fraction(domain.step);
  return clipped(domain, rounded(a * d, b * c));
};

const MOST = 2n ** 53n;

const digitsOf = (whole) => (whole <= MOST && whole >= -MOST ? whole.toString() : undefined);

const textOf = (value) => {
  if (typeof value === "bigint" || Number.isInteger(value)) return digitsOf(BigInt(value));
  return typeof value === "string" ? value.normalize("NFC") : undefined;
};

const listed = (domain, value) => {
  const place = domain.values.indexOf(textOf(value));
  return place < 0 ? domain.values.length : place;
};

const texts = (value) => {
  const text = typeof value === "string" ? value.normalize("NFC") : "";
  // a lone surrogate is no character: without this it would become U+FFFD
  const whole = text.replace(/\p{Surrogate}/gu, "?");
  return wordsOf(sha256(utf8(whole)))[0];
};

const words = ({ letters, length }, value) => {
  const alphabet = [...letters];
  const text = typeof value === "string" ? value.normalize("NFC") : "";
  const places = [...text].map((letter) => alphabet.indexOf(letter) + 1);
  const held = places.includes(0) ? [] : places;
  const base = BigInt(alphabet.length + 1);
  let found = 0n;
  for (let i = 0; i < length; i += 1) found = found * base + BigInt(held[i] ?? 0);
  return found;
};

const record = (domain, value) => {
  const held = value !== null && typeof value === "object" ? value : {};
  let found = 0n;
  let below = 1n;
  for (const [i, part] of domain.domains.entries()) {
    const name = domain.names[i];
    const own = Object.hasOwn(held, name) ? held[name] : undefined;
    found += below * BigInt(numberOf(part, own));
    below *= BigInt(sizeOf(part));
  }
  return found;
};

const KINDS = { listed, lattice, record, words, texts: (_, value) => texts(value) };

/** How many values a list or a lattice has. */
export const sizeOf = (domain) =>
  domain.kind === "listed" ? domain.values.length + 1 : domain.upper - domain.lower + 1;

/** How many texts an alphabet gives. */
export const textsOf = ({ letters, length }) => BigInt([...letters].length + 1) ** BigInt(length);

/** The number of a value: every value that a device can hold has one. */
export const numberOf = (domain, value) => KINDS[domain.kind](domain, value);
