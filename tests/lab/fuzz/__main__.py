"""Feed noise to a door, guided by coverage: `python -m lab.fuzz [NAME [SECONDS]]`, run in tests/."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

from lab.fuzz.instrumented import PACKAGES

with atheris.instrument_imports(include=PACKAGES):
    from lab.fuzz.targets import TARGETS


def main() -> None:
    """Fuzz one target for so many seconds, or list them; a finding is kept and ends the run."""
    if len(sys.argv) < 2:
        sys.stdout.write("\n".join(TARGETS) + "\n")
        return
    name, seconds = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "60"
    target = TARGETS[name]
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(target.seeds):
            (Path(folder) / str(number)).write_bytes(seed)
        bounds = ["-rss_limit_mb=2048", "-timeout=20", f"-max_len={target.most_bytes}"]
        flags = [f"-max_total_time={seconds}", *bounds]
        atheris.Setup([sys.argv[0], *flags, folder], target.run)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
