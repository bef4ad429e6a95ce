"""Feed noise to a door, guided by coverage: `python -m lab.fuzz [NAME [SECONDS]]`, run in tests/.

Rule: a finding is kept and ends the run. It goes on in rounds, each in a process of its own, which hand
on what they have found: what guides the noise takes memory with each input, and never gives it back.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import cast

import atheris

from lab.fuzz.instrumented import PACKAGES
from lab.fuzz.json_noise import with_another_value

with atheris.instrument_imports(include=PACKAGES):
    from lab.fuzz.targets import TARGETS

_OF_VALUES = 0.3  # of the mutations
_BYTES_A_ROUND = 1 << 28  # of inputs, if each is as long as it may be


def main() -> None:
    """Fuzz one target for so many seconds, or list them."""
    if len(sys.argv) < 2:
        sys.stdout.write("\n".join(TARGETS) + "\n")
        return
    name, seconds = sys.argv[1], float(sys.argv[2] if len(sys.argv) > 2 else "60")
    if len(sys.argv) > 3:
        _round(name, seconds, sys.argv[3])
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(TARGETS[name].seeds):
            (Path(folder) / str(number)).write_bytes(seed)
        while (left := end - time.monotonic()) > 1:
            command = [sys.executable, "-m", "lab.fuzz", name, str(left), folder]
            if code := subprocess.run(command, check=False).returncode:
                sys.exit(code)


def _mutated(data: bytes, most_bytes: int, seed: int) -> bytes:
    """Change the bytes, or a value of the JSON that they are."""
    chosen = random.Random(seed)
    if chosen.random() < _OF_VALUES:
        made = with_another_value(data, chosen.getrandbits(16), chosen.getrandbits(16))
        if len(made) <= most_bytes and made != data:
            return made
    return cast("bytes", atheris.Mutate(data, most_bytes))


def _round(name: str, seconds: float, folder: str) -> None:
    target = TARGETS[name]
    runs = _BYTES_A_ROUND // target.most_bytes
    bounds = ["-rss_limit_mb=2048", "-timeout=20", f"-max_len={target.most_bytes}", f"-runs={runs}"]
    arguments = [sys.argv[0], f"-max_total_time={int(seconds)}", *bounds, folder]
    atheris.Setup(arguments, target.run, custom_mutator=_mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
