"""Options: declared once, refused by name, and never showing the password."""

from __future__ import annotations

import pickle

import pytest

from informix_capture_client.choices import ColumnChoice
from informix_capture_client.errors import BadOption
from informix_cdc.options.source import SourceOptions, option_rows
from manual.made_parts import ROOT, options_named

GIVEN = {
    "host": "db.example",
    "server": "ol_stores",
    "database": "stores",
    "table": "informix.orders",
    "password": "s3cret",
}


def parse(environment: dict[str, str] | None = None, **changes: str) -> SourceOptions:
    return SourceOptions.parse({**GIVEN, **changes}, environment or {})


def test_defaults_are_those_of_the_page_of_options() -> None:
    options = parse()
    assert (options.port, options.user, options.transport) == (9088, "informix", "odbc")
    assert (options.read_timeout_seconds, options.max_records_per_read) == (1, 256)
    assert options.starting_position == "latest"


def test_who_connects_is_whom_the_product_s_guide_demands_unless_told_otherwise() -> None:
    assert parse(dialect="gbase8s").connection("stores").user == "gbasedbt"
    assert parse(dialect="gbase8s", user="joe").connection("stores").user == "joe"
    with pytest.raises(BadOption, match="'dialect' must be informix or gbase8s"):
        parse(dialect="gbase")


def test_columns_are_chosen_by_three_options() -> None:
    assert parse().column_choice() == ColumnChoice()
    choice = parse(columns='id, "Ship, Date"', unsupportedColumns="omit", lobs="omit").column_choice()
    assert choice.names == (("id",), ("Ship, Date",))
    assert (choice.unsupported, choice.lobs) == ("omit", "omit")


def test_a_table_may_have_a_name_with_a_comma() -> None:
    options = parse(table='informix."Lines, Old",informix.orders')
    assert [name.table for name in options.table_names()] == ["Lines, Old", "orders"]


def test_a_flag_is_read_in_any_case_and_listed_as_it_is_written() -> None:
    assert parse().before_image
    assert not parse(beforeImage="False").before_image
    assert ("beforeImage", "true") in [row[:2] for row in option_rows()]


def test_names_are_read_in_any_case_as_spark_hands_them_over() -> None:
    assert parse(MAXRECORDSPERREAD="7").max_records_per_read == 7


REFUSED = [
    ("an unknown option", {"hots": "x"}, "option 'hots' is not known. Did you mean 'host'?"),
    ("a far-off name", {"zzz": "x"}, "option 'zzz' is not known."),
    ("a number out of range", {"port": "0"}, "from 1 to 65535"),
    ("a word for a number", {"port": "nine"}, "option 'port' must be a whole number"),
    ("a negative number", {"readTimeoutSeconds": "-1"}, "must be a whole number"),
    ("a buffer below the guide's minimum", {"readBufferBytes": "127"}, "from 128"),
    ("an unknown choice", {"truncate": "maybe"}, "fail, emit or ignore"),
    ("an unknown shape", {"shape": "wide"}, "rows, envelope or raw"),
    ("an unknown level", {"logLevel": "debug"}, "error, warning or info"),
    ("a flag that is neither", {"beforeImage": "yes"}, "option 'beforeImage' must be true or false"),
    ("an unknown choice for large objects", {"lobs": "keep"}, "handle or omit"),
    ("no list of columns", {"columns": "id;note"}, "option 'columns' must be names of columns"),
    ("a column twice", {"columns": "id, ID"}, "each once"),
    ("a table without owner", {"table": "orders"}, "owner.table"),
    ("a table twice", {"table": "a.b,a.b"}, "each once"),
    ("no table", {"table": " , "}, "owner.table"),
    ("half of a pair of quotes", {"table": 'informix.orders"'}, "double quote"),
    ("the other half", {"table": '"informix.orders'}, "double quote"),
    ("a table of another database", {"table": "shops:informix.orders"}, "not in database 'stores'"),
    ("a position that is none", {"startingPosition": "yesterday"}, "option 'startingPosition' must be"),
    ("a digit that is no number", {"port": "\u00b2"}, "option 'port' must be"),
    ("a table twice by two names", {"table": "a.b,stores:a.b"}, "names a table twice"),
    ("an empty host", {"host": ""}, "option 'host' is missing"),
    ("a timeout that would hold a stop back", {"readTimeoutSeconds": "3600"}, "from 1 to 60"),
    ("a password in the connection string", {"connectionString": "Pwd=abc"}, "passwordFile"),
    ("a contradiction", {"connectionString": "HOST=other"}, "another HOST than option 'host'"),
    (
        "a password file that is not there",
        {"password": "", "passwordFile": "/no/file"},
        "cannot be read",
    ),
    ("no password at all", {"password": ""}, "INFORMIX_CDC_PASSWORD"),
]


@pytest.mark.parametrize(("changes", "says"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_cannot_be_meant_is_refused(changes: dict[str, str], says: str) -> None:
    with pytest.raises(BadOption) as caught:
        parse(**changes)
    assert says in str(caught.value)
    assert str(caught.value).startswith("IFXCDC-0003: ")


@pytest.mark.parametrize("name", ["host", "server", "database", "table"])
def test_a_missing_option_is_named(name: str) -> None:
    with pytest.raises(BadOption, match=f"option '{name}' is missing"):
        SourceOptions.parse({k: v for k, v in GIVEN.items() if k != name}, {})


def test_a_connection_string_stands_in_for_options_and_hands_the_rest_to_the_driver() -> None:
    given = {"table": "informix.orders", "password": "s3cret"}
    text = "HOST=h;SERVICE=9090;SERVER=s;DATABASE=d;UID=joe;PROTOCOL=onsocssl"
    options = SourceOptions.parse({**given, "connectionString": text}, {})
    settings = options.connection("syscdcv1", "en_us.utf8")
    assert (settings.host, settings.port, settings.server) == ("h", 9090, "s")
    assert (options.database, settings.database, settings.user) == ("d", "syscdcv1", "joe")
    assert (settings.extra, settings.encryption) == ("", "tls")


def test_the_password_is_in_no_repr_and_in_no_pickle_for_executors() -> None:
    options = parse()
    assert "s3cret" not in repr(options)
    assert b"s3cret" not in pickle.dumps(options.without_secrets())


def test_where_to_connect_is_told_without_the_password() -> None:
    assert parse().connection("stores").password == ""


def test_every_option_stands_in_one_table_of_the_options_page() -> None:
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    found = sorted(options_named(page))
    declared = sorted(name for name, _, _ in option_rows())
    assert found == declared, "name it after a `make docs: options` mark of docs/options.md"


def test_every_option_has_a_meaning() -> None:
    assert all(meaning.strip() for _, _, meaning in option_rows())
