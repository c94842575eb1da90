// viem 2 against a development node, as its users drive it: public, wallet and test client.
"use strict";
const assert = require("node:assert/strict");
const viem = require("viem");
const { privateKeyToAccount, generatePrivateKey } = require("viem/accounts");
const { foundry } = require("viem/chains");
const { url, contracts, KEYS, arrival, run } = require("./steps.cjs");

const { parseEther, parseGwei } = viem;
const local = privateKeyToAccount(KEYS[0]);
const [alice, bob] = KEYS.map((key) => privateKeyToAccount(key).address);
const someone = "0x5555555555555555555555555555555555555555";
const asked = []; // who waits for a method to be answered
const http = viem.http(url, {
  retryCount: 0,
  onFetchRequest: async (request) => {
    const { method } = await request.clone().json();
    for (const one of asked.filter((each) => each.method === method)) one.resolve();
  },
});
const options = { chain: foundry, transport: http, pollingInterval: 25, cacheTime: 0 };
const node = viem.createPublicClient(options);
const wallet = viem.createWalletClient({ ...options, account: local });
const unlocked = viem.createWalletClient({ ...options, account: alice }); // the node signs
const test = viem.createTestClient({ ...options, mode: "anvil" });
const socket = viem.createPublicClient({ chain: foundry, transport: viem.webSocket(url.replace("http", "ws"), { retryCount: 0 }), cacheTime: 0 });

const mined = (hash, more = {}) => node.waitForTransactionReceipt({ hash, timeout: 10_000, ...more });
const sent = async (request, client = wallet) => mined(await client.sendTransaction(request));
const nextCall = (method) => {
  const { promise, resolve } = arrival();
  asked.push({ method, resolve });
  return promise;
};
/** Transactions wait while `act` runs. */
async function held(act) {
  await test.setAutomine(false);
  try {
    await act();
  } finally {
    await test.setAutomine(true);
    await test.mine({ blocks: 1 });
  }
}

const math = { abi: contracts.math.abi };
const increment = (more = {}) => ({ ...math, functionName: "incrementCounter", args: [], ...more });

