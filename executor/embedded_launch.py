"""Launcher of the embedded PostgreSQL: gives up privileges, ties itself to its parent, becomes the server.

Run as a script of its own (`python -I -S embedded_launch.py MODE PARENT UID GID PROGRAM ARGUMENT...`), so that nothing
of this happens between fork and exec of a threaded process. MODE `child` ends the program with the parent's forking
thread, MODE `daemon` detaches it. It imports the standard library only, and everything before the privileges go: the
interpreter may lie where the server's user cannot read.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_FAILED = 126


def main(arguments: list[str]) -> int:
    """Become PROGRAM as user UID and group GID; returns (126) only if that fails, with the reason on stderr."""
    mode, parent, uid, gid, program, *rest = arguments
    try:
        if mode == "daemon" and os.fork():
            os._exit(0)  # the grandchild belongs to init: no zombie is left with a long-lived starter
        libc = ctypes.CDLL(None, use_errno=True)
        os.umask(0o077)
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(int(gid), int(gid), int(gid))
            os.setresuid(int(uid), int(uid), int(uid))
        if mode == "child":
            # Last: a change of user clears it. SIGINT is PostgreSQL's fast shutdown.
            if libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT), 0, 0, 0) != 0:
                raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
            if os.getppid() != int(parent):
                return _FAILED  # the parent ended before the signal was armed
        os.execv(program, [program, *rest])  # noqa: S606
    except OSError as error:
        os.write(2, f"FATAL:  cannot start {program} as user id {uid}: {error.strerror}\n".encode())
    return _FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
