"""Options of the whole test suite, and the live server where there is one."""

from __future__ import annotations

import gc
import itertools
import os
import signal
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

from harness.runs.examples import PROFILE, load_profile
from harness.runs.patience import PATIENCE
from harness.runs.reporting import Reporting
from harness.runs.short_waits import shorten_waits
from harness.runs.sources import show_sources_to_children
from harness.runs.tiers import mark_tiers
from harness.runs.workers import Scheduling, require_in_scope, turn_of
from harness.spark.starting import settle_environment
from informix_cdc.server import connections

if TYPE_CHECKING:
    from xdist.remote import Producer

    from harness.servers.capture_server import CaptureServer


_tests = itertools.count()
LIVE_SECONDS = 3600  # the first of them waits for an image of some gigabytes


gc.disable()  # until all tests are found: there is no garbage, and a million objects are looked through
show_sources_to_children()
settle_environment()  # before any Spark starts
shorten_waits()
load_profile()  # before any module of tests is read: @settings takes the rest from the profile


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-benchmarks", action="store_true", help="measure, instead of leaving out")
    parser.addoption("--times", action="store_true", help="print all times, and keep them")
    parser.addoption("--run-witnesses", action="store_true", help="ask other people's clients too")


@pytest.hookimpl(tryfirst=True)  # before -m is asked
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let tests that need a live server wait for it; those that take longest come first."""
    mark_tiers(items, is_whole_suite=config.args == config.getini("testpaths"))
    for item in items:
        require_in_scope(item)
        if item.get_closest_marker("informix"):
            item.add_marker(pytest.mark.timeout(LIVE_SECONDS))
    items.sort(key=lambda item: turn_of(item.nodeid))


def pytest_collection_finish() -> None:
    """Collect garbage from here on, but do not look for it among what was found."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Collect garbage in the process that hands tests to workers: it finds none itself."""
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Hand tests to workers as `harness.runs.workers` says, whatever --dist says."""
    return Scheduling(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Scale the limit of time that each test has, and measure."""
    config.pluginmanager.register(Reporting())
    if not config.getvalue("timeout"):
        config.option.timeout = PATIENCE * float(config.getini("timeout"))


def pytest_report_header() -> str:
    return f"hypothesis profile {PROFILE}, patience {PATIENCE:g}"


@pytest.fixture(autouse=True)
def _state_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep out of it what the product remembers: in the user's state folder, and of a server's locales.

    The emulator of a former test may have had the same port.
    """
    connections._locales.clear()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / f"state-{next(_tests)}"))


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
    from lab.live.assumptions_page import explained

    with explained(marker.args):
        return (yield)


@pytest.fixture(scope="session")
def live_informix() -> Iterator[CaptureServer]:
    """A live server, named by the environment or started in a container; else a skip says why."""
    from lab.live.servers import live_server

    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("live tests share one server: run them by themselves, pytest -m informix")
    with live_server() as server:
        yield server


@pytest.fixture(scope="session")
def live_informix_over_sqli() -> Iterator[CaptureServer]:
    """The same over Informix's own protocol, for which no driver is needed."""
    from informix_capture_client.transport import SqliTransport
    from lab.live.servers import live_server

    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("live tests share one server: run them by themselves, pytest -m informix")
    with live_server(SqliTransport) as server:
        yield server


@pytest.fixture
def clean_live_informix(live_informix: CaptureServer) -> Iterator[CaptureServer]:
    """The live server; the tables that a test makes are dropped after it."""
    yield live_informix
    live_informix.drop_tables()


@pytest.fixture
def clean_live_informix_over_sqli(live_informix_over_sqli: CaptureServer) -> Iterator[CaptureServer]:
    """The live server over SQLI; the tables that a test makes are dropped after it."""
    yield live_informix_over_sqli
    live_informix_over_sqli.drop_tables()
