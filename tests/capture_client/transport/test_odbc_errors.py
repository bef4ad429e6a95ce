"""The table that turns a driver's diagnostics into our exceptions; no driver, no compiler."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    ConnectionLost,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.shell_commands import command_granting_capture
from informix_capture_client.transport.base import ConnectionSettings
from informix_capture_client.transport.errors import (
    Diagnostic,
    Door,
    OdbcFailure,
    Translator,
)
from informix_capture_client.transport.sqli.admission import refusal

SETTINGS = ConnectionSettings(
    host="db.example",
    port=9088,
    server="ids1",
    database="stores",
    user="cdc",
    password="s3cr}et",
    extra="SSLOPTION=1;Pwd={other secret}",
)

# sentence, connected, sqlstate, native, exception, whether no server answered
CASES = [
    ("a refused connection is an address to mend", False, "08001", -908, AccessRefused, True),
    ("another release's state for the same", False, "08004", -908, AccessRefused, True),
    ("a service without a port", False, "HY000", -931, AccessRefused, True),
    ("the driver's own number for no connection", False, "HY000", -11015, AccessRefused, True),
    ("a state alone, while connecting", False, "08001", 0, AccessRefused, True),
    ("a time-out while connecting", False, "HYT00", 0, AccessRefused, True),
    ("the same in ODBC 2 spelling", False, "S1T00", 0, AccessRefused, True),
    ("-908 once connected is a lost connection", True, "08001", -908, ConnectionLost, True),
    ("a link that breaks while connecting", False, "08S01", -25582, ConnectionLost, True),
    ("a link that breaks later", True, "08S01", -25582, ConnectionLost, True),
    ("a broken link under a general state", True, "HY000", -25580, ConnectionLost, True),
    ("a state alone, later", True, "08S01", 0, ConnectionLost, True),
    ("a connection that is not open", True, "08003", 0, ConnectionLost, True),
    ("a time-out later", True, "HYT00", -11094, ConnectionLost, True),
    ("the wrong password", False, "28000", -951, AccessRefused, False),
    ("the wrong password under the state of a bad address", False, "08004", -952, AccessRefused, 0),
    ("the wrong password, by its state alone", False, "28000", 0, AccessRefused, False),
    ("the wrong server name", False, "08004", -761, AccessRefused, False),
    ("a server name missing from sqlhosts", False, "08001", -25596, AccessRefused, False),
    ("an unknown database", False, "HY000", -329, AccessRefused, False),
    ("a database without the CONNECT privilege", False, "HY000", -387, AccessRefused, False),
    ("a routine that is not there or not allowed", True, "42000", -674, AccessRefused, False),
    ("a table without the SELECT privilege", True, "42000", -272, AccessRefused, False),
    ("a locale that does not fit", False, "HY000", -23197, BadOption, False),
    ("a locale that driver or server has no files of", False, "HY000", -23101, BadOption, False),
    ("a connection string that is not understood", False, "HY000", -11060, AccessRefused, False),
    ("an attribute that is not understood", False, "01S00", -11005, AccessRefused, False),
    ("a number nobody knows, while connecting", False, "HY000", -99999, AccessRefused, False),
    ("a state that the wide functions spoil", False, "H000", -11060, AccessRefused, False),
    ("a general error of the driver, later", True, "HY000", -11060, ServerRefused, False),
    ("a database that a statement names", True, "HY000", -329, AccessRefused, False),
    ("a database that a statement may not name", True, "HY000", -387, AccessRefused, False),
    ("a driver manager without the driver", False, "IM002", 0, BadOption, False),
    ("a driver that the manager cannot open", False, "01000", 0, BadOption, False),
    ("a syntax error", True, "42000", -201, ServerRefused, False),
    ("a number nobody knows", True, "HY000", -99999, ServerRefused, False),
]


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_a_diagnostic_becomes_the_error_that_says_what_to_do(
    case: tuple[str, bool, str, int, type[InformixCdcError], bool],
) -> None:
    _, connected, sqlstate, native, kind, unreachable = case
    record = Diagnostic(sqlstate, native, "[Informix][Informix ODBC Driver]Why it failed.")
    error = Translator(SETTINGS).error([record], connected=connected)
    assert type(error) is kind
    assert error.is_temporary == unreachable
    assert str(error).count("\n") == 0
    assert f"Why it failed [{sqlstate}] ({native})." in error.message
    assert error.remedy or kind is ServerRefused


@pytest.mark.parametrize(
    ("sqlstate", "native"),
    [("08S01", -25582), ("HY000", -25580), ("HY000", -27001), ("HY000", -11020), ("08003", 0)],
)
def test_a_link_that_breaks_at_login_may_be_a_wrong_port(sqlstate: str, native: int) -> None:
    record = Diagnostic(sqlstate, native, "It broke.")
    at_login, later = (Translator(SETTINGS).error([record], connected=each) for each in (False, True))
    assert "broke before the login was complete" in at_login.message
    assert at_login.remedy.startswith("Check host and port")
    assert later.remedy == "Connect again."


def test_the_native_code_of_any_record_outweighs_the_state_of_the_first() -> None:
    records = [Diagnostic("08004", 0, "no"), Diagnostic("HY000", -951, "Incorrect password.")]
    error = Translator(SETTINGS).error(records, connected=False)
    assert "refused user cdc" in error.message
    assert error.answer.diagnostics == (
        ("08004", 0, "no"),
        ("HY000", -951, "Incorrect password."),
    )


def test_a_general_number_does_not_hide_the_exact_one_behind_it() -> None:
    records = [Diagnostic("HY000", -11060, "General error."), Diagnostic("HY000", -951, "Password.")]
    error = Translator(SETTINGS).error(records, connected=False)
    assert "refused user cdc" in error.message
    records[1] = Diagnostic("08001", -1, "Nobody there.")
    error = Translator(SETTINGS).error(records, connected=False)
    assert error.is_temporary


@pytest.mark.parametrize(
    ("native", "advice"),
    [
        (-11060, "rejected the connection string"),
        (-11005, "rejected the connection string"),
        (-99999, "finderr"),
    ],
)
def test_a_connection_that_fails_for_no_known_reason_is_no_refused_statement(
    native: int, advice: str
) -> None:
    error = Translator(SETTINGS).error([Diagnostic("HY000", native, "Why.")], connected=False)
    assert error.message == f"No connection to ids1 at db.example:9088: Why [HY000] ({native})."
    assert advice in error.remedy
    assert "connectionString" in error.remedy
    assert "option driver names the Informix driver" in error.remedy


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("INFORMIXSERVER does not match. sqlerrm(ol_informix1410)", ": here ol_informix1410."),
        ("sqlerrm( ol_2 )", ": here ol_2."),
        ("INFORMIXSERVER does not match either DBSERVERNAME or DBSERVERALIASES.", "aliases."),
        ("sqlerrm()", "aliases."),
        ("sqlerrm(ids1)", "aliases."),
    ],
)
def test_the_servers_own_name_is_quoted_if_the_driver_tells_it(text: str, named: str) -> None:
    error = Translator(SETTINGS).error([Diagnostic("08004", -761, text)], connected=False)
    assert error.remedy.endswith(named)


def test_a_warning_does_not_hide_the_error_behind_it() -> None:
    records = [Diagnostic("01000", 0, "General warning."), Diagnostic("28000", 0, "No.")]
    assert "refused user cdc" in Translator(SETTINGS).error(records, connected=False).message


def test_a_failure_without_a_reason_says_so() -> None:
    error = Translator(SETTINGS).error([], connected=True)
    assert isinstance(error, ServerRefused)
    assert "no reason" in error.message


@pytest.mark.parametrize(
    "leak",
    [
        "login s3cr}et failed",
        "UID=cdc;PWD=s3cr}et;DB=x",
        "pwd = {s3cr}}et};DB=x",
        "value s3cr}}et is wrong",
        "PASSWORD=something else;DB=x",
        "PWD={cut of",
        "as in other secret",
    ],
)
def test_no_spelling_of_a_password_passes(leak: str) -> None:
    error = Translator(SETTINGS).error([Diagnostic("HY000", -1, leak)], connected=True)
    said = str(error) + repr(vars(pickle.loads(pickle.dumps(error))))
    assert "***" in said
    for secret in ("s3cr", "other secret", "something else", "cut of"):
        assert secret not in said
    assert ("DB=x" in said) == ("DB=x" in leak)


@pytest.mark.parametrize(
    ("password", "code", "argument", "told"),
    [
        ("syntax", -201, "", "A syntax error has occurred"),
        ("x", -201, "", "A syntax error has occurred"),
        ("orders", -206, "ordersx", "Table *** is not in the database"),
        ("a", -206, "a", "Table *** is not in the database"),
        ("orders", -206, "items", "Table items is not in the database"),
        ("rep", -9999, "PWD=rep", "The server reports error -9999 (***)"),
    ],
)
def test_our_own_sentences_tell_no_short_password(
    password: str, code: int, argument: str, told: str
) -> None:
    """A word cut out of a sentence that everybody knows is the password."""
    translator = Translator(replace(SETTINGS, password=password))
    error = translator.error(refusal(code, -131, argument).diagnostics, connected=True)
    assert isinstance(error, InformixCdcError)
    assert error.answer is not None
    texts = [text for _, _, text in error.answer.diagnostics]
    assert texts == [told, "ISAM error: no space is left on the disk"]


def test_the_door_translates_and_lets_the_next_one_in() -> None:
    door = Door(SETTINGS)
    for _ in range(2):
        with pytest.raises(AccessRefused) as caught, door:
            raise OdbcFailure([Diagnostic("28000", -951, "no")])
        assert caught.value.__suppress_context__


def test_the_door_leaves_other_errors_alone() -> None:
    with pytest.raises(KeyboardInterrupt), Door(SETTINGS):
        raise KeyboardInterrupt


@pytest.mark.parametrize("native", [-272, -674])
def test_a_user_in_a_grant_is_quoted(native: int) -> None:
    translator = Translator(replace(SETTINGS, user="a'; touch pwned; '"))
    error = translator.error([Diagnostic("42000", native, "No.")], connected=True)
    assert command_granting_capture("a'; touch pwned; '") in error.remedy


@pytest.mark.parametrize("database", ["name", "syscdcv1"])
def test_a_user_without_the_right_to_connect_is_quoted(database: str) -> None:
    translator = Translator(replace(SETTINGS, user="Ann B", database=database))
    error = translator.error([Diagnostic("28000", -387, "No.")], connected=database == "name")
    assert "echo 'GRANT DBA TO \"Ann B\"' | dbaccess syscdcv1 -" in error.remedy


def test_a_user_who_may_not_open_the_cdc_database_is_told_the_grant() -> None:
    translator = Translator(replace(SETTINGS, database="syscdcv1"))
    told = str(translator.error([Diagnostic("28000", -387, "No connect.")], connected=False))
    assert "echo 'GRANT DBA TO cdc' | dbaccess syscdcv1 -" in told
    assert "name" not in told.partition("(-387)")[2]  # the name of that database is ours
