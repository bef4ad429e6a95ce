"""What the contracts of pyproject.toml cannot say: who owns a dependency, and how a room is made."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE_ROOTS = ("connector", "capture_client", "checkpoints")
CLIENT = "capture_client/informix_capture_client/"
CONNECTOR = "connector/informix_cdc/"
# checkpoints knows positions, errors, failpoints and what may be logged from below, nothing else.
CHECKPOINTS_MAY_IMPORT = {
    f"informix_capture_client.{name}" for name in ("positions", "errors", "failpoints", "log_events")
}
OWNERS = {
    "pyspark": (
        f"{CONNECTOR}spark/",
        f"{CONNECTOR}demo/",
        f"{CONNECTOR}monitoring/progress_listener.py",
    ),
    "ctypes": (f"{CLIENT}transport/odbc",),
    "tenacity": ("connector/",),
    "click": (f"{CONNECTOR}commands/", f"{CONNECTOR}terminal/"),
    "rich": (f"{CONNECTOR}commands/", f"{CONNECTOR}terminal/", f"{CONNECTOR}demo/"),
    "prometheus_client": (f"{CONNECTOR}monitoring/",),
    "fcntl": ("checkpoints/",),
}
# Bytes and values in, values out: all of the client but what speaks to a server or runs a thread.
IMPURE_PLACES = (
    f"{CLIENT}transport/",
    f"{CLIENT}session/",
    f"{CLIENT}emulator/",
    f"{CLIENT}failpoints.py",
    f"{CLIENT}log_events.py",
)
IMPURE = {"os", "socket", "time", "logging", "pathlib", "threading", "subprocess"}

MODULES = sorted(path for folder in SOURCE_ROOTS for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_each_heavy_dependency_has_one_owner() -> None:
    strangers = [
        f"{name_of(path)} imports {name}"
        for path in MODULES
        for name in imported_names(path)
        if not name_of(path).startswith(OWNERS.get(name.partition(".")[0], ""))
    ]
    assert not strangers


def test_checkpoints_know_only_positions_and_errors_of_the_client() -> None:
    strangers = [
        f"{name_of(path)} imports {name}"
        for path in MODULES
        if name_of(path).startswith("checkpoints/")
        for name in imported_names(path)
        if name.startswith("informix_capture_client.")
        and ".".join(name.split(".")[:2]) not in CHECKPOINTS_MAY_IMPORT
    ]
    assert not strangers


def test_the_core_is_pure() -> None:
    strangers = [
        f"{name_of(path)} imports {name}"
        for path in MODULES
        if name_of(path).startswith(CLIENT) and not name_of(path).startswith(IMPURE_PLACES)
        for name in imported_names(path)
        if name.partition(".")[0] in IMPURE
    ]
    assert not strangers


def test_every_package_is_shipped_and_says_that_it_is_typed() -> None:
    hatch = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    shipped = {init.parent for folder in SOURCE_ROOTS for init in (ROOT / folder).glob("*/__init__.py")}
    assert {ROOT / folder for folder in hatch["targets"]["wheel"]["packages"]} == shipped
    assert all((package / "py.typed").exists() for package in shipped)


def test_every_module_opens_with_its_purpose() -> None:
    assert not [name_of(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text()))]


def test_no_folder_of_tests_hides_an_installed_package() -> None:
    """They are importable by their names: tests/docker/ would stand before the package docker."""
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    assert not folders & set(packages_distributions())
