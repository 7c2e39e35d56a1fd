// SPDX-License-Identifier: Apache-2.0
// Answers one JSON request a line on stdin with one JSON answer a line on stdout.
import { createInterface } from "node:readline";
import { Client, MemoryStore } from "../../clients/typescript/client.js";
import { hex } from "../../clients/typescript/bytes.js";
import { numberOf } from "../../clients/typescript/domain.js";
import { encode } from "../../clients/typescript/oracles.js";

const bytes = (text) => Uint8Array.from(text.match(/../g) ?? [], (two) => parseInt(two, 16));
const told = (words) => () => words.map((word) => BigInt(`0x${word}`));

const opened = (given, clock) =>
  Client.open({ ...given, secret: bytes(given.secret), store: new MemoryStore(), clock });

const reports = async ({ open, turns }) => {
  let now = turns[0].seconds;
  const client = await opened(open, () => now);
  const found = [];
  for (const { seconds, value, words } of turns) {
    now = seconds;
    const report = await client.report(value, words && told(words));
    found.push(report && hex(report));
  }
  return found;
};

// all values of the second turn at once
const together = async ({ open, turns: [before, after], values }) => {
  let now = before;
  const client = await opened(open, () => now);
  await client.report(values[0]);
  now = after;
  const found = await Promise.all(values.map((value) => client.report(value)));
  return found.filter((report) => report !== null).length;
};

// the reports of another device
const other = async ({ open, secret, turns: [before, after], value }) => {
  let now = before;
  const client = await opened(open, () => now);
  const device = await client.device(bytes(secret), new MemoryStore());
  await device.report(value);
  now = after;
  return hex(await device.report(value));
};

const ANSWERS = {
  other,
  reports,
  together,
  number: async ({ domain, value }) => `${await numberOf(domain, value)}`,
  encode: async ({ oracle, value, words }) => hex(await encode(oracle, value, told(words)())),
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  try {
    answer = { found: await ANSWERS[request.ask](request) };
  } catch (error) {
    answer = { error: `${error.name}: ${error.message}` };
  }
  console.log(JSON.stringify(answer));
}
