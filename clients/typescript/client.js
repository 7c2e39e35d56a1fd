// SPDX-License-Identifier: Apache-2.0
// The client of spec/telemetry/format.md for browsers and Node; it depends on nothing.
import { bigEndian, concat, hex, hmac, keyOf, systemWords, utf8, wordsOf } from "./bytes.js";
import { fraction, numberOf, sizeOf, textsOf } from "./domain.js";
import { isDearer } from "./loss.js";
import { blurred, drawsOf, encode, payloadSize } from "./oracles.js";
import { importPoint, seal } from "./sealing.js";
import { sha256 } from "./sha256.js";
import { TaskRefused, readTask, verifiedTask } from "./task.js";

export { TaskRefused };

const NONE = 2 ** 32 - 1;
const HEADER = 21;

const secretKey = (secret) => {
  if (!(secret instanceof Uint8Array) || secret.length !== 32) {
    throw new RangeError("The secret of a device is not 32 bytes.");
  }
  return keyOf(secret);
};

/** What a store knows as bytes, with a checksum; the layout is that of the Python client. */
const stateBytes = ({ first, period, used, epoch, answer }) => {
  const head = new DataView(new ArrayBuffer(HEADER));
  head.setUint8(0, 1);
  [first, period, used, epoch, answer.length].forEach((n, i) => head.setUint32(1 + 4 * i, n));
  const body = concat(new Uint8Array(head.buffer), answer);
  return concat(body, sha256(body));
};

/** The state of such bytes; null if anything is wrong with them. */
const stateOf = (kept, size) => {
  if (!kept || kept.length < HEADER + 32) return null;
  const body = kept.slice(0, -32);
  const isWhole = sha256(body).every((byte, i) => byte === kept[body.length + i]);
  if (!isWhole || body[0] !== 1) return null;
  const head = new DataView(body.buffer);
  const [first, period, used, epoch, length] = [1, 5, 9, 13, 17].map((at) => head.getUint32(at));
  const answer = body.slice(HEADER);
  const due = epoch === NONE ? 0 : size;
  return answer.length === length && length === due ? { first, period, used, epoch, answer } : null;
};

/** A store that is lost with the process: for tests. */
export class MemoryStore {
  #state = null;
  async load() {
    return this.#state;
  }
  async save(state) {
    this.#state = state;
  }
}

export class Client {
  #task;
  #hash;
  #key;
  #store;
  #clock;
  #aggregator;
  #earliest;
  #queue = Promise.resolve();

  constructor(given) {
    [this.#task, this.#hash, this.#key] = [given.task, given.hash, given.key];
    [this.#store, this.#clock] = [given.store, given.clock];
    [this.#aggregator, this.#earliest] = [given.aggregator, given.earliest];
  }

  /** A client of a signed task; throws TaskRefused for one that the device must not answer. */
  static async open(options) {
    const { signed, secret, store, trusted, published, maxEpsilon } = options;
    const clock = options.clock ?? (() => Date.now() / 1000);
    const key = await secretKey(secret);
    const most = fraction(String(maxEpsilon));
    const { body, signedAt } = await verifiedTask(signed, trusted);
    const task = readTask(body);
    const hash = sha256(utf8(body));
    if (![...published].includes(hex(hash))) throw new TaskRefused("not in the published list");
    if (clock() >= task.expires) throw new TaskRefused("expired");
    const draws = task.memory
      ? Math.ceil(task.periods / task.memory)
      : task.periods * task.reports;
    if (isDearer(task.oracle, draws, most)) {
      throw new TaskRefused(`dearer than maxEpsilon, ${maxEpsilon}, in the life of a device`);
    }
    const aggregator = task.aggregator && (await importPoint(task.aggregator));
    const earliest = Math.max(signedAt, options.installed ?? 0);
    return new Client({ task, hash, key, store, clock, aggregator, earliest });
  }

  /** A client of another device, with a store of its own; the task is not verified again. */
  async device(secret, store) {
    const [task, hash, key] = [this.#task, this.#hash, await secretKey(secret)];
    const [clock, aggregator, earliest] = [this.#clock, this.#aggregator, this.#earliest];
    return new Client({ task, hash, key, store, clock, aggregator, earliest });
  }

  /** The report of the value that the device has now, or null; one call after the other. */
  report(value, words = systemWords) {
    const next = this.#queue.then(() => this.#report(value, words));
    this.#queue = next.catch(() => undefined);
    return next;
  }

  async #report(value, words) {
    const task = this.#task;
    const now = this.#clock();
    const period = Math.floor((now - task.start) / task.period);
    if (!(period < task.periods && now < task.expires)) return null;
    const epoch = Math.floor(period / (task.memory || 1));
    const state = stateOf(await this.#store.load(), payloadSize(task.oracle));
    if (state === null) {
      // a clock that is behind would begin in an epoch that the device has answered in
      if (now < this.#earliest) return null;
      const first = Math.max(epoch + 1, 0);
      const fresh = { first, period: NONE, used: 0, epoch: NONE, answer: new Uint8Array() };
      await this.#store.save(stateBytes(fresh));
      return null;
    }
    const used = period === state.period ? state.used : 0;
    const isLate = state.period !== NONE && period < state.period;
    if (period < 0 || epoch < state.first || isLate || used >= task.reports) return null;
    const [after, payload] = await this.#answer(state, epoch, value, words);
    const id = await this.#keyed("sfumato telemetry id 1", [period, used]);
    // before the report leaves: a crash after it must not draw again
    await this.#store.save(stateBytes({ ...after, period, used: used + 1 }));
    const head = [Uint8Array.of(1), this.#hash.subarray(0, 8), u32(period), id.subarray(0, 16)];
    const report = concat(...head, payload);
    return this.#aggregator ? seal(this.#aggregator, this.#hash, report) : report;
  }

  /** The state with the answer of this epoch, and what is sent of it. */
  async #answer(state, epoch, value, words) {
    const { domain, memory, oracle } = this.#task;
    const number = numberOf(domain, value);
    if (!memory) return [state, encode(oracle, number, words(drawsOf(oracle)))];
    const kept = state.epoch === epoch ? state.answer : await this.#permanent(number, epoch);
    const sent = oracle.kind === "rappor" ? blurred(oracle, kept, words(oracle.bits)) : kept;
    return [{ ...state, epoch, answer: kept }, sent];
  }

  /** The answer of an epoch: a keyed function of the task, the epoch and the value. */
  async #permanent(number, epoch) {
    const { domain, oracle } = this.#task;
    const parts = isLarge(domain) ? halves(number) : [Number(number)];
    const draws = drawsOf(oracle);
    const block = (_, i) => this.#keyed("sfumato telemetry answer 1", [epoch, ...parts, i]);
    const found = await Promise.all(Array.from({ length: Math.ceil(draws / 4) }, block));
    return encode(oracle, number, wordsOf(concat(...found)).slice(0, draws));
  }

  #keyed(label, numbers) {
    return hmac(this.#key, concat(utf8(label), this.#hash, ...numbers.map(u32)));
  }
}

const u32 = (number) => bigEndian(number, 4);
const halves = (number) => [BigInt(number) >> 32n, BigInt(number) & 0xffffffffn];

/** Whether a domain has more than 2^32 values. */
const isLarge = (domain) => {
  if (domain.kind === "texts") return true;
  if (domain.kind === "words") return textsOf(domain) > 1n << 32n;
  if (domain.kind !== "record") return false;
  return domain.domains.reduce((size, part) => size * BigInt(sizeOf(part)), 1n) > 1n << 32n;
};
