"""Apply known mutants to a copy of this tree, one at a time, and tell which test kills each.

    python -m mutants [--killers-only] [NAME ...]

Each mutant meets its killers, then, unless `--killers-only`, the whole suite. The exit code is 1 if one
survives that is not marked `only_thorough`, and 2 if a killer fails without any mutant.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from mutants import ROOT, SOURCE_ROOTS, Mutant, known_mutants

_OPTIONS = ("-q", "-p", "no:cacheprovider", "-m", "not only_in_all")  # what `make test` runs
_FIRST = ("-x", "--timeout", "300")  # what hangs is ended, and counts as killed
_SUITE = ("--dist", "loadscope", "--numprocesses", "6")  # as `make test`
_FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)
_HUNG = "from pytest-timeout"
_PASSED, _FAILED_OR_BROKEN, _NO_TESTS = 0, (1, 2), 5  # exit codes; a module may not be imported


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run of pytest ended: which tests failed, and whether one hung."""

    is_killed: bool
    failed: tuple[str, ...]
    has_hung: bool
    seconds: float

    def __str__(self) -> str:
        by = self.failed[0] if self.failed else "a run that broke off"
        return f"{by}{', which hung' if self.has_hung else ''}, {self.seconds:.0f} s"


class Copy:
    """A copy of the work tree in which tests run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._times = itertools.count(1)  # of changed files: Python knows a stale .pyc by these
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():  # one that was deleted and is not committed is listed too
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        for words in ("init", "add --all"):  # tests ask git for the names of files
            subprocess.run(["git", *words.split()], cwd=folder, check=True, capture_output=True)

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """Let the copy have a defect for a while."""
        path = self._folder / mutant.file
        sound = path.read_text(encoding="utf-8")
        self._write(path, mutant.applied_to(sound))
        try:
            yield
        finally:
            self._write(path, sound)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        changed = next(self._times)
        os.utime(path, (changed, changed))

    def run(self, *arguments: str, profile: str = "ci") -> Outcome:
        """Run pytest on the sources of the copy, in processes that tests start too."""
        paths = os.pathsep.join(str(self._folder / root) for root in SOURCE_ROOTS)
        environment = {**os.environ, "PYTHONPATH": paths, "HYPOTHESIS_PROFILE": profile}
        environment |= dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable)
        command = [sys.executable, "-m", "pytest", *_OPTIONS, *arguments]
        begun = time.monotonic()
        done = subprocess.run(
            command, cwd=self._folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode == _NO_TESTS:
            raise SystemExit(f"`make test` runs none of these: {' '.join(arguments)}")
        if done.returncode not in (_PASSED, *_FAILED_OR_BROKEN):
            raise SystemExit(f"pytest broke off: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        failed = tuple(_FAILED.findall(done.stdout))
        seconds = time.monotonic() - begun
        return Outcome(done.returncode != _PASSED, failed, _HUNG in done.stdout, seconds)


def _verdict(copy: Copy, mutant: Mutant, *, killers_only: bool) -> tuple[bool, str]:
    """Return whether a mutant is killed, and that in words."""
    with copy.mutated(mutant):
        profile = "thorough" if mutant.only_thorough else "ci"
        outcome = copy.run(*_FIRST, *mutant.killers, profile=profile)
        if outcome.is_killed:
            return True, f"killed by {outcome}"
        whole = None if killers_only else copy.run("-x", *_SUITE)
    if whole and whole.failed and not copy.run(*whole.failed).is_killed:
        return True, f"killed by the whole suite: promote {whole}"
    return False, "SURVIVED"


def _require_sound(copy: Copy, mutants: Sequence[Mutant]) -> None:
    """Stop where a killer fails without any mutant."""
    for profile, is_thorough in (("ci", False), ("thorough", True)):
        chosen = [each for each in mutants if each.only_thorough is is_thorough]
        killers = dict.fromkeys(killer for each in chosen for killer in each.killers)
        if killers and (outcome := copy.run(*killers, profile=profile)).is_killed:
            click.echo(f"Without a mutant these fail: {' '.join(outcome.failed) or 'all'}", err=True)
            raise SystemExit(2)


def main() -> int:
    """Run as the arguments say and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--killers-only", action="store_true", help="leave the whole suite out")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of mutants; all if none is given")
    given = parser.parse_args()
    known = {mutant.name: mutant for mutant in known_mutants()}
    if unknown := [name for name in given.names if name not in known]:
        parser.error(f"there is no mutant {unknown[0]}")
    mutants = [known[name] for name in given.names] or list(known.values())
    killed, is_missed = 0, False
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(Path(folder))
        _require_sound(copy, mutants)
        for mutant in mutants:
            is_killed, words = _verdict(copy, mutant, killers_only=given.killers_only)
            click.echo(f"{mutant.name}: {words}")
            killed += is_killed
            is_missed |= not is_killed and not mutant.only_thorough
    click.echo(f"{killed} of {len(mutants)} killed")
    return int(is_missed)


if __name__ == "__main__":
    sys.exit(main())
