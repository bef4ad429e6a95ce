"""The files of docker/ as values, and a way to run a command on them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from subprocess import CompletedProcess
from subprocess import run as run_process
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?P<default>:-)?(?::\?)?(?P<text>[^}]*)\}")


def settings(path: str) -> Any:
    """Return the content of a YAML or JSON file."""
    return YAML(typ="safe").load(DOCKER / path)


COMPOSE: dict[str, Any] = settings("compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def every(key: str) -> list[Any]:
    """Return all items that services have under a key: ports, volumes, secrets."""
    return [item for service in SERVICES.values() for item in service.get(key, [])]


def run(*command: str | Path, **environment: str) -> CompletedProcess[str]:
    """Run a command in the repository, with next to nothing else in its environment."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    return run_process(command, cwd=ROOT, env=kept | environment, capture_output=True, text=True)
