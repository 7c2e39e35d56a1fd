// SPDX-License-Identifier: Apache-2.0
// Sends the reports of many made-up devices: node send.mjs CLIENT.js FOLDER
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [, , path, folder] = process.argv;
const { Client, MemoryStore } = await import(pathToFileURL(path));
const BATCH = 1000;
const text = (name) => readFileSync(`${folder}/${name}`, "utf-8");
const rows = (name) => text(name).trimEnd().split("\n").map((line) => line.split("\t"));

const post = async (address, reports) => {
  const body = Buffer.concat(reports);
  const answer = await fetch(address, { method: "POST", body });
  if (answer.status !== 202) throw new Error(`the collector answered ${answer.status}`);
};

/** The report of a new device, which was there before the task began. */
const reportOf = async (client, clock, start, value) => {
  const secret = crypto.getRandomValues(new Uint8Array(32));
  const device = await client.device(secret, new MemoryStore());
  clock.now = start - 1;
  await device.report(value);
  clock.now = Date.now() / 1000;
  return device.report(value);
};

const sendAll = async ([id, kind, hash, start, address]) => {
  const begun = performance.now();
  const clock = { now: Number(start) };
  const client = await Client.open({
    signed: text(`${id}.task`),
    secret: crypto.getRandomValues(new Uint8Array(32)),
    store: new MemoryStore(),
    trusted: [text("owner.pem")],
    published: [hash],
    maxEpsilon: 100,
    clock: () => clock.now,
  });
  let waiting = [];
  let sent = 0;
  for (const [count, told] of rows(`${id}.node.tsv`)) {
    const value = kind === "number" ? Number(told) : told;
    for (let i = 0; i < Number(count); i += 1) {
      waiting.push(await reportOf(client, clock, Number(start), value));
      if (waiting.length === BATCH) {
        await post(address, waiting);
        sent += waiting.length;
        waiting = [];
      }
    }
  }
  if (waiting.length) await post(address, waiting);
  sent += waiting.length;
  console.log(`${id}\t${sent}\t${((performance.now() - begun) / 1000).toFixed(3)}`);
};

for (const row of rows("tasks.tsv")) await sendAll(row);
