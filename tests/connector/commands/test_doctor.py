"""`informix-cdc doctor` against the emulator: the report of a sound server and of spoilt ones."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from connector.commands.conftest import connection_arguments
from informix_capture_client.session.session import CapturedTable, CaptureSession, SessionSettings
from informix_capture_client.statements import CDC_DATABASE
from informix_cdc.commands.cli import main
from informix_cdc.doctor import diagnosis as operation
from informix_cdc.doctor.large_objects import OBJECTS
from informix_cdc.doctor.snapshots import CHECKS_OF_SNAPSHOTS
from informix_cdc.options import PASSWORD_VARIABLE, SourceOptions
from informix_cdc.server.connections import open_capture_connection
from informix_emulator import EmulatedServer, ListeningServer
from informix_emulator.shop import (
    ORDERS,
    PASSWORD,
    TABLE_NAMES,
    demo_server,
)
from odbc_driver.build import build_drivers

CHECKS = [
    "driver", "encryption", "password",
    "connection", "syscdcv1", "api version", "rights", "database", "locale",
    "locale of syscdcv1", "table", "primary key", "columns", "in-place alter", "full row logging",
    "log space", "long transactions", "open sessions", "high availability",
]  # fmt: skip
OF_THIS_HOST = [
    "spark", "java", "python of workers", "reader in the jvm", "spool", "flight address",
    "metrics address",
]  # fmt: skip
UTF8_AND_LATIN = ("en_US.57372", "en_US.819")
HOUR = 3600
Findings = list[dict[str, Any]]

MAKES_CDC_DATABASE = "cd $INFORMIXDIR/etc && dbaccess - syscdcv1.sql"


@pytest.fixture(autouse=True)
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this installation have a jar, which tests compile elsewhere."""
    path = tmp_path / "informix-cdc.jar"
    path.touch()
    monkeypatch.setattr("informix_cdc.host.jar.JAR", path)


@pytest.fixture
def shop(shop: ListeningServer) -> ListeningServer:
    """The demo's shop, with a table that a capture finds as it needs it."""
    shop.server.set_full_row_logging(ORDERS, on=True)
    return shop


def run(*arguments: str, password: str | None = PASSWORD, columns: int = 120) -> Result:
    environment = {
        PASSWORD_VARIABLE: password,
        "COLUMNS": str(columns),
        "PYSPARK_PYTHON": sys.executable,
        "INFORMIX_CDC_MAX_SPOOL_BYTES": "1m",  # whatever is free here
    }
    result = CliRunner().invoke(main, ["doctor", *arguments], env=environment)
    assert PASSWORD not in result.output
    return result


def doctor(
    listening: ListeningServer, *arguments: str, tables: str = TABLE_NAMES[1], **settings: Any
) -> Result:
    return run(*connection_arguments(listening), f"--table={tables}", *arguments, **settings)


def findings(result: Result) -> Findings:
    found: Findings = json.loads(result.stdout)["findings"]
    return found


def of(found: Findings, check: str) -> dict[str, Any]:
    (one,) = [each for each in found if each["check"] == check]
    return one


@contextmanager
def spoilt(**attributes: Any) -> Iterator[ListeningServer]:
    server = demo_server()
    for name, value in attributes.items():
        setattr(server, name, value)
    server.set_full_row_logging(ORDERS, on=True)
    with ListeningServer(server) as listening:
        yield listening


def test_a_sound_server_ends_with_0_and_every_check(shop: ListeningServer) -> None:
    result = doctor(shop, "--json")
    assert result.exit_code == 0
    assert list(dict.fromkeys(each["check"] for each in findings(result))) == CHECKS + OF_THIS_HOST
    assert {each["state"] for each in findings(result)} == {"ok"}


def test_json_is_one_object_of_a_fixed_shape(shop: ListeningServer) -> None:
    report = json.loads(doctor(shop, "--json").stdout)
    assert list(report) == ["ok", "counts", "findings"]
    assert report["ok"] is True
    assert list(report["counts"]) == ["ok", "warning", "failure", "not checked"]
    assert sum(report["counts"].values()) == len(report["findings"])
    for each in report["findings"]:
        assert list(each) == ["check", "state", "table", "found", "remedy"]


