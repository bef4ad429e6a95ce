"""informix-driver's integration tests, whose answers were pinned on live servers, on the emulator."""

from __future__ import annotations

import pytest

from informix_emulator import EmulatedServer, ListeningServer
from lab.witnesses.informix_driver import Results, results
from lab.witnesses.informix_driver_needs import NEEDS

pytestmark = pytest.mark.witness

LEAST = 400  # of the tests that pass


@pytest.fixture(scope="module", params=["informix-12.10", "informix-14.10", "informix-15"])
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The server is as its tests begin on one: user, password and sysmaster, and no database yet."""
    server = EmulatedServer("informix", {"informix": "in4mix"}, poses_as=request.param)
    with ListeningServer(server) as listening:
        return results(listening.port, tmp_path_factory.mktemp("informix-driver"))


def known(name: str) -> str | None:
    """Return the entry of the table that a test falls under."""
    listed = {entry for entries in NEEDS.values() for entry in entries}
    return next((each for each in (name, name.partition("[")[0]) if each in listed), None)


def test_what_live_servers_answered_is_answered_here(shown: Results) -> None:
    failed = [name for name, outcome in shown.items() if outcome == "failed"]
    assert [name for name in failed if known(name) is None] == []
    assert sum(outcome == "passed" for outcome in shown.values()) >= LEAST


def test_a_test_that_needs_more_than_the_emulator_has_fails_still(shown: Results) -> None:
    failing = {known(name) for name, outcome in shown.items() if outcome == "failed"}
    listed = [entry for entries in NEEDS.values() for entry in entries]
    assert [entry for entry in listed if entry not in failing] == []
    assert len(listed) == len(set(listed))
