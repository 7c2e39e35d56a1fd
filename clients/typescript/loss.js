// SPDX-License-Identifier: Apache-2.0
// What a task costs: the logarithm of the odds of its own weights, rounded up.
const WHOLE = 1n << 64n;
const SCALE = 200n;

/** 2^SCALE ln(a/b) rounded up, for a > b > 0 with a <= 2 b, by 2 atanh((a - b)/(a + b)). */
const logarithmBelowTwo = (a, b) => {
  const x = ((a - b) << SCALE) / (a + b) + 1n;
  const square = ((x * x) >> SCALE) + 1n;
  let sum = 0n;
  let power = x;
  for (let k = 1n; k < 160n; k += 2n) {
    sum += power / k + 1n;
    power = ((power * square) >> SCALE) + 1n;
  }
  // the terms left out are below 9^-80
  return 2n * sum + (1n << 8n);
};

const TWO = logarithmBelowTwo(2n, 1n);

/** 2^SCALE ln(a/b), rounded up, for a > b > 0. */
const logarithm = (a, b) => {
  let twos = 0n;
  let below = b;
  while (a > 2n * below) {
    below *= 2n;
    twos += 1n;
  }
  return twos * TWO + logarithmBelowTwo(a, below);
};

const largest = (found) => found.reduce((a, b) => (a > b ? a : b));
const weights = (o, ...names) => names.map((name) => BigInt(o[name]));

const meanLoss = (o) => {
  const [share, low, high, near, far] = weights(o, "share", "low", "high", "near", "far");
  const coin = [logarithm(high, low), logarithm(WHOLE - low, WHOLE - high)];
  return largest(share ? [...coin, logarithm(near, far)] : coin);
};

const bitsLoss = (o) => {
  const [kept, added] = weights(o, "kept", "added");
  return logarithm(kept * (WHOLE - added), added * (WHOLE - kept));
};

const truthLoss = (o) => logarithm(...weights(o, "truth", "other_weight"));
const partsLoss = (o) => largest(o.parts.map(lossOf));

const KINDS = {
  category: truthLoss,
  hashed: truthLoss,
  bit: (o) => logarithm(BigInt(o.truth), WHOLE - BigInt(o.truth)),
  unary: bitsLoss,
  projective: (o) => logarithm(...weights(o, "near", "far")),
  mean: meanLoss,
  levels: partsLoss,
  attributes: partsLoss,
  prefixes: partsLoss,
  fragments: ({ parts: [few, whole] }) => lossOf(few) + lossOf(whole),
  sketch: (o) => lossOf(o.part),
  rappor: (o) => BigInt(o.hashes) * bitsLoss(o),
};

/** 2^200 epsilon of one draw of an oracle, rounded up. */
export const lossOf = (o) => KINDS[o.kind](o);

/** Whether the draws of a life cost more than the fraction a/b. */
export const isDearer = (o, draws, [a, b]) => BigInt(draws) * lossOf(o) * b > a << SCALE;
