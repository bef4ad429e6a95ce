"""Builds and checks a release: `make release`, explained in docs/RELEASING.md.

python -m release            the last commit; with RELEASE_TAG=v1.2.3 only if it is that release
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import venv
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from release import building, checking, quickstart
from release.commands import StepFailed, run

REPOSITORY = Path(__file__).parents[2]
WORK = REPOSITORY / "build" / "release"
DIST = REPOSITORY / "dist"
CONSOLE = Console(stderr=True, width=120)


class Report:
    """The table at the end: what was checked, what was found, and how long it took."""

    def __init__(self) -> None:
        self.table = Table("checked", "result", "seconds", title="make release")

    def step(self, name: str, does: Callable[[], str]) -> None:
        """Run a step, and add its row."""
        CONSOLE.print(f"{name} ...")
        began = time.monotonic()
        try:
            found = does()
        except StepFailed:
            self.table.add_row(name, "FAILED: the reason is above", f"{time.monotonic() - began:.0f}")
            raise
        self.table.add_row(name, found, f"{time.monotonic() - began:.0f}")

    def skipped(self, name: str, why: str) -> None:
        """Add a row for a step that did not run."""
        self.table.add_row(name, f"SKIPPED: {why}", "")


def build_twice(report: Report, project: building.Project) -> tuple[Path, Path]:
    """Build the files, put them into dist/ and return wheel and sdist."""

    def twice() -> str:
        for folder in (WORK, DIST):
            shutil.rmtree(folder, ignore_errors=True)
        first = building.build(REPOSITORY, project, WORK / "first", umask=0o022)
        second = building.build(REPOSITORY, project, WORK / "second", umask=0o077)
        building.require_same(first, second)
        DIST.mkdir()
        for path in first:
            shutil.copyfile(path, DIST / path.name)
        sizes = ", ".join(f"{path.name} {path.stat().st_size:,} bytes" for path in first)
        return f"{sizes}; byte for byte the same"

    report.step("two builds", twice)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def check_dependencies(report: Report, project: building.Project, wheel: Path) -> None:
    """Install the wheel with its extras alone, and look at what it brought."""
    folder = WORK / "resolved"
    python, pip_report = folder / "bin" / "python", WORK / "resolved.json"

    def install() -> str:
        venv.create(folder, with_pip=False)
        pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet")
        run(*pip, "--report", pip_report, f"{wheel}[spark,delta]")
        return "the wheel with the extras spark and delta, as resolved today"

    report.step("dependencies", install)
    rows: list[tuple[str, str, str]] = []

    def licences() -> str:
        found, more = checking.check_licences(python)
        rows.extend(more)
        return found

    report.step("licences", licences)
    table = Table("dependency", "version", "licence")
    for row in rows:
        table.add_row(*row)
    CONSOLE.print(table)
    bill = DIST / f"{wheel.name.split('-py3')[0]}.cdx.json"
    report.step("bill of materials", lambda: checking.write_sbom(python, pip_report, project, bill))
    shutil.rmtree(folder)


def run_quickstarts(report: Report, project: building.Project, wheel: Path, sdist: Path) -> None:
    """Run README's first section with each Python; with the oldest from the sdist."""
    page = (WORK / "first" / "source" / "README.md").read_text("utf-8")
    pythons = quickstart.interpreters()
    if not pythons:
        raise StepFailed(f"none of Python {', '.join(quickstart.PYTHONS)} is on this machine.")
    for version in quickstart.PYTHONS:
        file = sdist if version == min(pythons) else wheel
        name = f"quickstart, Python {version}, {'sdist' if file is sdist else 'wheel'}"
        if version in pythons:
            report.step(name, partial(one_quickstart, pythons[version], version, project, file, page))
        else:
            report.skipped(name, f"no Python {version} on this machine")


def one_quickstart(python: Path, version: str, project: building.Project, file: Path, page: str) -> str:
    """Install a file into a clean environment, run README's first section; return what came."""
    folder = WORK / f"python{version}"
    environment = quickstart.clean_environment(python, folder, file, page)
    quickstart.check_installed(folder, environment, project.version)
    quickstart.run_demo(folder, environment)
    rows = quickstart.run_first_section(page, folder, environment)
    shutil.rmtree(folder)
    return f"demo: every value verified; README's mirror: {rows}"


def release(report: Report) -> None:
    """Build and check all."""
    project = building.project_of(REPOSITORY)
    if tag := os.environ.get("RELEASE_TAG", ""):
        building.require_released((REPOSITORY / "CHANGELOG.md").read_text("utf-8"), project, tag)
        report.step("tag", lambda: f"{tag}, of this version, and in the changelog")
    else:
        report.skipped("tag", "a rehearsal, since RELEASE_TAG is not set")
    wheel, sdist = build_twice(report, project)
    report.step("metadata", lambda: checking.check_metadata(wheel, sdist))
    report.step("contents", lambda: checking.check_contents(wheel, sdist))
    report.step("page on the index", lambda: checking.check_page(wheel, project))
    check_dependencies(report, project, wheel)
    made = [path for path in DIST.iterdir() if path.is_file()]
    (DIST / "SHA256SUMS").write_text(building.sums(made))
    run_quickstarts(report, project, wheel, sdist)


def main() -> int:
    """Run the release; return the exit code."""
    report = Report()
    try:
        release(report)
    except StepFailed as failure:
        CONSOLE.print(str(failure), markup=False, highlight=False)
        return 1
    finally:
        Console(width=120).print(report.table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