def test_a_failure_ends_with_1_and_the_rest_is_told_all_the_same(shop: ListeningServer) -> None:
    result = doctor(shop, "--json", tables="informix.orders,informix.odrers")
    assert result.exit_code == 1
    found = findings(result)
    assert [each["state"] for each in found if each["check"] == "table"] == ["ok", "failure"]
    assert [each["state"] for each in found if each["check"] == "primary key"] == ["ok", "not checked"]
    assert of(found, "log space")["state"] == "ok"
    assert json.loads(result.stdout)["ok"] is False


def test_a_mistake_in_an_option_ends_with_2_and_no_report(shop: ListeningServer) -> None:
    result = doctor(shop, "--json", tables="informix.orders,informix.orders")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "IFXCDC-0003" in result.stderr


def test_a_table_without_its_owner_is_answered_with_the_tables_of_that_name(
    shop: ListeningServer,
) -> None:
    result = doctor(shop, "--json", tables="orders")
    assert result.exit_code == 1
    (failed,) = [each for each in findings(result) if each["state"] == "failure"]
    assert failed["check"] == "table"
    assert failed["remedy"] == "Correct option table: the server has informix.orders."


def test_a_misspelt_table_is_answered_with_the_nearest(shop: ListeningServer) -> None:
    result = doctor(shop, "--json", tables="informix.ordres")
    (failed,) = [each for each in findings(result) if each["state"] == "failure"]
    assert failed["remedy"] == "Correct option table: the server has informix.orders."


def test_a_server_that_is_not_there_fails_once_and_nothing_else_is_checked() -> None:
    arguments = ["--host=127.0.0.1", "--port=1", "--server=informix", "--database=stores"]
    result = run(*arguments, "--transport=sqli", "--table=informix.orders", "--json")
    assert result.exit_code == 1
    found = findings(result)
    assert [each["check"] for each in found if each["state"] == "failure"] == ["connection"]
    not_checked = [each["check"] for each in found if each["state"] == "not checked"]
    assert list(dict.fromkeys(not_checked)) == CHECKS[CHECKS.index("connection") + 1 :]


def test_a_wrong_password_is_a_finding_that_does_not_show_it(
    shop: ListeningServer, tmp_path: Path
) -> None:
    secret = tmp_path / "password"
    secret.write_text("wr0ng-and-secret\n")
    for form in (["--json"], []):
        result = doctor(shop, *form, f"--password-file={secret}", password=None)
        assert result.exit_code == 1
        assert "refused user informix" in " ".join(result.output.split())
        assert "wr0ng" not in result.output + str(result.exception)


def test_a_user_without_rights_on_syscdcv1_is_told_so_and_the_rest_is_checked() -> None:
    with spoilt(users={"app": "in4mix", "informix": "x"}) as listening:
        found = findings(doctor(listening, "--user=app", "--json"))
    rights = [each for each in found if each["check"] == "rights"]
    assert [each["state"] for each in rights] == ["ok", "failure"]
    assert "-674" in rights[1]["found"]
    assert "GRANT DBA TO app' | dbaccess syscdcv1" in rights[1]["remedy"]
    assert of(found, "api version")["state"] == of(found, "open sessions")["state"] == "warning"
    assert of(found, "table")["state"] == "ok"


def test_who_may_not_see_the_sessions_is_told_the_grant_and_the_rest_is_checked() -> None:
    """As bootcdc.sql leaves it: a DBA of syscdcv1 captures, and may not read syscdcsess."""
    with spoilt(users={"app": "in4mix"}, cdc_users=frozenset({"app"})) as listening:
        found = findings(doctor(listening, "--user=app", "--json"))
    assert of(found, "open sessions")["state"] == "warning"
    assert "cannot be listed" in of(found, "open sessions")["found"]
    assert "GRANT SELECT ON syscdcsess" in of(found, "open sessions")["remedy"]
    assert of(found, "api version")["state"] == "ok"


