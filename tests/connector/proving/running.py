"""An emulated server, and runs of proofs against it: what was found, and what is left on the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from harness.runs.patience import patiently
from informix_capture_client.dialects import DIALECTS
from informix_cdc.options.source import SourceOptions
from informix_cdc.proving import Leftovers, Outcome, run_proofs, scratch, scratch_prover
from informix_cdc.proving.all_proofs import PROOFS
from informix_cdc.proving.large_object_steps import FILES
from informix_cdc.proving.proofs import ServerProof
from informix_cdc.proving.prover import Pace
from informix_emulator import EmulatedServer, ListeningServer

DATABASE, PASSWORD = "scratch_of_a_test", "s3cret-of-the-dba"
SERVER_DATABASES = {"syscdcv1", "sysmaster"}
QUICK = Pace(timeouts=20, seconds=patiently(60))
Hook = Callable[[EmulatedServer], object]


def quick(patch: pytest.MonkeyPatch) -> None:
    """Let runs wait as long as an emulator needs whose seconds are short.

    A table is captured until the server's thread of the closed session has ended: four attempts without
    a pause do not wait for a thread that the machine has no time for.
    """
    patch.setattr(scratch, "PACE", QUICK)
    patch.setattr("informix_cdc.proving.scratch_database.RELEASE_PAUSE_SECONDS", patiently(0.02))


@contextmanager
def served(
    poses_as: str = "informix", **arguments: Any
) -> Iterator[tuple[EmulatedServer, SourceOptions]]:
    """Serve a server without databases, as live servers are; yield the options of a run too."""
    dialect = DIALECTS["gbase8s" if poses_as == "gbase8s" else "informix"]
    users = {dialect.owner: PASSWORD}
    shape = {"timeout_seconds": 0.02, "log_pages": 256, "log_count": 6, "first_log": 7}
    server = EmulatedServer("ids_of_a_test", users, poses_as=poses_as, **{**shape, **arguments})
    server.table_age_seconds = 0.0
    server.sbspace.files[FILES[0]] = bytes(range(256)) * 12
    with ListeningServer(server) as listening:
        yield server, options_for(listening, dialect.name)


def options_for(listening: ListeningServer, dialect: str = "informix") -> SourceOptions:
    given = {
        "host": "127.0.0.1",
        "port": str(listening.port),
        "server": listening.server.name,
        "database": DATABASE,
        "table": "informix.systables",
        "transport": "sqli",
        "dialect": dialect,
        "password": PASSWORD,
    }
    return SourceOptions.parse(given, is_stream=False)


def named(*names: str) -> list[ServerProof]:
    """Return proofs by name, in their order."""
    found = [each for each in PROOFS if each.name in names]
    assert len(found) == len(names), names
    return found


def outcomes_of(
    options: SourceOptions,
    proofs: Sequence[ServerProof],
    at_end: Callable[[], object] = lambda: None,
) -> list[Outcome]:
    """Run some proofs in a scratch database; `at_end` is called before everything is taken back."""
    left = Leftovers()
    with scratch_prover(options, left) as prover:
        found = list(run_proofs(prover, proofs))
        at_end()
    assert not left, str(left)
    return found


def left_on(server: EmulatedServer) -> list[object]:
    """Return what a run has left on a server that had no database."""
    databases = set(server.databases) - SERVER_DATABASES
    tables = [table for one in server.databases.values() for table in one.tables]
    return [*databases, *tables, *server.sessions(), *server.open_transactions]
