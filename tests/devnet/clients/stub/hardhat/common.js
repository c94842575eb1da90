// Stands for `hardhat/common`: the base class of the helpers' own errors.
"use strict";
class CustomError extends Error {
  constructor(message, parent) {
    super(message);
    this.parent = parent;
  }
}

module.exports = { CustomError };