@pytest.mark.only_in_all
def test_a_dba_of_syscdcv1_is_a_warning_of_what_is_reported_only() -> None:
    users = {"app": "in4mix"}
    with spoilt(users=users, cdc_users=frozenset({"app"})) as listening:
        dba = findings(doctor(listening, "--user=app", "--json"))
    with spoilt(users=users, cdc_users=frozenset({"app"}), cdc_user_type="C") as listening:
        other = findings(doctor(listening, "--user=app", "--json"))
    assert [each["state"] for each in dba if each["check"] == "rights"] == ["ok", "warning"]
    (grant,) = [each["remedy"] for each in other if "not a DBA" in each["found"]]
    assert "GRANT DBA TO app" in grant


def without_cdc_database(server: EmulatedServer) -> None:
    del server.databases[CDC_DATABASE]


def with_other_logging(server: EmulatedServer, **logging: bool) -> None:
    for name, value in logging.items():
        setattr(server.databases["stores"], name, value)


@pytest.mark.parametrize(
    ("attributes", "check", "state", "remedy"),
    [
        ({"ha_role": (2, "main")}, "high availability", "failure", "primary"),
        ({"ha_role": (1, "main")}, "high availability", "warning", "new checkpoint"),
        (
            {"ha_role": (4, "main"), "version": "Server Version 15.0.1.0"},
            "high availability",
            "warning",
            "TEMPTAB_NOLOG=1",
        ),
        (
            {"configuration": {"DYNAMIC_LOGS": "0", "LTXHWM": "70", "LTXEHWM": "80"}},
            "long transactions",
            "warning",
            "onmode -wf DYNAMIC_LOGS=2",
        ),
        ({"hidden_tables": {"sysconfig"}}, "long transactions", "warning", "privilege"),
        ({"hidden_tables": {"syslogs"}}, "log space", "warning", "privilege"),
        ({"hidden_tables": {"sysha_type"}}, "high availability", "warning", "privilege"),
        ({"hidden_tables": {"syscdcsess"}}, "open sessions", "warning", "GRANT SELECT"),
        ({"hidden_tables": {"sysconstraints"}}, "primary key", "warning", "privilege"),
    ],
)
def test_what_is_wrong_with_a_server_is_one_finding_with_its_remedy(
    attributes: dict[str, Any], check: str, state: str, remedy: str
) -> None:
    with spoilt(**attributes) as listening:
        found = findings(doctor(listening, "--json"))
    assert of(found, check)["state"] == state
    assert remedy in of(found, check)["remedy"]
    assert {each["check"] for each in found if each["state"] != "ok"} == {check}


def test_where_the_locale_cannot_be_asked_for_naming_it_lets_all_be_checked() -> None:
    with spoilt(hidden_tables={"sysdbslocale"}) as listening:
        unnamed = findings(doctor(listening, "--json"))
        named = findings(doctor(listening, "--json", "--db-locale=en_US.utf8"))
    rights = [each["remedy"] for each in unnamed if each["check"] == "rights"]
    assert "option dbLocale" in rights[0]
    assert of(named, "locale")["state"] == "warning"
    assert "privilege" in of(named, "locale")["remedy"]
    assert {each["check"] for each in named if each["state"] != "ok"} == {
        "locale",
        "locale of syscdcv1",
    }


@pytest.mark.parametrize(
    ("logging", "state", "remedy"),
    [
        ({"is_buffered": True}, "warning", "ontape -U stores"),
        (
            {"is_logged": False},
            "failure",
            "ondblog unbuf stores. Logging starts with the next level-0",
        ),
        ({"is_ansi": True}, "ok", None),
    ],
)
def test_the_logging_of_the_database_is_judged(
    shop: ListeningServer, logging: dict[str, bool], state: str, remedy: str | None
) -> None:
    with_other_logging(shop.server, **logging)
    found = of(findings(doctor(shop, "--json")), "database")
    assert found["state"] == state
    assert (remedy or "") in (found["remedy"] or "")
    assert bool(remedy) == bool(found["remedy"])


