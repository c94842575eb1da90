"""py-evm's computation for each fork, and Osaka, which it has not."""

from functools import cache
from importlib import import_module
from typing import Any, Final

from eth.exceptions import OutOfGas
from eth.vm.opcode import as_opcode

from devnet.evm.forks import CODE_LIMIT, Fork
from devnet.evm.opcodes import BY_NAME
from devnet.evm.precompiles import ecrecover, modexp, p256verify, point_evaluation

_ECRECOVER: Final = (1).to_bytes(20, "big")
_MODEXP: Final = (5).to_bytes(20, "big")
_POINT_EVALUATION: Final = (10).to_bytes(20, "big")
_P256VERIFY: Final = (0x100).to_bytes(20, "big")
_GAS_CLZ: Final = 5
_NEWEST: Final = "Prague"
# py-evm's names where they are not ours.
_NAMES: Final = {"Tangerine": "TangerineWhistle"}
_MODULES: Final = {
    "TangerineWhistle": "tangerine_whistle",
    "SpuriousDragon": "spurious_dragon",
    "MuirGlacier": "muir_glacier",
    "ArrowGlacier": "arrow_glacier",
    "GrayGlacier": "gray_glacier",
}

# Classes are made at run time over whatever computation the fork has: no type checker can follow.
_Class = Any


def computation_class(fork: Fork) -> _Class:
    """The class that runs messages under a fork's rules."""
    name = _NEWEST if fork.has_requests else fork.name
    return _class(name, osaka=fork.transaction_gas_cap is not None, code_limit=fork.code_limit)


@cache
def _class(name: str, *, osaka: bool, code_limit: int) -> _Class:
    name = _NAMES.get(name, name)
    module = import_module(f"eth.vm.forks.{_MODULES.get(name, name.lower())}.computation")
    base: _Class = getattr(module, f"{name}Computation")
    if code_limit != CODE_LIMIT:
        base = _with_code_limit(base, code_limit)
    table, built_in = dict(base.opcodes), dict(base.get_precompiles())
    destruct = table[BY_NAME["SELFDESTRUCT"]]
    table[BY_NAME["SELFDESTRUCT"]] = getattr(destruct, "__wrapped__", destruct)  # without py-evm's warning at each run
    built_in[_ECRECOVER] = ecrecover
    if _POINT_EVALUATION in built_in:
        built_in[_POINT_EVALUATION] = point_evaluation
    if osaka:
        table[BY_NAME["CLZ"]] = as_opcode(_clz, "CLZ", _GAS_CLZ)
        built_in |= {_MODEXP: modexp, _P256VERIFY: p256verify}

    class Computation(base):  # type: ignore[misc]  # the base is chosen at run time
        opcodes = table
        _precompiles = built_in

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.contracts_created: list[bytes] = []  # Homestead's creations look for it before it is set

        @property
        def is_origin_computation(self) -> bool:
            return bool(self.msg.depth == 0)

    return Computation


def _with_code_limit(base: _Class, limit: int) -> _Class:
    """Contracts may be larger or must be smaller than mainnet's (EIP-170, EIP-3860)."""

    class Computation(base):  # type: ignore[misc]  # the base is chosen at run time
        @classmethod
        def validate_contract_code(cls, contract_code: bytes) -> None:
            if len(contract_code) > limit:
                raise OutOfGas(f"code of {len(contract_code)} bytes, {limit} are allowed")
            super().validate_contract_code(contract_code[:1])  # what else is forbidden shows in the first byte

        @classmethod
        def validate_create_message(cls, message: Any) -> None:
            if len(message.code) > 2 * limit:
                raise OutOfGas(f"init code of {len(message.code)} bytes, {2 * limit} are allowed")

    return Computation


def _clz(computation: Any) -> None:
    """Count the leading zero bits of a word (EIP-7939)."""
    computation.stack_push_int(256 - computation.stack_pop1_int().bit_length())
