"""Every check can be ok, a warning, a failure, or not made, as far as it has these outcomes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.doctor.set_ups import (
    HOUR,
    LOG_SPACE,
    NOW,
    ORDERS,
    SLOW_LOG,
    SOUND,
    examine,
    states,
    table_facts,
    with_cdc,
    with_server,
    with_tables,
)
from informix_capture_client.catalog.set_up import DatabaseLogging, HaRole, check_ha_role
from informix_capture_client.choices import ColumnChoice
from informix_capture_client.dialects import GBASE_8S
from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    InformixCdcError,
    ServerRefused,
    UnsupportedColumn,
)
from informix_capture_client.findings import (
    Finding,
    State,
    Unanswered,
    require,
)
from informix_capture_client.session.open_sessions import OpenSession
from informix_capture_client.shell_commands import command_granting_capture
from informix_capture_client.sql_names import TableName
from informix_cdc.doctor.checks import SetUp
from informix_cdc.doctor.log_checks import shown_bytes, shown_hours
from informix_cdc.server.server_facts import DriverFacts

NO_ANSWER = Unanswered("No SELECT permission for it.", "Grant it.")
UNLOGGED = DatabaseLogging(is_logged=False)
HDR = HaRole(2, "p")
V14 = "IBM Informix Dynamic Server Version 14.10.FC9"
V15 = "IBM Informix Dynamic Server Version 15.0.1.0"
SESSION = OpenSession(7, (1, 1), 5, NOW, 0, (ORDERS,))
TEXT_COLUMN = (("id", "serial"), ("body", "text"))
TAGGED = (("id", "serial"), ("tags", "set"), ("last", "date"))
ITEMS = TableName("stores", "informix", "items")
CUSTOMERS = TableName("stores", "informix", "customers")

CASES: list[tuple[str, SetUp, str, str]] = [
    ("the driver is loaded", SOUND, "driver", "ok"),
    ("sqli needs no driver", replace(SOUND, driver=None), "driver", "ok"),
    ("there is no driver", replace(SOUND, driver=NO_ANSWER), "driver", "failure"),
    ("a driver need not tell its version", replace(SOUND, driver=DriverFacts("x")), "driver", "ok"),
    ("the server answers", SOUND, "connection", "ok"),
    ("the server does not answer", replace(SOUND, server=NO_ANSWER), "connection", "failure"),
    ("a server need not tell its name", with_server(name=NO_ANSWER), "connection", "ok"),
    ("the CDC database is there", SOUND, "syscdcv1", "ok"),
    ("there is no CDC database", with_server(has_cdc_database=False), "syscdcv1", "failure"),
    ("databases are hidden", with_server(has_cdc_database=NO_ANSWER), "syscdcv1", "warning"),
    ("the API is ours", SOUND, "api version", "ok"),
    (
        "the API has a minor version of another number",
        with_cdc(api_version=(1, 0)),
        "api version",
        "ok",
    ),
    ("the API is another", with_cdc(api_version=(2, 0)), "api version", "failure"),
    ("the API has no version", with_cdc(api_version=()), "api version", "failure"),
    ("the API hides its version", with_cdc(api_version=NO_ANSWER), "api version", "warning"),
    ("the database has unbuffered logging", SOUND, "database", "ok"),
    (
        "the database has ANSI logging",
        with_server(database_logging=DatabaseLogging(True, False, True)),
        "database",
        "ok",
    ),
    (
        "the database has buffered logging",
        with_server(database_logging=DatabaseLogging(True, True)),
        "database",
        "warning",
    ),
    (
        "the database is not logged",
        with_server(database_logging=UNLOGGED),
        "database",
        "failure",
    ),
    ("the database is not there", with_server(database_logging=None), "database", "failure"),
    ("the locale is that of the database", SOUND, "locale", "ok"),
    ("the locale is spelt otherwise", replace(SOUND, db_locale="en_us.utf8"), "locale", "ok"),
    ("the locale is another", replace(SOUND, db_locale="en_us.8859-1"), "locale", "failure"),
    ("the territory is another", replace(SOUND, db_locale="en_gb.utf8"), "locale", "failure"),
    ("the code set is not known", with_server(database_locale="en_US.99999"), "locale", "failure"),
    (
        "a code set that is not known may be named",
        replace(with_server(database_locale="en_US.99999"), db_locale="en_us.utf8"),
        "locale",
        "ok",
    ),
    ("syscdcv1 may be of another code set", SOUND, "locale of syscdcv1", "ok"),
    ("syscdcv1 is of its code set", with_server(cdc_locale="zh_CN.utf8"), "locale of syscdcv1", "ok"),
    (
        "syscdcv1 is of another code set on GBase 8s",
        replace(SOUND, dialect=GBASE_8S),
        "locale of syscdcv1",
        "failure",
    ),
    (
        "syscdcv1 is of its code set on GBase 8s",
        replace(with_server(cdc_locale="zh_CN.utf8"), dialect=GBASE_8S),
        "locale of syscdcv1",
        "ok",
    ),
    (
        "neither code set is known, and they are spelt alike",
        replace(with_server(cdc_locale="en_US.99999", database_locale="en_US.99999"), dialect=GBASE_8S),
        "locale of syscdcv1",
        "ok",
    ),
    (
        "syscdcv1 hides its locale",
        with_server(cdc_locale=NO_ANSWER),
        "locale of syscdcv1",
        "warning",
    ),
    (
        "there is no syscdcv1 to have a locale",
        with_server(has_cdc_database=False),
        "locale of syscdcv1",
        "not checked",
    ),
    (
        "the locale of the database is hidden, so that nothing can be said of syscdcv1's",
        with_server(database_locale=NO_ANSWER),
        "locale of syscdcv1",
        "not checked",
    ),
    ("the locale is hidden", with_server(database_locale=NO_ANSWER), "locale", "warning"),
    ("the locale of no database", with_server(database_logging=None), "locale", "not checked"),
    ("the table is there", with_tables(table_facts()), "table", "ok"),
    *[
        (
            f"the table is a {kind or 'name of nothing'}",
            with_tables(table_facts(kind=kind)),
            "table",
            "failure",
        )
        for kind in ("", "view", "synonym", "sequence", "external table", "raw table")
    ],
    ("the table is hidden", with_tables(table_facts(found=NO_ANSWER)), "table", "warning"),
    ("there is a primary key", with_tables(table_facts()), "primary key", "ok"),
    (
        "there is no primary key",
        with_tables(table_facts(has_primary_key=False)),
        "primary key",
        "warning",
    ),
    ("keys are hidden", with_tables(table_facts(has_primary_key=NO_ANSWER)), "primary key", "warning"),
    ("all columns can be captured", with_tables(table_facts()), "columns", "ok"),
    ("a column cannot be captured", with_tables(table_facts(*TEXT_COLUMN)), "columns", "failure"),
    (
        "what cannot be captured is left out",
        with_tables(table_facts(*TEXT_COLUMN), choice=ColumnChoice(unsupported="omit")),
        "columns",
        "ok",
    ),
    ("columns follow a collection", with_tables(table_facts(*TAGGED)), "columns", "failure"),
    (
        "columns follow a collection that is left out",
        with_tables(table_facts(*TAGGED), choice=ColumnChoice(unsupported="omit")),
        "columns",
        "failure",
    ),
    (
        "what follows a collection is left out with it",
        with_tables(table_facts(*TAGGED), choice=ColumnChoice(unsupported="omit-following")),
        "columns",
        "ok",
    ),
    (
        "a column is named that is not there",
        with_tables(table_facts(), choice=ColumnChoice(names=(("nmae",),))),
        "columns",
        "failure",
    ),
    ("rows have one layout", with_tables(table_facts()), "in-place alter", "ok"),
    (
        "an in-place alter is pending",
        with_tables(table_facts(has_pending_alter=True)),
        "in-place alter",
        "warning",
    ),
    (
        "in-place alters are hidden",
        with_tables(table_facts(has_pending_alter=NO_ANSWER)),
        "in-place alter",
        "warning",
    ),
    ("full rows are logged", with_tables(table_facts()), "full row logging", "ok"),
    (
        "a start will switch full row logging on",
        with_tables(table_facts(logs_full_rows=False)),
        "full row logging",
        "warning",
    ),
    (
        "another user may not",
        with_tables(table_facts(logs_full_rows=False), user="app"),
        "full row logging",
        "warning",
    ),
    (
        "nor does a secondary",
        replace(with_server(ha_role=HaRole(4, "p")), tables=(table_facts(logs_full_rows=False),)),
        "full row logging",
        "warning",
    ),
    ("the log reaches back for days", SOUND, "log space", "ok"),
    ("the log is overwritten within hours", with_server(log_space=LOG_SPACE), "log space", "warning"),
    ("nobody knows the time", with_server(log_space=LOG_SPACE, clock=NO_ANSWER), "log space", "ok"),
    ("the log is hidden", with_server(log_space=NO_ANSWER), "log space", "warning"),
    ("parameters are those of onconfig.std", SOUND, "long transactions", "ok"),
    ("parameters are hidden", with_server(parameters=NO_ANSWER), "long transactions", "warning"),
    (
        "parameters are missing",
        with_server(parameters={"LTXHWM": 70}),
        "long transactions",
        "warning",
    ),
    *[
        (
            f"DYNAMIC_LOGS is {adding}, LTXHWM {highest}, LTXEHWM {exclusive}",
            with_server(parameters=dict(DYNAMIC_LOGS=adding, LTXHWM=highest, LTXEHWM=exclusive)),
            "long transactions",
            state,
        )
        for adding, highest, exclusive, state in [
            (0, 50, 60, "ok"),
            (0, 51, 60, "warning"),
            (1, 70, 80, "warning"),
            (2, 100, 100, "warning"),
            (2, 70, 100, "ok"),
            (0, 50, 100, "warning"),
            (2, 70, 60, "warning"),
        ]
    ],
    ("no session is open", SOUND, "open sessions", "ok"),
    ("another capture is open", with_cdc(sessions=(SESSION,)), "open sessions", "ok"),
    (
        "a session has met an error",
        with_cdc(sessions=(replace(SESSION, error_code=-83713),)),
        "open sessions",
        "warning",
    ),
    (
        "a session has another API version",
        with_cdc(sessions=(replace(SESSION, api_version=(1, 0)),)),
        "open sessions",
        "warning",
    ),
    ("sessions are hidden", with_cdc(sessions=NO_ANSWER), "open sessions", "warning"),
    ("the server stands alone", SOUND, "high availability", "ok"),
    ("the server is a primary", with_server(ha_role=HaRole(1, "p")), "high availability", "warning"),
    (
        "a secondary of 14.10",
        with_server(ha_role=HaRole(2, "p"), version=V14),
        "high availability",
        "failure",
    ),
    (
        "a secondary of 15",
        with_server(ha_role=HaRole(4, "p"), version=V15),
        "high availability",
        "warning",
    ),
    (
        "a secondary of an unknown release",
        with_server(ha_role=HaRole(3, "p"), version=NO_ANSWER),
        "high availability",
        "warning",
    ),
    ("the role is hidden", with_server(ha_role=NO_ANSWER), "high availability", "warning"),
]


@pytest.mark.parametrize(
    ("set_up", "check", "state"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_check_ends_as_it_should(set_up: SetUp, check: str, state: str) -> None:
    assert states(set_up, check) == [state]


@pytest.mark.parametrize(
    ("user", "user_type", "runs", "state"),
    [
        ("informix", "", True, "ok"),
        ("app", "D", True, "warning"),
        ("app", "C", True, "warning"),
        ("app", NO_ANSWER, True, "warning"),
        ("app", "D", NO_ANSWER, "failure"),
    ],
)
def test_rights_are_two_answers_the_database_and_the_capture(
    user: str, user_type: str | Unanswered, runs: bool | Unanswered, state: str
) -> None:
    set_up = with_cdc(user=user, user_type=user_type, runs_routines=runs)
    assert states(set_up, "rights") == ["ok", state]


def test_the_grant_that_a_user_needs_is_quoted() -> None:
    (found,) = (
        each
        for each in examine(with_cdc(user="a'; touch x; '", user_type="C"))
        if "not a DBA" in each.found
    )
    assert command_granting_capture("a'; touch x; '") in found.remedy


def test_what_is_wrong_says_what_mends_it_and_what_is_not_wrong_says_nothing() -> None:
    for sentence, set_up, _, _ in CASES:
        for finding in examine(set_up):
            is_wrong = finding.state in (State.WARNING, State.FAILURE)
            assert bool(finding.remedy) == is_wrong, (sentence, finding)


NOTHING = Unanswered("there is no connection", was_asked=False)
CHECKS = [finding.check for finding in examine(with_tables(table_facts()))]


def test_a_server_that_is_reached_without_a_driver_is_not_called_an_emulator() -> None:
    (finding,) = [f for f in examine(replace(SOUND, driver=None)) if f.check == "driver"]
    assert finding.found == "transport=sqli needs no driver."


def test_every_check_is_there_though_the_first_thing_fails() -> None:
    driverless = replace(SOUND, driver=NO_ANSWER, server=NOTHING, tables=NOTHING, cdc=NOTHING)
    driverless = replace(driverless, security=NOTHING)
    findings = examine(driverless)
    assert [finding.check for finding in findings] == CHECKS
    assert [finding.state for finding in findings[1:]] == [State.NOT_CHECKED] * (len(CHECKS) - 1)
    assert {finding.found for finding in findings[1:]} == {"there is no connection"}


def test_without_the_database_the_rest_of_the_server_is_judged() -> None:
    findings = {f.check: f.state for f in examine(replace(SOUND, tables=NO_ANSWER))}
    assert findings["table"] is findings["columns"] is State.NOT_CHECKED
    assert findings["log space"] is findings["syscdcv1"] is State.OK


def test_without_a_right_on_syscdcv1_what_it_holds_is_not_checked() -> None:
    findings = examine(replace(with_tables(table_facts()), cdc=NO_ANSWER))
    not_checked = {f.check for f in findings if f.state is State.NOT_CHECKED}
    assert not_checked == {"api version", "open sessions"}
    assert [f.found for f in findings if f.state is State.FAILURE] == [NO_ANSWER.reason]


def test_of_a_missing_table_nothing_else_is_judged_and_other_tables_are() -> None:
    nothing = Unanswered("there is no such table", was_asked=False)
    missing = table_facts(kind="", has_primary_key=nothing, logs_full_rows=nothing)
    set_up = with_tables(missing, table_facts(name=CUSTOMERS))
    for check in ("primary key", "columns", "full row logging"):
        assert states(set_up, check) == ["not checked", "ok"], check


def test_columns_that_cannot_be_captured_are_told_by_name_table_by_table() -> None:
    other = table_facts(("id", "serial"), ("photo", "byte"), ("Odd Name", "set"), name=CUSTOMERS)
    set_up = with_tables(table_facts(*TEXT_COLUMN), other, table_facts(name=ITEMS))
    found = [f for f in examine(set_up) if f.check == "columns"]
    assert [f.state.value for f in found] == ["failure", "failure", "ok"]
    assert "body (TEXT)" in found[0].found
    assert 'photo (BYTE), "Odd Name" (SET)' in found[1].found
    assert "--unsupported-columns=omit" in found[0].remedy


@pytest.mark.parametrize(
    ("choice", "found", "remedy"),
    [
        (
            ColumnChoice(),
            "has 2 that cannot be captured: tags (SET), last (DATE, after a SET, MULTISET or LIST).",
            "--unsupported-columns=omit-following (option unsupportedColumns) omits them",
        ),
        (
            ColumnChoice(unsupported="omit-following"),
            "is captured with 1 of 3 columns; omitted: tags (SET), last (DATE, after a SET,"
            " MULTISET or LIST).",
            "",
        ),
    ],
)
def test_a_column_behind_a_collection_is_told(choice: ColumnChoice, found: str, remedy: str) -> None:
    set_up = with_tables(table_facts(*TAGGED), choice=choice)
    (finding,) = [f for f in examine(set_up) if f.check == "columns"]
    assert finding.found == found
    assert remedy in finding.remedy


def test_a_column_that_is_left_out_is_told() -> None:
    choice = ColumnChoice(unsupported="omit")
    (finding,) = [
        f
        for f in examine(with_tables(table_facts(*TEXT_COLUMN), choice=choice))
        if f.check == "columns"
    ]
    assert finding.found == "is captured with 1 of 2 columns; omitted: body (TEXT)."


def test_the_command_that_adds_logs_says_how_many_and_how_large() -> None:
    (finding,) = [f for f in examine(with_server(log_space=LOG_SPACE)) if f.check == "log space"]
    # 1 GiB an hour, 10 GiB until it is overwritten: 14 more of 1 GiB make a day
    assert "10 hours" in finding.found
    assert "14 times" in finding.remedy
    assert "onparams -a -d <dbspace> -s 1048576" in finding.remedy


def test_hours_of_log_are_told_at_the_average_and_at_the_fastest() -> None:
    (finding,) = [f for f in examine(with_server(log_space=SLOW_LOG)) if f.check == "log space"]
    assert SLOW_LOG.files[1].filled_at == NOW
    assert SLOW_LOG.files[0].filled_at == NOW - 24 * HOUR
    assert "10 days at the average" in finding.found
    assert "10 days at the highest rate" in finding.found


@pytest.mark.parametrize(
    ("set_up", "kind", "text"),
    [
        (with_server(has_cdc_database=False), AccessRefused, "syscdcv1"),
        (with_server(database_logging=UNLOGGED), BadOption, "not logged"),
        (with_cdc(api_version=(2, 0)), ServerRefused, "version"),
        (with_tables(table_facts(kind="view")), BadOption, "table stores:informix.orders is a view"),
        (with_tables(table_facts(*TEXT_COLUMN)), UnsupportedColumn, "body"),
        (with_server(ha_role=HaRole(2, "p")), ServerRefused, "secondary of p"),
    ],
)
def test_a_failure_is_raised_by_the_source_as_the_error_it_is(
    set_up: SetUp, kind: type[InformixCdcError], text: str
) -> None:
    (finding,) = [f for f in examine(set_up) if f.state is State.FAILURE]
    with pytest.raises(kind, match=text) as raised:
        require(finding)
    assert raised.value.remedy == finding.remedy


def test_a_warning_is_not_raised() -> None:
    require(check_ha_role(HaRole(1, "p"), V14))
    require(Finding("any", State.NOT_CHECKED, "so"))


def test_commands_name_the_owner_and_the_folder_of_the_product() -> None:
    set_up = replace(with_server(has_cdc_database=False), dialect=GBASE_8S)
    (finding,) = [f for f in examine(set_up) if f.check == "syscdcv1"]
    assert "Run as user gbasedbt" in finding.remedy
    assert "cd $GBASEDBTDIR/etc && DB_LOCALE='<locale of the captured database" in finding.remedy


def test_the_locale_that_syscdcv1_must_have_is_named_where_captures_connect_to_it() -> None:
    set_up = replace(with_server(database_locale="zh_CN.57372"), dialect=GBASE_8S)
    (finding,) = [f for f in examine(set_up) if f.check == "locale of syscdcv1"]
    assert "has locale en_US.819, but 'stores' has zh_CN.57372" in finding.found
    assert "DROP DATABASE syscdcv1" in finding.remedy
    assert "DB_LOCALE=zh_CN.57372 CLIENT_LOCALE=zh_CN.57372 dbaccess - syscdcv1.sql" in finding.remedy


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"), (5 * 2**60, "5242880 TiB")],
)
def test_sizes_are_shown_in_a_fitting_unit(count: int, text: str) -> None:
    assert shown_bytes(count) == text


def test_times_are_shown_in_a_fitting_unit() -> None:
    assert [shown_hours(hours) for hours in (0.1, 1, 71.9, 72)] == [
        "6 minutes",
        "60 minutes",
        "71.9 hours",
        "3 days",
    ]


def test_the_acquire_for_the_owner_carries_no_other_user_and_no_password_of_one() -> None:
    of_bob = ("--user", "bob", "--password-file", "/home/bob/secret")
    flags = ("--host", "db1", *of_bob, "--server", "ids1")
    bare = (table_facts(logs_full_rows=False),)
    set_up = replace(SOUND, user="bob", tables=bare, connection_arguments=flags)
    (finding,) = [f for f in examine(set_up) if f.check == "full row logging"]
    as_owner = ("--host", "db1", "--server", "ids1", "--user", "informix")
    assert finding.command == ("acquire", "informix.orders", *as_owner)
