# pragma version 0.4.3
# A token just large enough to be paid with: fixed supply, all of it given to one holder at deployment.
#
# token.hex beside this file is its creation code without the constructor's two arguments, made by
#
#     pip install vyper==0.4.3
#     vyper --evm-version cancun -f bytecode token.vy > token.hex

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    amount: uint256

event Approval:
    owner: indexed(address)
    spender: indexed(address)
    amount: uint256

name: public(constant(String[16])) = "Demonstration"
symbol: public(constant(String[8])) = "DEMO"
decimals: public(constant(uint8)) = 18

totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])


@deploy
def __init__(holder: address, supply: uint256):
    self.totalSupply = supply
    self.balanceOf[holder] = supply
    log Transfer(sender=empty(address), receiver=holder, amount=supply)


@external
def transfer(receiver: address, amount: uint256) -> bool:
    self._move(msg.sender, receiver, amount)
    return True


@external
def transferFrom(sender: address, receiver: address, amount: uint256) -> bool:
    self.allowance[sender][msg.sender] -= amount
    self._move(sender, receiver, amount)
    return True


@external
def approve(spender: address, amount: uint256) -> bool:
    self.allowance[msg.sender][spender] = amount
    log Approval(owner=msg.sender, spender=spender, amount=amount)
    return True


@internal
def _move(sender: address, receiver: address, amount: uint256):
    self.balanceOf[sender] -= amount  # reverts below zero
    self.balanceOf[receiver] += amount
    log Transfer(sender=sender, receiver=receiver, amount=amount)
