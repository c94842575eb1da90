"""`python -m executor.demo [--keep]`: the demo without the command line around it."""

import sys

from executor.demo import run

sys.exit(run(keep="--keep" in sys.argv[1:]))
