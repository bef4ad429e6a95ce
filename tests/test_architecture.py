"""Who may import whom, and which module owns which heavy dependency."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {
    "capture_client": {"capture_client"},
    "checkpoints": {"capture_client", "checkpoints"},
    "connector": {"capture_client", "checkpoints", "connector"},
}
PACKAGES = {
    "informix_capture_client": "capture_client",
    "informix_checkpoints": "checkpoints",
    "informix_cdc": "connector",
}
CLIENT = ROOT / "capture_client/informix_capture_client"
# checkpoints knows positions, errors, failpoints and what may be logged from below, nothing else.
CHECKPOINTS_MAY_IMPORT = {"positions", "errors", "failpoints", "log_events"}
OWNER = {
    "pyspark": "connector/",
    "ctypes": "capture_client/informix_capture_client/odbc_",
    "tenacity": "connector/",
    "click": "connector/",
    "rich": "connector/",
    "prometheus_client": "connector/",
    "fcntl": "checkpoints/",
}
# Bytes and values in, values out: everything but what speaks to a server or runs a thread.
IMPURE_MODULES = {
    "__init__", "cdc_errors", "emulator_transport", "failpoints", "log_events", "odbc_api",
    "odbc_driver", "odbc_errors", "odbc_transport", "read_ahead", "session",
}  # fmt: skip
PURE = {path.stem for path in CLIENT.glob("*.py")} - IMPURE_MODULES
IMPURE = {"os", "socket", "time", "logging", "pathlib", "threading", "subprocess"}

MODULES = sorted(path for folder in MAY_IMPORT for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(path: Path) -> Iterator[list[str]]:
    for name in imported_names(path):
        package, *rest = name.split(".")
        if package in PACKAGES:
            yield [PACKAGES[package], *rest]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_one_way(path: Path) -> None:
    folder = path.relative_to(ROOT).parts[0]
    for parts in own_imports(path):
        if parts[0] in MAY_IMPORT:
            assert parts[0] in MAY_IMPORT[folder], f"{name_of(path)} imports {'.'.join(parts)}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_each_heavy_dependency_has_one_owner(path: Path) -> None:
    for name in imported_names(path):
        owner = OWNER.get(name.partition(".")[0], "")
        assert name_of(path).startswith(owner), f"{name_of(path)} imports {name}"


@pytest.mark.parametrize("path", sorted((ROOT / "checkpoints").rglob("*.py")), ids=name_of)
def test_checkpoints_know_only_positions_and_errors_of_the_client(path: Path) -> None:
    below = {parts[1] for parts in own_imports(path) if parts[0] == "capture_client" and len(parts) > 1}
    assert below <= CHECKPOINTS_MAY_IMPORT


@pytest.mark.parametrize("path", sorted((CLIENT / "emulator").glob("*.py")), ids=name_of)
def test_the_emulator_imports_nothing_else_of_ours(path: Path) -> None:
    for parts in own_imports(path):
        assert parts[:2] == ["capture_client", "emulator"], f"{name_of(path)} imports {'.'.join(parts)}"


@pytest.mark.parametrize("path", sorted(CLIENT.glob("*.py")), ids=name_of)
def test_the_client_does_not_know_the_emulators_inside(path: Path) -> None:
    assert all(parts[:2] != ["capture_client", "emulator"] for parts in own_imports(path))


@pytest.mark.parametrize("name", sorted(PURE))
def test_the_core_is_pure(name: str) -> None:
    path = CLIENT / f"{name}.py"
    assert not {imported.partition(".")[0] for imported in imported_names(path)} & IMPURE


def test_every_package_is_shipped() -> None:
    hatch = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    shipped = {init.parent for folder in MAY_IMPORT for init in (ROOT / folder).glob("*/__init__.py")}
    assert {ROOT / folder for folder in hatch["targets"]["wheel"]["packages"]} == shipped


def test_every_package_says_that_it_is_typed() -> None:
    assert all((init.parent / "py.typed").exists() for init in ROOT.glob("c*/*/__init__.py"))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_module_opens_with_its_purpose(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_no_folder_of_tests_hides_an_installed_package() -> None:
    """They are importable by their names: tests/docker/ would stand before the package docker."""
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    assert not folders & set(packages_distributions())
