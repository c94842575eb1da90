"""Launcher of the demo's workers: ties itself to its parent, then becomes the program.

Run as a script of its own (`python -I -S tied.py PARENT PROGRAM ARGUMENT...`). The kernel ends the program with the
thread that started it, paused or not, so that a demo that is killed leaves nobody behind. Linux only.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    """Become PROGRAM; returns only if the parent has ended already or the kernel refuses."""
    parent, program, *rest = arguments
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        return 126
    if os.getppid() == int(parent):
        os.execv(program, [program, *rest])  # noqa: S606
    return 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
