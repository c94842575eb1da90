"""Seeded chance that depends on what is asked, never on when."""

from hashlib import blake2b
from random import Random


def chance(seed: int, purpose: str, key: str, count: int) -> Random:
    """A random source of its own for the `count`-th occurrence of a key: equal arguments, equal draws."""
    material = "\0".join((str(seed), purpose, key, str(count)))
    return Random(blake2b(material.encode(), digest_size=16).digest())  # noqa: S311  (chance of faults, no secret)
