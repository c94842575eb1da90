"""`fenced init`: a first directory with a commented configuration, a strategy and the public devnet key."""

import os
from pathlib import Path
from typing import Annotated

import typer

from executor.cli.output import say

_FILES = {
    "fenced.toml": ("fenced.toml", 0o644),
    "strategies/allowance.py": ("strategies/allowance.py", 0o644),
    "keys/devnet-0.key": ("devnet-0.key", 0o600),
    ".gitignore": ("gitignore", 0o644),
}
_NEXT = """
Next, in {where}:
  fenced devnet            a local chain, in a terminal of its own
  fenced validate          is everything as the file says?
  fenced db start          the database of our own
  fenced migrate           its tables
  fenced apply             accounts and strategies into the rows
  fenced run               work, until Ctrl-C
  fenced status            what goes on, in another terminal"""


def init(
    directory: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="Where to write; made if it is not there.")
    ] = Path(),
) -> None:
    """Write a first configuration, strategy and key for the local devnet.

    The file is commented and passes `fenced validate`. The key is the devnet's first account, known to everybody: never
    send it anything of value. Nothing that exists is overwritten.

    Example: fenced init payments
    """
    from importlib.resources import files

    from executor.errors import ConfigError

    taken = [name for name in _FILES if os.path.lexists(directory / name)]
    if taken:
        raise ConfigError(f"{directory / taken[0]} exists and is not overwritten; name another directory.")
    starter = files("executor") / "starter"
    for name, (source, mode) in _FILES.items():
        target = directory / name
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(target, flags, mode), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write((starter / source).read_bytes())
        say(f"wrote {target}")
    say(_NEXT.format(where="this directory" if directory == Path() else directory))