def test_a_backup_of_the_whole_instance_is_called_one(shop: ListeningServer) -> None:
    with_other_logging(shop.server, is_logged=False)
    remedy = of(findings(doctor(shop, "--json")), "database")["remedy"] or ""
    assert "ontape -s -L 0, which archives the whole instance to the TAPEDEV of ONCONFIG" in remedy


def test_without_the_cdc_database_the_script_that_makes_it_is_named(shop: ListeningServer) -> None:
    without_cdc_database(shop.server)
    found = findings(doctor(shop, "--json"))
    assert of(found, "syscdcv1")["remedy"].endswith(MAKES_CDC_DATABASE)
    assert of(found, "api version")["found"] == "database syscdcv1 does not exist"


def test_a_database_that_is_not_there_leaves_the_server_judged(shop: ListeningServer) -> None:
    arguments = [each for each in connection_arguments(shop) if "database" not in each]
    found = findings(run(*arguments, "--database=stroes", "--table=informix.orders", "--json"))
    assert of(found, "database")["state"] == "failure"
    assert of(found, "table")["state"] == "not checked"
    assert of(found, "log space")["state"] == of(found, "syscdcv1")["state"] == "ok"


@pytest.mark.parametrize("kind", ["view", "raw", "synonym"])
def test_what_is_no_logged_table_is_told_by_its_kind(shop: ListeningServer, kind: str) -> None:
    shop.server.create_table("stores:informix.odd", "id integer", kind=kind)
    found = of(findings(doctor(shop, "--json", tables="informix.odd")), "table")
    assert found["state"] == "failure"
    assert kind in found["found"].lower()


def test_columns_that_cannot_be_captured_fail_until_they_are_left_out(shop: ListeningServer) -> None:
    shop.server.create_table("stores:informix.notes", "id serial primary key, body text")
    refused = doctor(shop, "--json", tables="informix.notes")
    assert refused.exit_code == 1
    assert "body (TEXT)" in of(findings(refused), "columns")["found"]
    left_out = doctor(shop, "--json", "--unsupported-columns=omit", tables="informix.notes")
    assert left_out.exit_code == 0
    assert "omitted: body (TEXT)" in of(findings(left_out), "columns")["found"]


def test_a_log_that_is_overwritten_within_a_day_warns_with_hours_and_a_command() -> None:
    now = 1_700_000_000
    server = demo_server()  # 8 logs of 2 MiB
    server.clock = lambda: now
    for _ in range(3):
        server.switch_log()
        now += HOUR
    for file in server.log.files[:-1]:
        file.used_pages = server.log.pages
    with ListeningServer(server) as listening:
        found = of(findings(doctor(listening, "--json")), "log space")
    # filled one hour apart, 7 more are written before log 4 is overwritten, plus what is left of it
    assert found["state"] == "warning"
    assert "hours at the average" in found["found"]
    assert "8 times for 24 hours: onparams -a -d <dbspace> -s " in found["remedy"]


def test_the_doctor_warns_of_what_a_start_will_change_for_good(shop: ListeningServer) -> None:
    shop.server.set_full_row_logging(ORDERS, on=False)
    found = of(findings(doctor(shop, "--json")), "full row logging")
    assert found["state"] == "warning"
    assert (
        "switches that on permanently. From then on the server refuses ALTER TABLE." in found["found"]
    )
    assert "informix-cdc release informix.orders --host 127.0.0.1" in found["remedy"]
    assert found["remedy"].endswith("--checkpoint PLACE")


