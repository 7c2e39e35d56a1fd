// SPDX-License-Identifier: Apache-2.0
// Microseconds of the processor, all threads, of one report of a device: node report.mjs CLIENT.js FOLDER
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [, , path, folder] = process.argv;
const { Client, MemoryStore } = await import(pathToFileURL(path));
const text = (name) => readFileSync(`${folder}/${name}`, "utf-8");
const WARM = 5000;
const MEASURED = 20000;

let now = 0;
const client = await Client.open({
  signed: text("speed.task"),
  secret: crypto.getRandomValues(new Uint8Array(32)),
  store: new MemoryStore(),
  trusted: [text("owner.pem")],
  published: [text("hash")],
  maxEpsilon: 1e12,
  clock: () => now,
});
const reports = async (count) => {
  for (let i = 0; i < count; i += 1) {
    now += 60;
    if (await client.report(7) === null) throw new Error("no report");
  }
};
// before the start: a new client is silent once
await client.report(7);
await reports(WARM);
const begun = process.cpuUsage();
await reports(MEASURED);
const { user, system } = process.cpuUsage(begun);
console.log((user + system) / MEASURED);
