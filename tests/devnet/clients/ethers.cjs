// ethers v6 against a development node. Calls of one turn go out as one JSON-RPC batch, its default.
"use strict";
const assert = require("node:assert/strict");
const ethers = require("ethers");
const { url, contracts, KEYS, arrival, run } = require("./steps.cjs");

const provider = new ethers.JsonRpcProvider(url, undefined, { polling: true, pollingInterval: 50, cacheTimeout: -1 });
const wallet = new ethers.Wallet(KEYS[0], provider);
const someone = "0x5555555555555555555555555555555555555555";
let math;

run({
  "network, height and block": async () => {
    const [network, height, block, genesis] = await Promise.all([
      provider.getNetwork(), provider.getBlockNumber(), provider.getBlock("latest", true), provider.getBlock(0),
    ]);
    assert.equal(network.chainId, 31337n);
    assert.equal(block.number, height);
    assert.equal(genesis.number, 0);
  },
  "unlocked signer sends": async () => {
    const signer = await provider.getSigner(1);
    const receipt = await (await signer.sendTransaction({ to: someone, value: 1n })).wait();
    assert.equal(receipt.status, 1);
    assert.equal(receipt.from, await signer.getAddress());
    const signature = await signer.signMessage("hello");
    assert.equal(ethers.verifyMessage("hello", signature), receipt.from);
  },
  "wallet sends, confirmations": async () => {
    const before = await provider.getBalance(someone);
    const response = await wallet.sendTransaction({ to: someone, value: ethers.parseEther("2") });
    const receipt = await response.wait(1);
    assert.equal(receipt.gasUsed, 21_000n);
    assert.equal(await provider.getBalance(someone), before + ethers.parseEther("2"));
    assert.equal((await provider.getTransaction(response.hash)).blockNumber, receipt.blockNumber);
    assert.equal((await receipt.getBlock()).number, receipt.blockNumber);
  },
  "fees and estimates": async () => {
    const [fees, gas] = await Promise.all([
      provider.getFeeData(),
      provider.estimateGas({ from: wallet.address, to: someone, value: 1n }),
    ]);
    assert.ok(fees.maxFeePerGas > fees.maxPriorityFeePerGas && fees.gasPrice > 0n);
    assert.equal(gas, 21_000n);
  },
  "deploy a contract": async () => {
    math = await new ethers.ContractFactory(contracts.math.abi, contracts.math.bytecode, wallet).deploy();
    await math.waitForDeployment();
    assert.notEqual(await provider.getCode(await math.getAddress()), "0x");
  },
  "read, write and query events": async () => {
    const receipt = await (await math["incrementCounter(uint256)"](4n)).wait();
    assert.equal(receipt.logs[0].args.value, 4n);
    assert.equal(await math.counter(), 4n);
    assert.equal(await math.counter({ blockTag: receipt.blockNumber - 1 }), 0n);
    const events = await math.queryFilter("Increased", 0, "latest");
    assert.deepEqual(events.map((event) => event.args.value), [4n]);
    assert.equal(BigInt(await provider.getStorage(await math.getAddress(), 0)), 4n);
  },
  "reverts are decoded": async () => {
    const factory = new ethers.ContractFactory(contracts.revert.abi, contracts.revert.bytecode, wallet);
    const contract = await factory.deploy();
    await contract.waitForDeployment();
    const reason = await contract.revertWithMessage().catch((error) => error);
    assert.equal(reason.code, "CALL_EXCEPTION");
    assert.equal(reason.reason, "Function has been reverted.");
    const custom = await contract.customErrorWithMessage().catch((error) => error);
    assert.equal(custom.revert.name, "UnauthorizedWithMessage");
    const poor = await wallet.sendTransaction({ to: someone, value: ethers.parseEther("1000000") }).catch((error) => error);
    assert.equal(poor.code, "INSUFFICIENT_FUNDS");
  },
  "events by polling": async () => {
    const [block, event] = [arrival(), arrival()];
    await provider.on("block", block.resolve);
    await math.on("Increased", (value) => event.resolve(value));
    await provider.getBlockNumber();
    await (await math["incrementCounter(uint256)"](6n)).wait();
    assert.equal(await event.promise, 6n);
    assert.ok((await block.promise) > 0);
    await provider.removeAllListeners();
    await math.removeAllListeners();
  },
  "events over WebSocket": async () => {
    const socket = new ethers.WebSocketProvider(url.replace("http", "ws"));
    const [block, event] = [arrival(), arrival()];
    const watched = math.connect(socket);
    await socket.on("block", block.resolve);
    await watched.on("Increased", (value) => event.resolve(value));
    await socket.getBlockNumber();
    const receipt = await (await math["incrementCounter(uint256)"](8n)).wait();
    assert.equal(await event.promise, 8n);
    assert.equal(await block.promise, receipt.blockNumber);
    await socket.destroy();
  },
});
