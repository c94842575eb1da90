"""Reading a file that holds a secret, if nobody else could have read or placed it."""

import os
import stat
from pathlib import Path

from signer.errors import KeyRefused

MAX_BYTES = 1 << 16


def read(path: Path) -> bytes:
    """The content of a secret file.

    Raises KeyRefused, with what to type, if it is missing, a symbolic link, no regular file, owned by somebody else
    than us or root, open to group or others, or longer than a key file is.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise KeyRefused(f"there is no key file {path}") from None
    except OSError as error:
        if path.is_symlink():
            raise KeyRefused(f"the key file {path} is a symbolic link; name the file itself") from None
        raise KeyRefused(f"the key file {path} cannot be opened: {error.strerror}") from None
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise KeyRefused(f"the key file {path} is not a regular file")
        if state.st_uid not in (os.geteuid(), 0):
            raise KeyRefused(f"the key file {path} belongs to another user; run: chown {os.geteuid()} {path}")
        if state.st_mode & 0o077:
            raise KeyRefused(f"the key file {path} is open to other users; run: chmod 600 {path}")
        content = os.read(descriptor, MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > MAX_BYTES:
        raise KeyRefused(f"the key file {path} is longer than {MAX_BYTES} bytes")
    return content