def test_sessions_of_others_are_told_with_their_tables(shop: ListeningServer) -> None:
    shop.server.set_full_row_logging(ORDERS, on=True)
    options = SourceOptions.parse(
        {
            "host": "127.0.0.1",
            "port": str(shop.port),
            "server": "informix",
            "database": "stores",
            "table": "informix.orders",
            "transport": "sqli",
            "password": PASSWORD,
        }
    )
    with closing(open_capture_connection(options.connection, "en_US.utf8")) as connection:
        session = CaptureSession(connection, SessionSettings(server="informix"))
        session.start_capture(CapturedTable(ORDERS, ("order_num",), 0))
        found = of(findings(doctor(shop, "--json")), "open sessions")
    assert found["state"] == "ok"
    assert f"session {session.session_id} captures {ORDERS}" in found["found"]


def test_the_doctor_changes_nothing(shop: ListeningServer) -> None:
    shop.server.set_full_row_logging(ORDERS, on=False)
    doctor(shop, tables=",".join(TABLE_NAMES))
    assert not shop.server.table(ORDERS).full_row_logging
    assert shop.server.sessions() == {}


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.only_in_all
def test_many_and_wide_tables_stay_readable(shop: ListeningServer, columns: int) -> None:
    wide = ", ".join(f"a_rather_long_name_of_column_{n} text" for n in range(300))
    names = [f"informix.t{n}" for n in range(60)]
    for name in names:
        shop.server.create_table(f"stores:{name}", "id integer")
    shop.server.create_table("stores:informix.wide", f"id integer, {wide}")
    result = doctor(shop, tables=",".join([*names, "informix.wide"]), columns=columns)
    table = result.stdout.partition("How to fix it:")[0].splitlines()
    assert all(len(line) <= columns for line in table)
    assert len(table) < 70
    assert "informix.t0, informix.t1, informix.t2 and 58 more: has no primary key" in " ".join(
        result.stdout.split()
    )
    assert "--json shows all" in " ".join(result.stdout.split())


def test_failures_come_first_in_the_summary_and_what_was_not_checked_is_one_line(
    shop: ListeningServer,
) -> None:
    shop.server.databases["stores"].is_buffered = True
    text = doctor(shop, tables="informix.orders,informix.odrers").stdout
    _, _, summary = text.partition("How to fix it:\n")
    remedies = [line for line in summary.splitlines() if line.startswith("  ")]
    assert [line.split(":")[0].strip() for line in remedies][:2] == ["table", "database"]
    (line,) = [line for line in text.splitlines() if line.startswith("Not checked: ")]
    checks = "primary key, columns, in-place alter, full row logging of informix.odrers"
    assert line == f"Not checked: {checks} (the table does not exist)."
    assert "\nnot checked" not in text


