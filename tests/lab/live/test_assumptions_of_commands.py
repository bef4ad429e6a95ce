"""What docs/assumptions.md assumes for `release`, `status` and `doctor`; see test_assumptions.py."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import fields

import pytest

from harness.servers.capture_server import CaptureServer
from informix_capture_client.catalog.log_space import read_log_space
from informix_capture_client.catalog.set_up import major_version
from informix_capture_client.dialects import DIALECTS
from informix_capture_client.errors import InformixCdcError, ServerRefused
from informix_capture_client.findings import Unanswered
from informix_capture_client.session.session import set_full_row_logging
from informix_capture_client.sql_names import TableName
from informix_capture_client.statements import SYSTEM_DATABASE
from informix_cdc.commands.row_logging import switch_off
from informix_cdc.doctor.facts import (
    LONG_TRANSACTIONS,
    read_cdc_facts,
    read_server_facts,
    read_table_facts,
)
from informix_cdc.proving.sql_text import ContractTable
from informix_emulator.sql_errors import SqlError

CLOCKS_APART_SECONDS = 5


@pytest.fixture
def table(server: CaptureServer) -> ContractTable:
    return server.create_table({"id": "integer", "b": "varchar(20,0)"})


@pytest.mark.assumption(57)
def test_what_is_not_there_is_answered_with_what_there_is(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.catalog() as catalog:
        assert server.database in catalog.databases()
        wanted = TableName(server.database, "", table.name)
        assert catalog.find_table(wanted).near == (f"{server.owner}.{table.name}",)
        misspelt = TableName(server.database, server.owner, f"{table.name}x")
        assert f"{server.owner}.{table.name}" in catalog.find_table(misspelt).near


@pytest.mark.assumption(32)
def test_row_logging_goes_off_after_a_session_and_not_during_one(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.catalog() as catalog, server.cdc_connection() as transport:
        with server.session(table), pytest.raises(ServerRefused, match="19816"):
            set_full_row_logging(transport, table.full_name, on=False)
        described = catalog.table(TableName(table.database, table.owner, table.name))
        assert catalog.logs_full_rows(described)
        switch_off(transport, catalog, described, DIALECTS[server.dialect])  # as `release` does
        assert not catalog.logs_full_rows(described)


@pytest.mark.assumption(52)
def test_a_table_is_altered_only_while_it_does_not_log_full_rows(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.catalog() as catalog, server.cdc_connection() as transport:
        set_full_row_logging(transport, table.full_name, on=True)
        with pytest.raises((InformixCdcError, SqlError)):  # of a server, or in a rehearsal
            server.run(f"ALTER TABLE {table.name} ADD (c varchar(9,0))")
        described = catalog.table(TableName(table.database, table.owner, table.name))
        assert [column.name for column in described.columns] == ["id", "b"]
        switch_off(transport, catalog, described, DIALECTS[server.dialect])  # as `release` does
    server.run(f"ALTER TABLE {table.name} ADD (c varchar(9,0))")


@pytest.mark.assumption(34)
def test_a_log_that_was_filled_says_when(server: CaptureServer) -> None:
    with server.catalog() as catalog, closing(server.connect(SYSTEM_DATABASE)) as sysmaster:
        current = read_log_space(sysmaster).current
        before = catalog.clock()
        server.switch_log()
        after = catalog.clock()
        (full,) = [file for file in read_log_space(sysmaster).files if file.number == current.number]
    assert full.filled_at is not None
    assert before - CLOCKS_APART_SECONDS <= full.filled_at <= after + CLOCKS_APART_SECONDS
    assert 0 < full.used_bytes <= full.size_bytes


@pytest.mark.assumption(35)
def test_every_question_of_the_doctor_is_answered(server: CaptureServer, table: ContractTable) -> None:
    name = TableName(server.database, server.owner, table.name)
    with closing(server.connect(SYSTEM_DATABASE)) as sysmaster:
        facts = read_server_facts(sysmaster, server.database)
    with closing(server.connect(server.database)) as transport:
        (asked,) = read_table_facts(transport, server.database, [name])
    with server.session(table), server.cdc_connection() as transport:
        cdc = read_cdc_facts(transport, DIALECTS[server.dialect].owner)
    answers = [getattr(part, each.name) for part in (facts, asked, cdc) for each in fields(part)]
    assert [answer for answer in answers if isinstance(answer, Unanswered)] == []
    assert isinstance(cdc.sessions, tuple)
    assert (name,) in [session.tables for session in cdc.sessions]
    assert major_version(str(facts.version)) is not None
    assert isinstance(facts.parameters, Mapping)
    assert set(facts.parameters) == set(LONG_TRANSACTIONS)
