"""Named places where a test may make the program die. Inactive unless the environment names one.

Rule: a failpoint kills the process at once (`os._exit`), as a power cut would; no handler runs.
"""

from __future__ import annotations

import os

_VARIABLE = "INFORMIX_CDC_FAILPOINT"


def failpoint(name: str) -> None:
    """Die here if the environment variable INFORMIX_CDC_FAILPOINT names this place."""
    if os.environ.get(_VARIABLE) == name:
        os._exit(86)
