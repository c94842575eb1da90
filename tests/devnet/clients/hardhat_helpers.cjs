// hardhat-network-helpers 1.x: every helper once, its effect read back.
"use strict";
const assert = require("node:assert/strict");
const helpers = require("@nomicfoundation/hardhat-network-helpers");
const { rpc, run } = require("./steps.cjs");

const { time } = helpers;
const [alice, bob] = ["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"];
const other = "0x3333333333333333333333333333333333333333";
const block = (tag = "latest") => rpc("eth_getBlockByNumber", tag, false);
const height = async () => Number(await rpc("eth_blockNumber"));
const transfer = (from = alice) => rpc("eth_sendTransaction", { from, to: bob, value: "0x1" });

let snapshot;
run({
  mine: async () => {
    const before = await height();
    await helpers.mine(3, { interval: 15 });
    assert.equal(await height(), before + 3);
    const [last, previous] = [await block(), await block("0x" + ((await height()) - 1).toString(16))];
    assert.equal(last.timestamp - previous.timestamp, 15);
  },
  mineUpTo: async () => {
    await helpers.mineUpTo((await height()) + 5);
    assert.equal(await height(), 8);
  },
  "time.latestBlock": async () => assert.equal(await time.latestBlock(), await height()),
  "time.latest": async () => assert.equal(await time.latest(), Number((await block()).timestamp)),
  "time.increase": async () => {
    const before = await time.latest();
    assert.ok((await time.increase(500)) >= before + 500);
    assert.equal(await time.latest(), before + 500);
  },
  "time.increaseTo": async () => {
    const target = (await time.latest()) + 1_000;
    await time.increaseTo(target);
    assert.equal(await time.latest(), target);
  },
  "time.setNextBlockTimestamp": async () => {
    const target = (await time.latest()) + 77;
    await time.setNextBlockTimestamp(target);
    await transfer();
    await mined();
    assert.equal(await time.latest(), target);
  },
  setBalance: async () => {
    await helpers.setBalance(other, 10n ** 18n);
    assert.equal(BigInt(await rpc("eth_getBalance", other, "latest")), 10n ** 18n);
  },
  setNonce: async () => {
    await helpers.setNonce(other, 5);
    assert.equal(await rpc("eth_getTransactionCount", other, "latest"), "0x5");
  },
  setCode: async () => {
    await helpers.setCode(bob, "0x602a");
    assert.equal(await rpc("eth_getCode", bob, "latest"), "0x602a");
    await helpers.setCode(bob, "0x");
  },
  setStorageAt: async () => {
    await helpers.setStorageAt(other, 4, 99);
    assert.equal(BigInt(await rpc("eth_getStorageAt", other, "0x4", "latest")), 99n);
  },
  getStorageAt: async () => assert.equal(BigInt(await helpers.getStorageAt(other, 4)), 99n),
  impersonateAccount: async () => {
    await helpers.impersonateAccount(other);
    await transfer(other);
    await mined();
    assert.equal(await rpc("eth_getTransactionCount", other, "latest"), "0x6");
  },
  stopImpersonatingAccount: async () => {
    await helpers.stopImpersonatingAccount(other);
    await assert.rejects(transfer(other));
  },
  setCoinbase: async () => {
    await helpers.setCoinbase(other);
    await helpers.mine();
    assert.equal((await block()).miner, other);
  },
  setBlockGasLimit: async () => {
    await helpers.setBlockGasLimit(25_000_000);
    await helpers.mine();
    assert.equal(Number((await block()).gasLimit), 25_000_000);
  },
  setNextBlockBaseFeePerGas: async () => {
    await helpers.setNextBlockBaseFeePerGas(3_000_000_000n);
    await helpers.mine();
    assert.equal(Number((await block()).baseFeePerGas), 3_000_000_000);
  },
  setPrevRandao: async () => {
    await helpers.setPrevRandao(0x1234n);
    await helpers.mine();
    assert.equal(BigInt((await block()).mixHash), 0x1234n);
  },
  dropTransaction: async () => {
    await rpc("evm_setAutomine", false);
    const hash = await transfer();
    await helpers.dropTransaction(hash);
    assert.equal(await rpc("eth_getTransactionByHash", hash), null);
    await rpc("evm_setAutomine", true);
  },
  takeSnapshot: async () => {
    snapshot = await helpers.takeSnapshot();
    snapshot.height = await height();
    await helpers.mine(2);
    assert.equal(await height(), snapshot.height + 2);
  },
  "snapshot.restore": async () => {
    await snapshot.restore();
    assert.equal(await height(), snapshot.height);
  },
  loadFixture: async () => {
    let runs = 0;
    async function fixture() {
      runs += 1;
      await helpers.mine();
      return height();
    }
    const first = await helpers.loadFixture(fixture);
    await helpers.mine(4);
    assert.equal(await helpers.loadFixture(fixture), first);
    assert.equal(await height(), first);
    assert.equal(runs, 1);
  },
  reset: async () => {
    await helpers.reset();
    assert.equal(await height(), 0);
  },
});

/** Until nothing waits: some nodes answer before the block is made. */
async function mined() {
  while ((await rpc("txpool_status")).pending !== "0x0") await new Promise((done) => setImmediate(done));
}
