"""Options of the whole test suite, and the live server where there is one."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

from harness.examples import PROFILE, load_profile
from harness.patience import PATIENCE
from harness.spark import settle_environment

if TYPE_CHECKING:
    from session_contract.capture_server import CaptureServer


_SPARK = "spark"
LIVE_SECONDS = 3600  # the first of them waits for an image of some gigabytes


settle_environment()  # before any Spark starts
load_profile()  # before any module of tests is read: @settings takes the rest from the profile


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-benchmarks", action="store_true", help="measure, instead of leaving out")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests that need a live server wait for it; say which tests share a worker of xdist.

    Tests with the session's Spark are one group, and begin first: they take longest. Those that start
    Sparks of their own go one by one to whoever is free. The others go by files.
    """
    for item in items:
        if item.get_closest_marker("informix"):
            item.add_marker(pytest.mark.timeout(LIVE_SECONDS))
        if group := _group_of(item):
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_turn_of)


def _group_of(item: pytest.Item) -> str:
    if _SPARK in getattr(item, "fixturenames", ()):
        return _SPARK
    return "" if item.get_closest_marker("slow") else item.nodeid.partition("::")[0]


def _turn_of(item: pytest.Item) -> int:
    group = _group_of(item)
    return 0 if group == _SPARK else 1 if not group else 2


def pytest_configure(config: pytest.Config) -> None:
    """Scale the limit of time that each test has."""
    if not config.getvalue("timeout"):
        config.option.timeout = PATIENCE * float(config.getini("timeout"))


def pytest_report_header() -> str:
    return f"hypothesis profile {PROFILE}, patience {PATIENCE:g}"


@pytest.fixture(autouse=True)
def _sigterm_as_before() -> Iterator[None]:
    """Take SIGTERM's handler back: a reader that runs in this process installs one of its own."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Let a test that rests on an assumption say, when it fails, which one that speaks against."""
    if (marker := item.get_closest_marker("assumption")) is None:
        return (yield)
    from live.assumptions_page import explained

    with explained(marker.args):
        return (yield)


@pytest.fixture(scope="session")
def live_informix() -> Iterator[CaptureServer]:
    """A live server, named by the environment or started in a container; else a skip says why."""
    from live.servers import live_server

    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("live tests share one server: run them by themselves, pytest -m informix")
    with live_server() as server:
        yield server