run({
  "chain, client and accounts": async () => {
    assert.equal(await node.getChainId(), 31337);
    assert.match(await node.request({ method: "web3_clientVersion" }), /^anvil\//);
    assert.equal((await unlocked.getAddresses())[0], alice);
  },
  "blocks by tag, number and hash": async () => {
    const genesis = await node.getBlock({ blockNumber: 0n });
    assert.equal((await node.getBlock({ blockHash: genesis.hash })).number, 0n);
    assert.equal((await node.getBlock({ blockTag: "earliest" })).hash, genesis.hash);
    assert.equal((await node.getBlock()).number, await node.getBlockNumber());
    assert.equal((await node.getBlock({ blockTag: "pending" })).number, (await node.getBlockNumber()) + 1n);
    for (const blockTag of ["safe", "finalized"]) assert.equal((await node.getBlock({ blockTag })).number, 0n);
    await assert.rejects(node.getBlock({ blockNumber: 999_999n }), viem.BlockNotFoundError);
  },
  "local account sends (eth_fillTransaction or its fallback), receipt": async () => {
    const before = await node.getBalance({ address: someone });
    const receipt = await sent({ to: someone, value: parseEther("1") });
    assert.equal(receipt.status, "success");
    assert.equal(receipt.gasUsed, 21_000n);
    assert.equal(receipt.type, "eip1559");
    assert.equal(await node.getBalance({ address: someone }), before + parseEther("1"));
    assert.equal(await node.getTransactionConfirmations({ transactionReceipt: receipt }), 1n);
  },
  "unlocked account sends (eth_sendTransaction)": async () => {
    const receipt = await sent({ to: someone, value: 1n }, unlocked);
    assert.equal(receipt.from, alice.toLowerCase());
  },
  "transaction by hash and by place": async () => {
    const receipt = await sent({ to: someone, value: 2n });
    const found = await node.getTransaction({ hash: receipt.transactionHash });
    assert.equal(found.value, 2n);
    const { blockHash, blockNumber } = receipt;
    assert.equal((await node.getTransaction({ blockHash, index: 0 })).hash, found.hash);
    assert.equal((await node.getTransaction({ blockNumber, index: 0 })).hash, found.hash);
    assert.equal(await node.getBlockTransactionCount({ blockNumber }), 1);
    const block = await node.getBlock({ blockNumber, includeTransactions: true });
    assert.equal(block.transactions[0].hash, found.hash);
    await assert.rejects(node.getTransaction({ hash: viem.keccak256("0x00") }), viem.TransactionNotFoundError);
  },
  "legacy and access-list transactions": async () => {
    assert.equal((await sent({ to: someone, gasPrice: parseGwei("20") })).type, "legacy");
    const accessList = [{ address: someone, storageKeys: [viem.pad("0x01")] }];
    const receipt = await sent({ to: someone, accessList, gasPrice: parseGwei("20"), type: "eip2930" });
    assert.equal(receipt.type, "eip2930");
    assert.equal(receipt.gasUsed, 21_000n + 2_400n + 1_900n);
  },
  "set-code transaction": async () => {
    const authority = privateKeyToAccount(generatePrivateKey());
    const authorization = await wallet.signAuthorization({ account: authority, contractAddress: someone });
    const receipt = await sent({ to: someone, authorizationList: [authorization] });
    assert.equal(receipt.type, "eip7702");
    assert.equal(await node.getCode({ address: authority.address }), ("0xef0100" + someone.slice(2)).toLowerCase());
  },
  "deploy a contract": async () => {
    const receipt = await mined(await wallet.deployContract({ ...math, bytecode: contracts.math.bytecode }));
    assert.equal(receipt.status, "success");
    math.address = receipt.contractAddress;
    assert.ok((await node.getCode({ address: math.address })).length > 100);
  },
  "read, simulate and write a contract": async () => {
    assert.equal(await node.readContract({ ...math, functionName: "counter" }), 0n);
    const { request, result } = await node.simulateContract(increment({ account: local, args: [5n] }));
    assert.equal(result, 5n);
    await mined(await wallet.writeContract(request));
    assert.equal(await node.readContract({ ...math, functionName: "counter" }), 5n);
    const blockNumber = (await node.getBlockNumber()) - 1n;
    assert.equal(await node.readContract({ ...math, functionName: "counter", blockNumber }), 0n);
  },
  "reverts carry reason and custom error": async () => {
    const hash = await wallet.deployContract({ abi: contracts.revert.abi, bytecode: contracts.revert.bytecode });
    const revert = { abi: contracts.revert.abi, address: (await mined(hash)).contractAddress };
    const reason = await node.readContract({ ...revert, functionName: "revertWithMessage" }).catch((error) => error);
    assert.match(reason.message, /Function has been reverted/);
    const custom = await node.readContract({ ...revert, functionName: "customErrorWithMessage" }).catch((error) => error);
    const cause = custom.walk((error) => error instanceof viem.ContractFunctionRevertedError);
    assert.equal(cause.data.errorName, "UnauthorizedWithMessage");
    await assert.rejects(node.estimateContractGas({ ...revert, functionName: "revertWithMessage", account: local }));
  },
  "gas estimates": async () => {
    assert.equal(await node.estimateGas({ account: local, to: someone, value: 1n }), 21_000n);
    const gas = await node.estimateContractGas(increment({ account: local }));
    const receipt = await mined(await wallet.writeContract(increment({ gas })));
    assert.equal(receipt.status, "success");
    await assert.rejects(node.estimateGas({ account: local, to: someone, value: parseEther("1000000") }));
  },
  "prices and fee history": async () => {
    const { maxFeePerGas, maxPriorityFeePerGas } = await node.estimateFeesPerGas();
    assert.ok(maxFeePerGas >= maxPriorityFeePerGas && maxPriorityFeePerGas > 0n);
    assert.ok((await node.getGasPrice()) > 0n);
    assert.ok((await node.estimateMaxPriorityFeePerGas()) > 0n);
    assert.ok((await node.getBlobBaseFee()) > 0n);
    const history = await node.getFeeHistory({ blockCount: 4, rewardPercentiles: [25, 75] });
    assert.equal(history.baseFeePerGas.length, 5);
    assert.equal(history.reward.length, 4);
    const parent = await node.getBlock();
    assert.ok(history.baseFeePerGas[3] === parent.baseFeePerGas);
  },
  "calls with state overrides": async () => {
    const slot = { slot: viem.pad("0x00"), value: viem.pad("0x2a") };
    const stateOverride = [{ address: math.address, stateDiff: [slot] }];
    assert.equal(await node.readContract({ ...math, functionName: "counter", stateOverride }), 42n);
    const code = "0x602a60005260206000f3"; // returns 42
    assert.equal(viem.hexToBigInt((await node.call({ to: someone, stateOverride: [{ address: someone, code }] })).data), 42n);
  },
  "storage and proofs": async () => {
    const counter = await node.readContract({ ...math, functionName: "counter" });
    assert.equal(viem.hexToBigInt(await node.getStorageAt({ address: math.address, slot: "0x0" })), counter);
    const proof = await node.getProof({ address: math.address, storageKeys: [viem.pad("0x00")] });
    assert.equal(proof.storageProof[0].value, counter);
    assert.ok(proof.accountProof.length > 0);
    const { accessList } = await node.createAccessList({ account: local, to: math.address, data: viem.encodeFunctionData(increment()) });
    assert.equal(accessList[0].address.toLowerCase(), math.address.toLowerCase());
  },
  "logs and contract events": async () => {
    const event = viem.parseAbiItem("event Increased(uint256 value)");
    const logs = await node.getLogs({ address: math.address, event, fromBlock: 0n });
    assert.deepEqual(logs.map((log) => log.args.value), [5n, 1n]);
    const events = await node.getContractEvents({ ...math, eventName: "Increased", fromBlock: 0n, toBlock: "latest" });
    assert.equal(events.length, 2);
    const { blockHash } = logs[0];
    assert.equal((await node.getLogs({ address: math.address, blockHash })).length, 1);
  },
  "filters: events, blocks, pending transactions": async () => {
    const events = await node.createContractEventFilter({ ...math, eventName: "Increased", fromBlock: 0n });
    const blocks = await node.createBlockFilter();
    const pending = await node.createPendingTransactionFilter();
    const hash = await wallet.writeContract(increment());
    const receipt = await mined(hash);
    assert.equal((await node.getFilterChanges({ filter: events })).at(-1).transactionHash, hash);
    assert.equal((await node.getFilterLogs({ filter: events })).length, 3);
    assert.ok((await node.getFilterChanges({ filter: blocks })).includes(receipt.blockHash));
    assert.deepEqual(await node.getFilterChanges({ filter: pending }), [hash]);
    assert.equal(await node.uninstallFilter({ filter: blocks }), true);
    await assert.rejects(node.getFilterChanges({ filter: blocks }));
  },
  "watchers that poll": async () => {
    const block = arrival();
    const event = arrival();
    const ready = nextCall("eth_newFilter");
    const first = await node.getBlockNumber();
    const stop = [
      node.watchBlocks({ emitMissed: true, onBlock: (each) => each.number > first && block.resolve(each) }),
      node.watchContractEvent({ ...math, eventName: "Increased", onLogs: event.resolve }),
    ];
    await ready;
    await mined(await wallet.writeContract(increment({ args: [7n] })));
    assert.equal((await event.promise)[0].args.value, 7n);
    assert.ok((await block.promise).number > first);
    for (const each of stop) each();
  },
  "watchers over WebSocket": async () => {
    const [block, event, pending] = [arrival(), arrival(), arrival()];
    const first = await socket.getBlockNumber();
    const stop = [
      socket.watchBlocks({ onBlock: (each) => each.number > first && block.resolve(each) }),
      socket.watchContractEvent({ ...math, eventName: "Increased", onLogs: event.resolve }),
      socket.watchPendingTransactions({ onTransactions: pending.resolve }),
    ];
    await socket.getBlockNumber(); // answered in order: the subscriptions stand
    const hash = await wallet.writeContract(increment({ args: [9n] }));
    assert.deepEqual(await pending.promise, [hash]);
    assert.equal((await event.promise)[0].args.value, 9n);
    assert.equal((await block.promise).number, (await mined(hash)).blockNumber);
    for (const each of stop) each();
  },
  "the node signs messages and typed data": async () => {
    const signature = await unlocked.signMessage({ message: "hello" });
    assert.ok(await viem.verifyMessage({ address: alice, message: "hello", signature }));
    const typed = {
      domain: { name: "Mail", chainId: 31337 },
      types: { Mail: [{ name: "to", type: "address" }, { name: "text", type: "string" }] },
      primaryType: "Mail",
      message: { to: bob, text: "hi" },
    };
    assert.ok(await viem.verifyTypedData({ address: alice, ...typed, signature: await unlocked.signTypedData(typed) }));
  },
  "snapshot and revert": async () => {
    const [balance, height] = [await node.getBalance({ address: someone }), await node.getBlockNumber()];
    const id = await test.snapshot();
    await sent({ to: someone, value: 1n });
    await test.revert({ id });
    assert.equal(await node.getBalance({ address: someone }), balance);
    assert.equal(await node.getBlockNumber(), height);
  },
  "mine blocks an interval apart": async () => {
    const before = await node.getBlock();
    await test.mine({ blocks: 3, interval: 60 });
    const after = await node.getBlock();
    assert.equal(after.number, before.number + 3n);
    const previous = await node.getBlock({ blockNumber: after.number - 1n });
    assert.equal(after.timestamp - previous.timestamp, 60n);
  },
  "set balance, nonce, code and storage": async () => {
    const address = "0x1111111111111111111111111111111111111111";
    await test.setBalance({ address, value: 77n });
    await test.setNonce({ address, nonce: 9 });
    await test.setCode({ address, bytecode: "0x60016002" });
    await test.setStorageAt({ address, index: 3, value: viem.pad("0x63") });
    assert.equal(await node.getBalance({ address }), 77n);
    assert.equal(await node.getTransactionCount({ address }), 9);
    assert.equal(await node.getCode({ address }), "0x60016002");
    assert.equal(viem.hexToBigInt(await node.getStorageAt({ address, slot: "0x3" })), 99n);
  },
  "replacement detected while waiting for the receipt": () =>
    held(async () => {
      const nonce = await node.getTransactionCount({ address: alice, blockTag: "pending" });
      const fees = { maxFeePerGas: parseGwei("10"), maxPriorityFeePerGas: parseGwei("1") };
      const hash = await wallet.sendTransaction({ to: someone, value: 1n, nonce, gas: 21_000n, ...fees });
      const looked = nextCall("eth_getTransactionByHash");
      const replaced = arrival();
      const receipt = mined(hash, { onReplaced: replaced.resolve });
      await looked;
      const dearer = { maxFeePerGas: parseGwei("20"), maxPriorityFeePerGas: parseGwei("2") };
      const other = await wallet.sendTransaction({ to: someone, value: 1n, nonce, gas: 21_000n, ...dearer });
      await test.mine({ blocks: 1 });
      assert.equal((await receipt).transactionHash, other);
      assert.equal((await replaced.promise).reason, "repriced");
    }),
  "drop a transaction; pool content, status, inspection": () =>
    held(async () => {
      const hash = await wallet.sendTransaction({ to: someone, value: 1n });
      assert.deepEqual(await test.getTxpoolStatus(), { pending: 1, queued: 0 });
      const { pending } = await test.getTxpoolContent();
      assert.equal(Object.values(pending[alice] ?? pending[alice.toLowerCase()])[0].hash, hash);
      assert.match(JSON.stringify(await test.inspectTxpool()), /1 wei/);
      await test.dropTransaction({ hash });
      await assert.rejects(node.getTransaction({ hash }), viem.TransactionNotFoundError);
      assert.deepEqual(await test.getTxpoolStatus(), { pending: 0, queued: 0 });
    }),
  "impersonate an account": async () => {
    const address = "0x2222222222222222222222222222222222222222";
    await test.setBalance({ address, value: parseEther("1") });
    await test.impersonateAccount({ address });
    const receipt = await sent({ account: address, to: someone, value: 1n }, viem.createWalletClient(options));
    assert.equal(receipt.from, address);
    await test.stopImpersonatingAccount({ address });
    await assert.rejects(viem.createWalletClient(options).sendTransaction({ account: address, to: someone, value: 1n }));
  },
  "next block's base fee, gas limit and coinbase": async () => {
    await test.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("7") });
    await test.setBlockGasLimit({ gasLimit: 20_000_000n });
    await test.setCoinbase({ address: bob });
    await test.mine({ blocks: 1 });
    const block = await node.getBlock();
    assert.equal(block.baseFeePerGas, parseGwei("7"));
    assert.equal(block.gasLimit, 20_000_000n);
    assert.equal(block.miner, bob.toLowerCase());
  },
  "automine off and on": async () => {
    assert.equal(await test.getAutomine(), true);
    await test.setAutomine(false);
    assert.equal(await test.getAutomine(), false);
    const hash = await wallet.sendTransaction({ to: someone, value: 1n });
    await assert.rejects(node.getTransactionReceipt({ hash }), viem.TransactionReceiptNotFoundError);
    await test.mine({ blocks: 1 });
    assert.equal((await node.getTransactionReceipt({ hash })).status, "success");
    await test.setAutomine(true);
  },
  "time: next timestamp, increase, interval between blocks": async () => {
    const timestamp = (await node.getBlock()).timestamp + 1_000n;
    await test.setNextBlockTimestamp({ timestamp });
    await test.mine({ blocks: 1 });
    assert.equal((await node.getBlock()).timestamp, timestamp);
    await test.increaseTime({ seconds: 3_600 });
    await test.mine({ blocks: 1 });
    assert.ok((await node.getBlock()).timestamp >= timestamp + 3_600n);
    await test.setBlockTimestampInterval({ interval: 5 });
    const from = (await node.getBlock()).timestamp;
    await test.mine({ blocks: 2 });
    assert.equal((await node.getBlock()).timestamp, from + 10n);
    await test.removeBlockTimestampInterval();
  },
  "interval mining": async () => {
    const first = await node.getBlockNumber();
    const grown = arrival();
    const stop = node.watchBlockNumber({ onBlockNumber: (number) => number >= first + 1n && grown.resolve() });
    await test.setIntervalMining({ interval: 1 });
    await grown.promise;
    stop();
    await test.setIntervalMining({ interval: 0 });
    await test.setAutomine(true);
  },
  "dump state, reset, load state": async () => {
    const state = await test.dumpState();
    await test.reset();
    assert.equal(await node.getBlockNumber(), 0n);
    assert.equal(await node.getBalance({ address: someone }), 0n);
    await test.loadState({ state });
    assert.ok((await node.getBalance({ address: someone })) > 0n);
    assert.equal(await node.readContract({ ...math, functionName: "counter" }), 23n);
  },
});
