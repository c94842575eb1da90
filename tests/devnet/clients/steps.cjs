// Runs named steps in order against the node at argv[2]; prints one JSON line a step: {"step", "ok", "error"?}.
"use strict";
const { readFileSync } = require("node:fs");

const url = process.argv[2];
const contracts = JSON.parse(readFileSync(process.argv[3], "utf8"));
const SECONDS = 20;
// The first two accounts of the mnemonic every development node knows.
const KEYS = [
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
];

/** A plain call, for what a client cannot ask itself. Throws the node's error. */
async function rpc(method, ...params) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const answer = await fetch(url, { method: "POST", body, headers: { "content-type": "application/json" } });
  const { result, error } = await answer.json();
  if (error) throw Object.assign(new Error(error.message), error);
  return result;
}

/** A promise and its resolve, for events. */
function arrival() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}

function within(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${SECONDS} s`)), SECONDS * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Run every step, each told apart from the others' failures; then end the process. */
async function run(steps) {
  for (const [step, act] of Object.entries(steps)) {
    let line = { step, ok: true };
    try {
      await within(act());
    } catch (error) {
      line = { step, ok: false, error: String(error?.message ?? error).slice(0, 600) };
    }
    process.stdout.write(JSON.stringify(line) + "\n");
  }
  process.exit(0);
}

module.exports = { url, contracts, KEYS, rpc, arrival, run };
