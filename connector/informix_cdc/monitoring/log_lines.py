"""Set up logging in processes that user programs cannot configure: Spark's runner, and a capture.

Rule: logging that is already configured (in `sitecustomize`) is not changed.
"""

from __future__ import annotations

import logging
import time

ROOT = "informix_cdc"


class LineFormatter(logging.Formatter):
    """Adds time (UTC), level and logger to each line, in the same key=value form."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        level = record.levelname.lower()
        head = f"ts={self.formatTime(record)} level={level} logger={record.name}"
        return f"{head} {record.getMessage()}"


def log_to_standard_error(level: str) -> None:
    """Write lines of this level and above to standard error, which Spark adds to its driver's own."""
    logger = logging.getLogger(ROOT)
    if logger.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter())
    logger.addHandler(handler)
    logger.setLevel(level.upper())
