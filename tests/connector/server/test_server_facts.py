"""A question without an answer sinks no other, unless the connection itself is gone."""

from __future__ import annotations

from typing import Never

import pytest

from connector.doctor.set_ups import ORDERS
from harness.servers.scripted_transport import ScriptedTransport
from informix_capture_client import statements
from informix_capture_client.catalog.set_up import HaRole
from informix_capture_client.errors import (
    AccessRefused,
    ConnectionLost,
    DriverAnswer,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.findings import Unanswered
from informix_capture_client.transport.base import Row
from informix_cdc.server.server_facts import (
    Questions,
    read_cdc_facts,
    read_server_facts,
    read_table_facts,
)


def refuse(reason: InformixCdcError) -> Never:
    raise reason


class Selective(ScriptedTransport):
    """Answers the statements of its script, refuses all others, and breaks at one of them."""

    breaks_at = ""

    def rows(self, statement: str, *_: int | str) -> list[Row]:
        if statement == self.breaks_at:
            raise ConnectionLost("the connection broke.", "Connect again.")
        if statement not in self.tables:
            raise AccessRefused("no right on it.", "Grant it.")
        return self.tables[statement]


def test_a_refusal_is_kept_with_its_remedy_and_the_next_question_is_asked() -> None:
    ask = Questions().ask
    assert ask(lambda: refuse(AccessRefused("no.", "Grant it."))) == Unanswered("no.", "Grant it.")
    assert ask(lambda: 5) == 5


def test_after_a_lost_connection_nothing_more_is_asked() -> None:
    ask = Questions().ask
    assert ask(lambda: refuse(ConnectionLost("gone.", "Again."))) == Unanswered("gone.", "Again.")
    assert ask(lambda: 5) == Unanswered("the connection was lost", was_asked=False)


def test_an_answer_that_makes_no_sense_is_none() -> None:
    facts = read_server_facts(Selective(tables={statements.SERVER_CLOCK: [("eleven",)]}), "stores")
    assert isinstance(facts.clock, Unanswered)
    assert facts.clock.was_asked
    assert "eleven" in facts.clock.reason


def test_a_server_that_hides_all_but_its_role_tells_its_role() -> None:
    facts = read_server_facts(Selective(tables={statements.HA_ROLE: [("1", "ids1  ")]}), "stores")
    assert facts.ha_role == HaRole(1, "ids1")
    hidden = Unanswered("no right on it.", "Grant it.")
    assert facts.name == facts.log_space == facts.parameters == facts.database_logging == hidden


def test_a_connection_that_breaks_half_way_leaves_what_was_told() -> None:
    transport = Selective(tables={statements.SERVER_NAME: [("ids1",)]})
    transport.breaks_at = statements.SERVER_CLOCK
    facts = read_server_facts(transport, "stores")
    assert facts.name == "ids1"
    assert facts.clock == Unanswered("the connection broke.", "Connect again.")
    assert facts.ha_role == Unanswered("the connection was lost", was_asked=False)


def test_parameters_are_numbers_in_blanks_and_nothing_else() -> None:
    tables: dict[str, list[Row]] = {statements.PARAMETER: [("70   ",)]}
    facts = read_server_facts(Selective(tables=tables), "stores")
    assert facts.parameters == {"DYNAMIC_LOGS": 70, "LTXHWM": 70, "LTXEHWM": 70}
    tables = {statements.PARAMETER: [("seventy",)]}
    assert isinstance(read_server_facts(Selective(tables=tables), "stores").parameters, Unanswered)


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (("orders", "informix", "100", "7", "01/01/2024", "T", "0"), "table"),
        (("orders", "informix", "100", "7", "01/01/2024", "T", "16"), "raw table"),
        (("orders", "informix", "100", "0", "01/01/2024", "V", "0"), "view"),
        (("orders", "informix", "100", "0", "01/01/2024", "P", "0"), "synonym"),
        (("orders", "informix", "100", "0", "01/01/2024", "E", "0"), "external table"),
        (("orders", "informix", "100", "0", "01/01/2024", "?", "0"), "object of an unknown kind"),
    ],
)
def test_a_name_in_systables_is_of_the_kind_that_its_type_says(row: Row, kind: str) -> None:
    tables: dict[str, list[Row]] = {
        statements.TABLE: [row],
        statements.COLUMNS: [("100", "id", "2", "4", "0", "0")],
        statements.PRIMARY_KEY: [],
        statements.PARTITION_FLAGS: [],
        statements.PARTITION_VERSIONS: [],
    }
    (facts,) = read_table_facts(Selective(tables=tables), "stores", [ORDERS])
    assert not isinstance(facts.found, Unanswered)
    assert facts.found.kind == kind
    has_rows = kind.endswith("table") and kind != "external table"
    assert (facts.found.table is not None) == has_rows
    assert facts.has_primary_key is False if has_rows else isinstance(facts.has_primary_key, Unanswered)


def test_a_user_that_sysusers_does_not_list_has_no_privilege() -> None:
    tables: dict[str, list[Row]] = {statements.CDC_USER_TYPE: [], statements.API_VERSION: [("1", "1")]}
    facts = read_cdc_facts(Selective(tables=tables), "app")
    assert (facts.user_type, facts.api_version) == ("", (1, 1))
    assert isinstance(facts.runs_routines, Unanswered)


@pytest.mark.parametrize(
    ("answer", "may"),
    [
        (ServerRefused("a syntax error.", answer=DriverAnswer("42000", -201)), True),
        (ServerRefused("no text of that name.", answer=DriverAnswer("IX000", -1824)), True),
        (AccessRefused("no routine.", answer=DriverAnswer("42000", -674)), False),
        (AccessRefused("no right.", answer=DriverAnswer("42000", -272)), False),
        (ConnectionLost("gone."), False),
    ],
    ids=lambda value: value.message if isinstance(value, InformixCdcError) else "",
)
def test_only_a_refused_right_means_that_a_user_may_not_run_the_functions(
    answer: InformixCdcError, may: bool
) -> None:
    class Answering(ScriptedTransport):
        def rows(self, statement: str, *_: int | str) -> list[Row]:
            return refuse(answer) if statement == statements.ERROR_TEXT else [("1", "1")]

    runs = read_cdc_facts(Answering(), "app").runs_routines
    assert runs is True if may else isinstance(runs, Unanswered)
