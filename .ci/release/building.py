"""The sdist and the wheel of a commit, built twice and compared.

Rule: only what is committed is built, in a copy outside of the working tree. Nothing is fetched: the
tools are in the environment that runs this, with the versions and hashes of requirements.txt.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from release.commands import StepFailed, run
from release.long_description import long_description

_SOURCE_ROOTS = ("connector", "capture_client", "checkpoints")
_COMPILE = "from informix_cdc.host import compile_jar; compile_jar()"
_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


@dataclass(frozen=True)
class Project:
    """What a commit says of itself."""

    name: str
    version: str
    home: str
    epoch: str

    @property
    def tag(self) -> str:
        """Return the tag of the release of this version."""
        return f"v{self.version}"


def project_of(repository: Path) -> Project:
    """Return the project of the last commit.

    Raises:
        StepFailed: something is not committed.
    """
    if changed := run("git", "status", "--porcelain", folder=repository):
        raise StepFailed(f"commit this first, a release is built from a commit:\n{changed}")
    project = tomllib.loads(run("git", "show", "HEAD:pyproject.toml", folder=repository))["project"]
    literal = run("git", "show", "HEAD:connector/informix_cdc/version.py", folder=repository)
    version = _VERSION.search(literal)
    if version is None:
        raise StepFailed("connector/informix_cdc/version.py has no __version__.")
    epoch = run("git", "log", "-1", "--format=%ct", folder=repository).strip()
    return Project(project["name"], version[1], project["urls"]["Source"], epoch)


def require_released(changelog: str, project: Project, tag: str) -> None:
    """Check that a tag is that of the version, and that the changelog has its section.

    Raises:
        StepFailed: it is not, or has not.
    """
    if tag != project.tag:
        raise StepFailed(
            f"the tag is {tag}, but the version is {project.version}: see docs/RELEASING.md."
        )
    heading = rf"^## {re.escape(project.version)} \(\d{{4}}-\d\d-\d\d\)$"
    if not re.search(heading, changelog, re.MULTILINE):
        raise StepFailed(f"CHANGELOG.md has no section `## {project.version} (YYYY-MM-DD)`.")


def build(repository: Path, project: Project, folder: Path, *, umask: int) -> list[Path]:
    """Build the last commit, the wheel from the sdist; return both files.

    Args:
        repository: a clone.
        project: of the commit.
        folder: an empty one.
        umask: of the copy's files; it must make no difference.
    """
    source, made = folder / "source", folder / "files"
    source.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "archive", "HEAD"], cwd=repository, stdout=subprocess.PIPE, check=True
    ).stdout
    subprocess.run(
        ["tar", "-xm", "--no-same-permissions"], cwd=source, input=archive, umask=umask, check=True
    )
    readme = source / "README.md"
    text = long_description(readme.read_text("utf-8"), project.name, project.home, project.tag)
    readme.write_text(text, "utf-8")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": project.epoch, "PYTHONDONTWRITEBYTECODE": "1"}
    roots = os.pathsep.join(str(source / root) for root in _SOURCE_ROOTS)
    run(sys.executable, "-c", _COMPILE, environment={**environment, "PYTHONPATH": roots}, umask=umask)
    # From here on without a JDK: users who build a wheel from the sdist may have none.
    environment["JAVA_HOME"] = "/nowhere"
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", made, source)
    run(*command, environment=environment, umask=umask)
    return sorted(made.iterdir())


def require_same(first: list[Path], second: list[Path]) -> None:
    """Check that two builds made the same files, byte for byte.

    Raises:
        StepFailed: they did not; with the names.
    """
    if [path.name for path in first] != [path.name for path in second]:
        raise StepFailed(f"two builds made other files: {first}, {second}")
    differ = [
        a.name
        for a, b in zip(first, second, strict=True)
        if sha256(a.read_bytes()) != sha256(b.read_bytes())
    ]
    if differ:
        raise StepFailed(f"two builds of the same commit differ in {', '.join(differ)}")


def sha256(content: bytes) -> str:
    """Return the digest in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def sums(files: list[Path]) -> str:
    """Return the lines that `sha256sum --check` reads, from the folder of the files."""
    return "".join(f"{sha256(path.read_bytes())}  {path.name}\n" for path in sorted(files))
