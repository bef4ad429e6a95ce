"""What a release rests on: one wheel from one commit, versions tried together, a way to report."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / ".ci/constraints.txt"
PARTS = ["pyproject.toml", "README.md", "LICENSE", "connector", "capture_client", "checkpoints"]
_LINE = re.compile(r"[A-Za-z0-9][\w.-]*==[\w.+!-]+")


def plain_name(requirement: str) -> str:
    """Return the name of a requirement or of a line `name==version`, as an index spells it."""
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def tried_versions() -> list[str]:
    return [line for line in CONSTRAINTS.read_text().splitlines() if not line.startswith("#")]


def test_ci_installs_versions_that_were_tried_together() -> None:
    assert 'export PIP_CONSTRAINT="$PWD/.ci/constraints.txt"' in (ROOT / ".ci/run").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    test = extras["test"]
    of_extras = [
        name for each in test if "[" in each for name in each.split("[")[1].strip("]").split(",")
    ]
    others = [each for name in of_extras for each in extras.get(name, ())]
    wanted = {plain_name(each) for each in [*project["dependencies"], *test, *others]}
    known = {plain_name(line) for line in tried_versions()}
    assert wanted - {"informix-cdc"} - known == set(), "make constraints"


def test_ci_checks_the_hash_of_all_that_it_installs() -> None:
    """Each version has hashes, and whoever makes one list anew has made both."""
    listed = (ROOT / ".ci/hashes.txt").read_text().replace("\\\n", "").splitlines()
    hashed = [line.split() for line in listed if not line.startswith("#")]
    assert all(
        re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for _, *rest in hashed for each in rest
    )
    assert all(rest for _, *rest in hashed)
    pinned = {(plain_name(line), line.partition("==")[2]) for line in tried_versions()}
    assert {(plain_name(first), first.partition("==")[2]) for first, *_ in hashed} == pinned
    run = (ROOT / ".ci/run").read_text()
    assert "--require-hashes --no-deps --no-build-isolation" in run
    assert "--no-index --no-build-isolation" in run


def test_the_list_has_names_and_versions_and_no_place_that_they_came_from() -> None:
    assert [line for line in tried_versions() if not _LINE.fullmatch(line)] == []


# The first versions without a weakness that this use could meet: CVE-2023-47248 in pyarrow, and
# CVE-2024-6119 (names in certificates) in what wheels of cryptography carry. docs/versions.md says why
# later ones do not concern it.
FIRST_SOUND = {"pyarrow": (14, 0, 1), "cryptography": (43, 0, 1)}


def test_no_version_with_a_known_weakness_is_allowed() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    floors = dict(each.split(">=") for each in wanted if plain_name(each) in FIRST_SOUND)
    assert floors.keys() == FIRST_SOUND.keys()
    for name, floor in floors.items():
        assert tuple(map(int, floor.split("."))) >= FIRST_SOUND[name], name


def test_make_gives_a_wheel_the_time_of_its_commit() -> None:
    shown = subprocess.run(
        ["make", "--no-print-directory", "--eval", "show: ; @echo $$SOURCE_DATE_EPOCH", "show"],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if key != "SOURCE_DATE_EPOCH"},
        capture_output=True,
        text=True,
        check=True,
    )
    asked = ["sh", "-c", "git log -1 --format=%ct"]  # which may not be there, nor know this folder
    log = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert shown.stdout.strip() == (log.stdout.strip() or "1577836800")


def built(folder: Path, umask: int) -> Path:
    """Build the wheel of a copy whose files have other times and modes."""
    source = folder / "source"
    source.mkdir(parents=True)
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copyfile
        copy(ROOT / part, source / part)
    for path in source.rglob("*.py"):
        os.utime(path, (umask * 1e6 + 4e8, umask * 1e6 + 4e8))
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(source)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run(command, env=environment, umask=umask, capture_output=True, check=True)
    return next(folder.glob("*.whl"))


@pytest.mark.slow
def test_two_builds_of_the_same_sources_are_one_file(tmp_path: Path) -> None:
    wheels = [built(tmp_path / f"{umask:o}", umask) for umask in (0o022, 0o077)]
    assert len({hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels}) == 1
    times = {entry.date_time for entry in zipfile.ZipFile(wheels[0]).infolist()}
    assert times == {(2023, 11, 14, 22, 13, 20)}


def test_whoever_finds_a_weakness_is_told_where_to_report_it() -> None:
    page = (ROOT / "SECURITY.md").read_text()
    assert "in private" in page
    assert "SECURITY.md)" in (ROOT / "README.md").read_text()
    tests = re.findall(r"`(tests/[\w/.]+)`", page)
    assert len(tests) >= 6
    assert [name for name in tests if not (ROOT / name).exists()] == []
