"""Time as the worker may use it: durations on CLOCK_BOOTTIME, which counts a suspended machine too.

Every instant that is stored or compared between workers is the database's clock_timestamp(), never ours.
"""

import time


def boottime() -> float:
    """Seconds since boot, suspended time included; only differences of it mean something."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
