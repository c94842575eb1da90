// Stands for the `hardhat` package: its network helpers ask it for `network.provider` only.
"use strict";
const { rpc } = require("../../steps.cjs");

const provider = {
  request: ({ method, params = [] }) => rpc(method, ...params),
  send: (method, params = []) => rpc(method, ...params),
};

module.exports = { network: { name: "devnet", provider } };