def test_each_check_is_printed_before_the_next_question_is_asked(
    shop: ListeningServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed: dict[str, str] = {}

    def asks(what: str, ask: Any) -> Any:
        def note(*arguments: Any) -> Any:
            printed[what] = capsys.readouterr().out
            return ask(*arguments)

        return note

    for name in ("read_server_facts", "read_cdc_facts", "read_table_facts"):
        monkeypatch.setattr(operation, name, asks(name, getattr(operation, name)))
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    with pytest.raises(SystemExit):
        main(["doctor", *connection_arguments(shop), "--table=informix.orders"])
    assert "ok       encryption " in printed["read_server_facts"]  # one that is silent takes its time
    assert "ok       connection " in printed["read_cdc_facts"]
    assert "api version" not in printed["read_cdc_facts"]
    assert "ok       api version " in printed["read_table_facts"]
    assert "primary key" not in printed["read_table_facts"]


def test_remedies_are_printed_unbroken_to_be_copied(shop: ListeningServer) -> None:
    without_cdc_database(shop.server)
    lines = doctor(shop, columns=80).stdout.splitlines()
    mends = lines[lines.index("How to fix it:") + 1]
    assert mends.startswith("  syscdcv1: Run as user informix")
    assert mends.endswith(MAKES_CDC_DATABASE)


def test_the_summary_counts(shop: ListeningServer) -> None:
    without_cdc_database(shop.server)
    assert doctor(shop).stdout.splitlines()[-1] == "1 failure, 4 not checked, 22 ok."


def test_help_tells_the_exit_codes() -> None:
    text = " ".join(run("--help").output.split())
    assert "Exit code 0: no failure; 1: at least one failure; 2: an option is invalid." in text


# the captured database, syscdcv1 as its script was run, and what a connection without a locale is in
LOCALES = list(itertools.product(UTF8_AND_LATIN, UTF8_AND_LATIN, ["en_US.819", None]))


@pytest.mark.parametrize(("locale", "cdc_locale", "unset"), LOCALES)
def test_a_server_is_sound_in_whatever_code_sets_its_databases_are(
    locale: str, cdc_locale: str, unset: str | None
) -> None:
    server = EmulatedServer(cdc_locale=cdc_locale, unset_locale=unset)
    server.create_database("shop", locale=locale)
    server.create_table("shop:informix.t", "id serial primary key")
    server.set_full_row_logging("shop:informix.t", on=True)
    with ListeningServer(server) as listening:
        arguments = [each for each in connection_arguments(listening) if "database" not in each]
        result = run(*arguments, "--database=shop", "--table=informix.t", "--json")
    found = findings(result)
    assert {each["state"] for each in found} == {"ok"}
    assert of(found, "locale")["found"].startswith(f"database 'shop' has locale {locale}")
    assert f"database syscdcv1 has locale {cdc_locale}" in of(found, "locale of syscdcv1")["found"]


def test_a_locale_that_is_not_the_databases_is_one_failure_and_the_rest_is_checked(
    shop: ListeningServer,
) -> None:
    found = findings(doctor(shop, "--json", "--db-locale=en_US.8859-1"))
    assert [each["check"] for each in found if each["state"] != "ok"] == ["locale"]


@pytest.fixture
def over_odbc(shop: ListeningServer) -> Iterator[list[str]]:
    """Say that the connection is to go through the C test driver."""
    before = os.environ.pop("INFORMIXDIR", None)
    arguments = [each for each in connection_arguments(shop) if "transport" not in each]
    yield [*arguments, "--table=informix.orders", "--json"]
    os.environ.pop("INFORMIXDIR", None)
    if before is not None:
        os.environ["INFORMIXDIR"] = before


@pytest.mark.parametrize("kind", ["narrow", "wide", "split"])
def test_over_odbc_the_driver_and_its_version_are_named(over_odbc: list[str], kind: str) -> None:
    library = getattr(build_drivers(), kind)
    result = run(*over_odbc, f"--driver={library}")
    assert result.exit_code == 0, result.output
    expected = f"{library} is loaded. It is libthcli.so, version 04.50.0000."
    assert of(findings(result), "driver")["found"] == expected


def test_without_a_driver_the_way_to_one_is_told_and_nothing_else_is_checked(
    over_odbc: list[str],
) -> None:
    found = findings(run(*over_odbc, "--transport=odbc"))
    assert found[0]["state"] == "failure"
    assert "INFORMIXDIR is not set" in found[0]["found"]
    assert "Install the Informix Client SDK" in found[0]["remedy"]
    at_home = {"driver", "encryption", "password"}  # what needs no server
    of_server = found[: -len(OF_THIS_HOST)]
    assert {each["state"] for each in of_server if each["check"] not in at_home} == {"not checked"}


def test_a_library_that_is_no_driver_is_told(over_odbc: list[str], tmp_path: Path) -> None:
    library = tmp_path / "libthcli.so"
    library.write_text("not a library")
    found = findings(run(*over_odbc, f"--driver={library}"))
    assert found[0]["state"] == "failure"
    assert "cannot be loaded" in found[0]["found"]


def test_the_page_of_the_doctor_lists_every_check_in_order() -> None:
    page = (Path(__file__).parents[3] / "docs" / "doctor.md").read_text()
    assert [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")] == [
        *CHECKS,
        OBJECTS,
        *CHECKS_OF_SNAPSHOTS,
        *OF_THIS_HOST,
    ]
