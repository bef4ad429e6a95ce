"""Witnesses run only with --run-witnesses (`make witnesses`): they need Java and Maven Central."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from lab.witnesses.jars import NotHere

FOLDER = "tests/lab/witnesses/"
SECONDS = 900  # the first of them fetches some sixty megabytes


def is_witness(item: pytest.Item) -> bool:
    return item.nodeid.startswith(FOLDER) and item.get_closest_marker("witness") is not None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mine = [item for item in items if is_witness(item)]
    for item in mine:
        item.add_marker(pytest.mark.timeout(SECONDS))
    if not config.getoption("--run-witnesses"):
        config.hook.pytest_deselected(items=mine)
        items[:] = [item for item in items if not is_witness(item)]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Generator[None, Any, Any]:
    """Let a witness that cannot be had here be skipped with the reason."""
    try:
        return (yield)
    except NotHere as reason:
        pytest.skip(str(reason))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, Any, Any]:
    """Likewise where the test itself asks for it."""
    try:
        return (yield)
    except NotHere as reason:
        pytest.skip(str(reason))
