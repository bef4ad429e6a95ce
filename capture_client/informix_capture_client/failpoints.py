"""Named places where a test may make the program die. Inactive unless the environment names one.

Rule: a failpoint kills the process at once (`os._exit`), as a power cut would; no handler runs.

    INFORMIX_CDC_FAILPOINT=name       die at the first passing
    INFORMIX_CDC_FAILPOINT=name@3     die at the third
    INFORMIX_CDC_FAILPOINT=/a/file    the file says which; it is removed before the death, so that the
                                      next process lives
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

VARIABLE = "INFORMIX_CDC_FAILPOINT"
EXIT_CODE = 86
_passings: Counter[str] = Counter()


def failpoint(name: str) -> None:
    """Die here if the environment variable INFORMIX_CDC_FAILPOINT says so."""
    reached(name)


def _die_if_named(name: str) -> None:
    armed = os.environ.get(VARIABLE, "")
    file = Path(armed) if armed.startswith("/") else None
    if file is not None:
        try:
            armed = file.read_text().strip()
        except FileNotFoundError:
            return
    wanted, _, times = armed.partition("@")
    if wanted != name:
        return
    _passings[name] += 1
    if _passings[name] < int(times or 1):
        return
    if file is not None:
        file.unlink()
    os._exit(EXIT_CODE)


# A simulation puts its own function here and needs no second process.
reached: Callable[[str], None] = _die_if_named
