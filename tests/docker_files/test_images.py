"""The client's image: linted, and whatever it copies is there and passes .dockerignore."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from docker_files.compose_file import DOCKER, DOCKERFILES, ROOT, lint

CLIENT = ROOT / "docker" / "client" / "Dockerfile"


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_hadolint_has_nothing_to_say(path: Path) -> None:
    assert lint("hadolint", "--config", DOCKER / ".hadolint.yaml", path) == ""


def copied() -> list[str]:
    """Return what the image copies out of the repository."""
    lines = re.findall(r"^COPY (?!--from)(.+)$", CLIENT.read_text(), re.MULTILINE)
    return [source for line in lines for source in line.split()[:-1]]


def test_what_the_image_copies_exists_and_is_let_through() -> None:
    let_through = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().split("\n") if line[:1] == "!"
    }
    for source in copied():
        assert (ROOT / source).exists()
        assert source in let_through or str(Path(source).parent) in let_through, source


def test_the_image_gets_every_package_and_what_its_metadata_names() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    folders = {folder.split("/")[0] for folder in packages}
    files = {settings["project"]["readme"], *settings["project"]["license-files"]}
    assert folders | files <= set(copied())


def test_no_container_runs_as_root() -> None:
    stages = re.split(r"^FROM ", CLIENT.read_text(), flags=re.MULTILINE)[2:]
    users = [re.findall(r"^USER (\S+)", stage, re.MULTILINE)[-1] for stage in stages]
    assert users == ["1000:1000"] * 3
