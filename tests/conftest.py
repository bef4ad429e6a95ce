"""Options of the whole test suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-benchmarks", action="store_true", help="measure, instead of leaving out")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that need Spark in one process: they share its session."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
