"""The program for spark-submit whose path `informix-cdc mirror --program` prints.

spark-submit --master yarn "$(informix-cdc mirror --program)" stores.toml
"""

from __future__ import annotations

import sys
from pathlib import Path

from informix_cdc.commands.mirror import run_mirror
from informix_cdc.lake import submitted_session
from informix_cdc.terminal import TABLES_STOPPED

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: spark-submit mirror_program.py FILE.toml [--once]")
    once = "--once" in sys.argv[2:]
    if run_mirror(Path(sys.argv[1]), once=once, session=submitted_session) and once:
        sys.exit(TABLES_STOPPED)
