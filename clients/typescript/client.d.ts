// SPDX-License-Identifier: Apache-2.0

/** Keeps the state of a device for one task; `save` resolves when the bytes are durable. */
export interface Store {
  load(): Promise<Uint8Array | null>;
  save(state: Uint8Array): Promise<void>;
}

export interface Options {
  /** The signed task, as it is published. */
  signed: string;
  /** 32 random bytes that never leave the device, the same for all of its tasks. */
  secret: Uint8Array;
  store: Store;
  /** Public keys of P-256 in PEM. */
  trusted: readonly string[];
  /** Hashes (hexadecimal) of all tasks that everybody gets. */
  published: Iterable<string>;
  /** Of this task alone: the most that the device may tell of it in its whole life; a decimal. */
  maxEpsilon: number | string;
  /** When the application was installed, in seconds since 1970: no true clock is before. */
  installed?: number;
  /** Seconds since 1970. */
  clock?: () => number;
}

/** The task is unsigned, unlisted, expired, too dear, or its weights do not fit. */
export class TaskRefused extends Error {}

export class MemoryStore implements Store {
  load(): Promise<Uint8Array | null>;
  save(state: Uint8Array): Promise<void>;
}

export class Client {
  private constructor();
  static open(options: Options): Promise<Client>;
  /** A client of another device, with a store of its own; the task is not verified again. */
  device(secret: Uint8Array, store: Store): Promise<Client>;
  /** The report of the value, or null if none is due; `words` gives random words of 64 bits. */
  report(value: unknown, words?: (count: number) => bigint[]): Promise<Uint8Array | null>;
}
