"""What the emulator's SQLI assumes of a live server and our own transport never looks at.

Asked by the least client there is, of a live server and of the emulator as a rehearsal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from emulator.sqli.caller import REFUSED, Caller
from harness.servers.emulated import PASSWORD, emulated_world
from lab.live.server_dsn import DSN_VARIABLE, named_server

KINDS = ["rehearsal", pytest.param("live", marks=pytest.mark.informix)]
LOCALES = ("en_US.819", "en_US.utf8")
Call = Callable[..., Caller]


@pytest.fixture(params=KINDS)
def call(request: pytest.FixtureRequest) -> Iterator[Call]:
    """Return a function that logs in at the server."""
    if request.param == "rehearsal":
        with emulated_world() as world:
            yield lambda **given: Caller(world.port, **{"password": PASSWORD, **given})
        return
    named = named_server(os.environ)
    if named is None:
        pytest.skip(f"{DSN_VARIABLE} names no server")
    known = named.settings
    settings = {"server": known.server, "user": known.user, "password": known.password}
    yield lambda **given: Caller(known.port, host=known.host, **{**settings, **given})


def opened(call: Call) -> tuple[Caller, str]:
    """Open syscdcv1, which has a log; returns the answer too."""
    for locale in LOCALES:
        caller = call(environment={"CLIENT_LOCALE": locale, "DB_LOCALE": locale})
        answer = caller.begin("syscdcv1")
        if not answer.startswith("000da563"):
            return caller, answer
        caller.close()
    pytest.skip(f"syscdcv1 is in another code set than those of {LOCALES}")


@pytest.mark.assumption(58)
def test_the_properties_of_a_database_with_a_log_are_in_the_warnings_of_its_opening(call: Call) -> None:
    caller, answer = opened(call)
    with closing(caller):
        place = answer.index("000f")
        assert int(answer[place + 4 : place + 8], 16) & 0x07 == 0x05


@pytest.mark.assumption(59)
def test_begin_commit_and_rollback_are_told_by_the_events_1_2_and_3(call: Call) -> None:
    caller, _ = opened(call)
    with closing(caller):
        told = [caller.ask(message)[:8] for message in ("0023", "0013", "0023", "0014 0000")]
    assert told == ["00630001", "00630002", "00630001", "00630003"]


@pytest.mark.assumption(60)
def test_a_login_that_names_another_server_is_refused_with_761(call: Call) -> None:
    with closing(call(server="no_such_server")) as caller:
        assert (caller.kind, caller.service_error) == (REFUSED, -761)
