// SPDX-License-Identifier: Apache-2.0
// Signed tasks: the signature, the canonical form, and weights that give the stated law.
import { fromBase64, utf8 } from "./bytes.js";
import { fraction, sizeOf, textsOf } from "./domain.js";

const { subtle } = globalThis.crypto;
const WHOLE = 1n << 64n;
const CURVE = { name: "ECDSA", namedCurve: "P-256" };
const SIGNATURE = { name: "ECDSA", hash: "SHA-256" };
// The first is that of tasks that do not say when they were signed.
const CONTEXT = "sfumato telemetry task 1\n";
const TIMED = "sfumato telemetry task 2\n";

/** A task that this device must not answer. */
export class TaskRefused extends Error {
  constructor(reason) {
    super(`The telemetry task is refused: ${reason}.`);
    this.name = "TaskRefused";
  }
}

const require = (holds, reason) => {
  if (!holds) throw new TaskRefused(reason);
};

const isWhole = (number, least, most) =>
  Number.isSafeInteger(number) && number >= least && number <= most;

const hasNames = (object, names) =>
  object !== null && typeof object === "object" && Object.keys(object).sort().join() === names;

const verifier = (pem) => {
  const body = pem.replace(/-----[A-Z ]+-----/g, "").replace(/\s/g, "");
  return subtle.importKey("spki", fromBase64(body), CURVE, false, ["verify"]);
};

/** The canonical task, as a text, and when it was signed, if one of the keys (PEM) has signed it. */
export const verifiedTask = async (signed, trusted) => {
  let form;
  let signature;
  try {
    form = JSON.parse(signed);
    signature = fromBase64(form.signature);
  } catch {
    throw new TaskRefused("no signed task");
  }
  const isTimed = form.signed_at !== undefined;
  const names = isTimed ? "signature,signed_at,task" : "signature,task";
  require(hasNames(form, names), "no signed task");
  const signedAt = isTimed ? form.signed_at : 0;
  require(isWhole(signedAt, 0, 2 ** 40), "when it was signed");
  require(typeof form.task === "string" && btoa(atob(form.signature)) === form.signature, "unsigned");
  const head = isTimed ? `${TIMED}${signedAt}\n` : CONTEXT;
  const text = utf8(head + form.task);
  for (const pem of trusted) {
    if (await subtle.verify(SIGNATURE, await verifier(pem), signature, text)) {
      return { body: form.task, signedAt };
    }
  }
  throw new TaskRefused("not signed with a trusted key");
};

