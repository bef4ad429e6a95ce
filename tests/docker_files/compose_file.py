"""docker/compose.yaml as plain values."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
COMPOSE = DOCKER / "compose.yaml"
README = DOCKER / "README.md"
DOCKERFILES = sorted(DOCKER.rglob("Dockerfile"))
SCRIPTS = sorted(DOCKER.rglob("*.sh"))
VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?:(?P<otherwise>:[?-])(?P<text>[^}]*))?\}")

Service = dict[str, Any]


@cache
def compose() -> dict[str, Any]:
    content: dict[str, Any] = YAML(typ="safe").load(COMPOSE)
    return content


def services() -> dict[str, Service]:
    found: dict[str, Service] = compose()["services"]
    return found


def mounts(service: Service) -> list[list[str]]:
    """Return the service's volumes, each as [source, target, ...]."""
    return [volume.split(":") for volume in service.get("volumes", [])]


def uses_informix(service: Service) -> bool:
    return "developer-database" in service["image"]


def lint(tool: str, *words: str | Path) -> str:
    """Return what a linter of the test extra has to say; nothing when it is content."""
    program = Path(sys.executable).parent / tool
    if not program.exists():
        pytest.skip(f"{tool} is not installed: it has no wheel for this platform")
    result = subprocess.run([program, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return result.stdout + result.stderr if result.returncode else ""


def interpolated(text: str, given: Mapping[str, str]) -> str:
    """Return a value of the file as compose would give it to a container."""
    return VARIABLE.sub(lambda match: given.get(match["name"], match["text"] or ""), text)
