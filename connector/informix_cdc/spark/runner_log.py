"""Where log lines go in Spark's runner process, which no program of the user's can set up.

Rule: whoever has set up logging there himself (`sitecustomize`) is left alone.
"""

from __future__ import annotations

import logging
import time

ROOT = "informix_cdc"


class LineFormatter(logging.Formatter):
    """Puts time (UTC), level and logger in front, in the same form as what follows."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        level = record.levelname.lower()
        head = f"ts={self.formatTime(record)} level={level} logger={record.name}"
        return f"{head} {record.getMessage()}"


def log_to_standard_error(level: str) -> None:
    """Write lines of this level and above to standard error, which Spark shows as its driver's own."""
    logger = logging.getLogger(ROOT)
    if logger.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter())
    logger.addHandler(handler)
    logger.setLevel(level.upper())