/** The canonical JSON of a value. */
const canonical = (value) => {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join()}}`;
};

/** The text `kind` of an object: a list of one text would name the same property. */
const kindOf = (form) => (typeof form?.kind === "string" ? form.kind : "");

const weight = (text, least = 1n) => {
  require(typeof text === "string" && /^(0|[1-9]\d{0,19})$/.test(text), "a weight is no integer");
  const found = BigInt(text);
  require(found >= least && found < WHOLE, "a weight outside 1 to 2^64 - 1");
  return found;
};

const fits = (holds) => require(holds, "the weights of an oracle do not fit");

const answers = (o, count) => {
  const [truth, other] = [weight(o.truth), weight(o.other_weight)];
  fits(truth > other && truth + BigInt(count - 1) * other === WHOLE);
};

const checkCategory = (o) => answers(o, o.values);

const checkHashed = (o) => {
  fits(isWhole(o.buckets, 2, 65536));
  answers(o, o.buckets);
};

const checkBit = (o) => fits(2n * weight(o.truth) > WHOLE);
const checkUnary = (o) => fits(weight(o.kept) > weight(o.added));

const checkProjective = (o) => {
  const { prime: q, dimension: t } = o;
  fits(isWhole(q, 2, 30_000_000) && isWhole(t, 2, 25) && q ** t <= 30_000_000);
  for (let k = 2; k * k <= q; k += 1) fits(q % k !== 0);
  const [near, far] = [weight(o.near), weight(o.far)];
  const points = (q ** (t - 1) - 1) / (q - 1);
  fits(near > far && near * BigInt(points) + far * BigInt(q ** (t - 1)) === WHOLE);
  fits(o.values <= (q ** t - 1) / (q - 1));
};

const checkMean = (o) => {
  const [share, low, high] = [weight(o.share, 0n), weight(o.low), weight(o.high)];
  const [near, far] = [weight(o.near), weight(o.far)];
  const moves = BigInt(o.values - 1);
  fits(high > low && (high - low) % moves === 0n && isWhole(o.window, 1, 2 ** 32));
  const alone = near === 1n && far === 1n && o.window === 1;
  const sum = near * BigInt(o.window) + far * moves;
  fits(share === 0n ? alone : near > far && sum === WHOLE);
};

const checkParts = (o, kinds, sizes) => {
  fits(Array.isArray(o.parts) && o.parts.length === sizes.length);
  o.parts.forEach((part, i) => {
    fits(kinds.includes(part?.kind) && part.values === sizes[i]);
    checkOracle(part);
  });
};

const checkLevels = (o) => {
  const b = o.branching;
  fits(isWhole(b, 2, 256));
  const sizes = [o.values];
  while (sizes.at(-1) > b) sizes.push(Math.ceil(sizes.at(-1) / b));
  checkParts(o, ["category", "unary", "bit"], sizes);
};

// What is reported of a bucket of a sketch.
const BUCKETS = ["category", "bit", "unary", "projective"];

const checkAttributes = (o, domain) => {
  fits(domain.domains.length >= 2 && domain.domains.length <= 256);
  checkParts(o, ["hashed", ...BUCKETS], domain.domains.map(sizeOf));
};

const checkRappor = (o) => {
  fits(isWhole(o.bits, 8, 1024) && o.bits % 8 === 0);
  fits(isWhole(o.hashes, 1, 8) && isWhole(o.cohorts, 1, 65536));
  fits(weight(o.kept) > weight(o.added) && weight(o.one) > weight(o.zero));
};

const checkSketch = ({ part, rows }) => {
  fits(isWhole(rows, 1, 65536) && BUCKETS.includes(part?.kind));
  checkOracle(part);
  const { dimension: t, prime: q, values } = part;
  fits(values <= 65536 && (values & (values - 1)) === 0);
  // the sums that the aggregator keeps of a row
  const sums = q ? (q ** t - 1) / (q - 1) : values;
  fits(rows * (1 + sums) <= 2 ** 28);
};

const checkSpelled = (o, { letters, length }, count) => {
  fits(o.symbols === [...letters].length + 1 && o.symbols <= 256 && o.length === length);
  fits(isWhole(o.step, 1, length));
  checkParts(o, ["sketch"], new Array(count).fill(undefined));
};

const checkPrefixes = (o, domain) => {
  fits(o.step === 1 || o.symbols ** o.step <= 32768);
  checkSpelled(o, domain, Math.ceil(o.length / o.step) + 1);
};

const checkFragments = (o, domain) => {
  fits(o.symbols ** o.step <= 8192);
  checkSpelled(o, domain, 2);
};

// Of each kind: its fields, what must hold, and the only domain of it, which has no other oracle.
const ORACLES = {
  category: ["kind,other_weight,truth,values", checkCategory],
  hashed: ["buckets,kind,other_weight,truth,values", checkHashed],
  bit: ["kind,truth,values", checkBit],
  unary: ["added,kept,kind,values", checkUnary],
  projective: ["dimension,far,kind,near,prime,values", checkProjective],
  mean: ["far,high,kind,low,near,share,values,window", checkMean],
  levels: ["branching,kind,parts,values", checkLevels],
  attributes: ["kind,parts", checkAttributes, "record"],
  sketch: ["kind,part,rows", checkSketch, "texts"],
  prefixes: ["kind,length,parts,step,symbols", checkPrefixes, "words"],
  fragments: ["kind,length,parts,step,symbols", checkFragments, "words"],
  rappor: ["added,bits,cohorts,hashes,kept,kind,one,zero", checkRappor, "texts"],
};

const checkOracle = (o, domain) => {
  require(Object.hasOwn(ORACLES, kindOf(o)), "an unknown oracle");
  const [names, check] = ORACLES[o.kind];
  require(hasNames(o, names), "other fields of an oracle");
  fits(!("values" in o) || isWhole(o.values, 2, 2 ** 31));
  check(o, domain);
};

const isListed = (domain) =>
  hasNames(domain, "kind,other,values") &&
  Array.isArray(domain.values) &&
  [...domain.values, domain.other].every(
    (text) => typeof text === "string" && text && text.normalize("NFC") === text,
  ) &&
  new Set([...domain.values, domain.other]).size === domain.values.length + 1;

const isLattice = (domain) => {
  const most = 2 ** 53 - 1;
  const whole = isWhole(domain.lower, -most, most) && isWhole(domain.upper, -most, most);
  if (!hasNames(domain, "kind,lower,step,upper") || !whole || typeof domain.step !== "string") {
    return false;
  }
  return domain.lower < domain.upper && fraction(domain.step).every((part) => part > 0n);
};

const isRecord = (domain) =>
  hasNames(domain, "domains,kind,names") &&
  Array.isArray(domain.names) &&
  Array.isArray(domain.domains) &&
  domain.names.every((name) => typeof name === "string") &&
  new Set(domain.names).size === domain.domains.length &&
  domain.names.length === domain.domains.length &&
  domain.domains.every((part) => isSimple(part));

const isWords = (domain) => {
  const { letters, length } = domain;
  if (!hasNames(domain, "kind,length,letters") || !isWhole(length, 1, 64)) return false;
  if (typeof letters !== "string" || !letters || letters.normalize("NFC") !== letters) return false;
  return new Set(letters).size === [...letters].length && textsOf(domain) <= WHOLE;
};

const SIMPLE = ["listed", "lattice"];
const DOMAINS = {
  listed: isListed,
  lattice: isLattice,
  record: isRecord,
  words: isWords,
  texts: (domain) => hasNames(domain, "kind"),
};
const isSimple = (domain) => SIMPLE.includes(domain?.kind) && DOMAINS[domain.kind](domain);
const isDomain = (domain) => Object.hasOwn(DOMAINS, kindOf(domain)) && DOMAINS[domain.kind](domain);

const FIELDS =
  "domain,expires,format,id,memory,min_batch,oracle,period,periods,question,reports,start";
const isPoint = (text) => typeof text === "string" && /^B[A-Za-z0-9+/]{86}=$/.test(text);
const MOST = 2 ** 32 - 1;

const checkFields = (task) => {
  const { expires, id, memory, min_batch, period, periods, question, reports, start } = task;
  require(typeof id === "string" && /^[a-z0-9][a-z0-9._-]{0,62}$/.test(id), "its id");
  const length = typeof question === "string" ? [...question].length : 0;
  require(isWhole(length, 1, 1000), "its question");
  const times = isWhole(start, 0, 2 ** 40) && isWhole(expires, start + 1, 2 ** 41);
  const each = isWhole(period, 60, 2 ** 32) && isWhole(periods, 1, MOST);
  const most = isWhole(reports, 1, memory ? 1 : 1000) && isWhole(memory, 0, MOST);
  require(times && each && most && isWhole(min_batch, 2, 2 ** 40), "its numbers");
};

/** Reads a canonical task; throws TaskRefused for one whose law is not the stated one. */
export const readTask = (body) => {
  let task;
  try {
    task = JSON.parse(body);
  } catch {
    throw new TaskRefused("no JSON");
  }
  const names = task?.aggregator === undefined ? FIELDS : `aggregator,${FIELDS}`;
  require(hasNames(task, names) && canonical(task) === body, "no canonical task");
  require(task.aggregator === undefined || isPoint(task.aggregator), "the key of its aggregator");
  require(task.format === 1, "an unknown format");
  checkFields(task);
  const { domain, oracle } = task;
  require(isDomain(domain), "its domain");
  const due = ORACLES[kindOf(oracle)]?.[2];
  require(due ? due === domain.kind : SIMPLE.includes(domain.kind), "its oracle");
  checkOracle(oracle, domain);
  require(oracle.kind !== "rappor" || task.memory > 0, "rappor without memory");
  require(due || oracle.values === sizeOf(domain), "an oracle of another size");
  const isNumber = !["mean", "levels"].includes(oracle.kind) || domain.kind === "lattice";
  require(isNumber, "an oracle of numbers for texts");
  return task;
};
