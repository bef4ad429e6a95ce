"""Options: declared once, refused by name, and never showing the password."""

from __future__ import annotations

import pickle
from typing import get_args, get_type_hints

import pytest

from informix_capture_client.choices import ColumnChoice, RowForm
from informix_capture_client.errors import BadOption
from informix_cdc.options.checks import RULES, Rule
from informix_cdc.options.declared import DECLARED, GROUPS, OPTION_NAMES
from informix_cdc.options.declaring import WordChoice
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
    assert (options.connection.port, options.connection.user, options.connection.transport) == (
        9088,
        "informix",
        "sqli",
    )
    assert (options.connection.read_timeout_seconds, options.stream.max_records_per_read) == (1, 256)
    assert options.stream.starting_position == "latest"


def test_who_connects_is_whom_the_product_s_guide_demands_unless_told_otherwise() -> None:
    assert parse(dialect="gbase8s").connection.settings("stores").user == "gbasedbt"
    assert parse(dialect="gbase8s", user="joe").connection.settings("stores").user == "joe"
    with pytest.raises(BadOption, match="'dialect' must be informix or gbase8s"):
        parse(dialect="gbase")


def test_columns_are_chosen_by_three_options() -> None:
    assert parse().columns.choice() == ColumnChoice()
    choice = parse(columns='id, "Ship, Date"', unsupportedColumns="omit", lobs="omit").columns.choice()
    assert choice.names == (("id",), ("Ship, Date",))
    assert (choice.unsupported, choice.lobs) == ("omit", "omit")


def test_a_table_may_have_a_name_with_a_comma() -> None:
    options = parse(table='informix."Lines, Old",informix.orders')
    assert [name.table for name in options.table_names()] == ["Lines, Old", "orders"]


def test_a_flag_is_read_in_any_case_and_listed_as_it_is_written() -> None:
    assert parse().rows.before_image
    assert not parse(beforeImage="False").rows.before_image
    assert ("beforeImage", "true") in [row[:2] for row in option_rows()]


def test_names_are_read_in_any_case_as_spark_hands_them_over() -> None:
    assert parse(MAXROWSPERTRIGGER="7").batches.max_rows_per_trigger == 7


REFUSED = [
    ("an unknown option", {"hots": "x"}, "option 'hots' is not known. Did you mean 'host'?"),
    ("a far-off name", {"zzz": "x"}, "option 'zzz' is not known. The options are: host, port, server,"),
    ("a number out of range", {"port": "0"}, "from 1 to 65535"),
    ("a word for a number", {"port": "nine"}, "option 'port' must be a whole number"),
    ("a negative number", {"maxReconnectSeconds": "-1"}, "must be a whole number"),
    ("a decision of ours", {"readBufferBytes": "127"}, "option 'readbufferbytes' is not known"),
    ("a word of Spark's Kafka source", {"failOnDataLoss": "false"}, "Use 'onDataLoss'."),
    ("an unknown choice", {"truncate": "maybe"}, "fail, emit or ignore"),
    (
        "metadata columns of a shape that has its own",
        {"shape": "envelope", "metadata": "minimal"},
        "option 'metadata' cannot be used with shape=envelope",
    ),
    ("an unknown shape", {"shape": "wide"}, "rows, json, arrow or envelope"),
    ("an unknown level", {"logLevel": "trace"}, "error, warning, info or debug"),
    ("a flag that is neither", {"beforeImage": "maybe"}, "option 'beforeImage' must be true or false"),
    ("an unknown choice for large objects", {"lobs": "keep"}, "handle, content, reselect or omit"),
    ("no list of columns", {"columns": "id;note"}, "option 'columns' must be a comma-separated list"),
    ("a column twice", {"columns": "id, ID"}, "each once"),
    ("a pattern of another kind", {"table": "informix.ord?"}, "Patterns support only *"),
    ("a table twice", {"table": "a.b,a.b"}, "each once"),
    ("no table", {"table": " , "}, "owner.table"),
    ("half of a pair of quotes", {"table": 'informix.orders"'}, "double quote"),
    ("the other half", {"table": '"informix.orders'}, "double quote"),
    ("a table of another database", {"table": "shops:informix.orders"}, "not in database 'stores'"),
    ("a position that is none", {"startingPosition": "yesterday"}, "option 'startingPosition' must be"),
    ("a digit that is no number", {"port": "\u00b2"}, "option 'port' must be"),
    ("a table twice by two names", {"table": "a.b,stores:a.b"}, "lists a table twice"),
    ("an empty host", {"host": ""}, "option 'host' is missing"),
    ("a password in the connection string", {"connectionString": "Pwd=abc"}, "passwordFile"),
    ("a host in it", {"connectionString": "HOST=other"}, "contains HOST; it accepts only"),
    (
        "a password file that is not there",
        {"password": "", "passwordFile": "/no/file"},
        "cannot be read",
    ),
    ("a word of another source", {"subscribe": "t"}, "Use 'table'."),
    ("a snapshot", {"snapshot.mode": "initial"}, "initialSnapshot"),
    ("a list for a table", {"table": '["informix.orders"]'}, "separate table names by commas"),
    ("tables to choose from", {"table": "informix.(a|b)"}, "Patterns support only *"),
    ("a host with its port", {"host": "127.0.0.1:9088"}, "Set host to 127.0.0.1 and port to 9088."),
    ("a JDBC URL", {"host": "jdbc:informix-sqli://h:1/d:PASSWORD=x"}, "is a JDBC URL"),
    ("a path for a host", {"host": "//db"}, "is not a host name"),
    ("words for a connection string", {"connectionString": "hello"}, "KEY=value"),
    (
        "a code set for a locale",
        {"connectionString": "CLIENT_LOCALE=latin1"},
        "language_territory.codeset",
    ),
    ("a code set nobody knows", {"connectionString": "CLOC=en_us.klingon"}, "known code set"),
    ("a size that is none", {"maxSpoolBytes": "1.5"}, "such as 512m or 1.5g, from 1 to 1024t"),
    ("a number without a bound", {"maxRowsPerTrigger": "-1"}, "a whole number of 0 or more"),
    ("no password at all", {"password": ""}, "INFORMIX_CDC_PASSWORD"),
]


@pytest.mark.parametrize(("changes", "says"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_cannot_be_meant_is_refused(changes: dict[str, str], says: str) -> None:
    with pytest.raises(BadOption) as caught:
        parse(**changes)
    assert says in str(caught.value)
    assert str(caught.value).startswith("IFXCDC-0003: ")


def test_all_that_is_wrong_is_told_at_once_in_the_order_of_options() -> None:
    given = {"TRUNCATE": "maybe", "port": "x", "hots": "db", "table": "ord?", "database": "d"}
    with pytest.raises(BadOption) as caught:
        SourceOptions.parse(given, {})
    text = str(caught.value)
    said = [
        "7 options are invalid: (1) option 'hots' is not known. Did you mean 'host'?",
        "(2) option 'host' is missing",
        "(3) option 'port' must be",
        "(4) option 'server' is missing",
        "(5) no password is given",
        "(6) table 'ord?' is not owner.table",
        "(7) option 'truncate' must be",
    ]
    places = [text.index(each) for each in said]
    assert places == sorted(places)
    assert "\n" not in text


@pytest.mark.parametrize(
    ("wrong", "related"),
    [
        ({"spoolPath": "s3://bucket"}, {"lobs": "content"}),
        ({"shape": "wide"}, {"metadata": "minimal", "initialSnapshot": "all", "spoolPath": "/x"}),
        ({"database": ""}, {"table": "informix.*, !informix.a"}),
        ({"connectionString": "hello"}, {"host": "a,b", "transport": "auto"}),
        ({"transport": "tcp"}, {"host": "a,b", "driver": "/x.so"}),
    ],
)
def test_an_option_that_cannot_be_read_is_the_only_error_about_it(
    wrong: dict[str, str], related: dict[str, str]
) -> None:
    (option,) = wrong
    with pytest.raises(BadOption) as caught:
        parse(**wrong, **related)
    assert "options are invalid" not in str(caught.value)
    assert f"option '{option}'" in str(caught.value)


def test_types_have_the_words_that_are_read() -> None:
    types = {name: kind for group in GROUPS.values() for name, kind in get_type_hints(group).items()}
    choices = {
        declared.name: set(read.words)
        for _, declared in DECLARED
        if isinstance(read := declared.metadata["read"], WordChoice)
    }
    del choices["dialect_name"]  # one of the client's table
    assert choices == {name: set(get_args(types[name])) for name in choices}


def test_every_rule_can_say_what_is_wrong() -> None:
    rules = [each for group in RULES.values() for each in group if isinstance(each, Rule)]
    texts = [text.format(it=parse()) for rule in rules for text in (rule.message, rule.remedy)]
    assert texts
    assert not [text for text in texts if "{" in text or not text.endswith(".")]
    assert set(RULES) <= set(OPTION_NAMES)


STREAMS_NEED = ({"lobs": "content"}, {"simpleLobs": "reselect"}, {"initialSnapshot": "all"})


@pytest.mark.parametrize("given", STREAMS_NEED)
def test_only_a_stream_needs_a_spool(given: dict[str, str]) -> None:
    assert SourceOptions.parse({**GIVEN, **given}, {}, is_stream=False).spool.path == ""
    with pytest.raises(BadOption, match="spoolPath"):
        parse(**given)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("connectionString", "hunter2"),
        ("host", "jdbc:informix-sqli://h:1/d:INFORMIXSERVER=s;PASSWORD=hunter2"),
        ("host", "joe:hunter2@db.example"),
    ],
)
def test_what_may_hold_a_password_is_not_quoted(option: str, text: str) -> None:
    with pytest.raises(BadOption, match=f"option '{option}'") as caught:
        parse(**{option: text})
    assert "hunter2" not in str(caught.value)


def test_words_are_read_in_any_case_and_flags_as_yes_and_no_too() -> None:
    options = parse(shape="ENVELOPE", onDataLoss="Continue", transport="SQLI", truncate=" Emit ")
    assert (options.rows.shape, options.connection.transport, options.rows.truncate) == (
        "envelope",
        "sqli",
        "emit",
    )
    assert not options.stream.fails_on_data_loss
    assert parse(beforeImage="YES").rows.before_image
    assert parse(startingPosition="Earliest").stream.starting_position == "earliest"


@pytest.mark.parametrize(
    ("text", "count"),
    [("16GiB", 16 << 30), ("1.5g", 3 << 29), ("512 m", 512 << 20), ("4096", 4096), ("2TB", 2 << 40)],
)
def test_sizes_are_read_as_they_are_written_elsewhere(text: str, count: int) -> None:
    assert parse(maxSpoolBytes=text).spool.max_bytes == count


def test_a_table_without_its_owner_waits_for_the_server_which_knows_its_tables() -> None:
    (name,) = parse(table="orders").table_names()
    assert (name.owner, str(name)) == ("", "stores:orders")


@pytest.mark.parametrize("name", ["host", "server", "database", "table"])
def test_a_missing_option_is_named(name: str) -> None:
    with pytest.raises(BadOption, match=f"option '{name}' is missing"):
        SourceOptions.parse({k: v for k, v in GIVEN.items() if k != name}, {})


def test_the_password_is_in_no_repr_and_in_no_pickle_for_executors() -> None:
    options = parse()
    assert "s3cret" not in repr(options)
    assert b"s3cret" not in pickle.dumps(options.without_secrets())


def test_where_the_key_of_a_certificate_is_stays_with_the_driver() -> None:
    files = {"tlsCaFile": "/pem/ca", "tlsCertificateFile": "/pem/own"}
    options = parse(transport="sqli", encryption="tls", **files)
    assert options.connection.settings("stores").tls_certificate_file == "/pem/own"
    assert b"/pem/" not in pickle.dumps(options.without_secrets())


def test_where_to_connect_is_told_without_the_password() -> None:
    assert parse().connection.settings("stores").password == ""


def test_every_option_stands_in_one_table_of_the_options_page() -> None:
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    found = sorted(options_named(page))
    declared = sorted(name for name, _, _ in option_rows())
    assert found == declared, "name it after a `make docs: options` mark of docs/options.md"


def test_every_option_has_a_meaning() -> None:
    assert all(meaning.strip() for _, _, meaning in option_rows())


def test_what_contents_of_large_objects_need_is_said_at_load() -> None:
    with pytest.raises(BadOption, match="spoolPath"):
        parse(lobs="content")


def test_a_reader_of_a_shared_capture_chooses_its_own_rows() -> None:
    reader = {"captureAt": "/captures/orders", "reader": "one"}
    chosen = {"shape": "json", "metadata": "minimal", "beforeImage": "false", "truncate": "ignore"}
    options = SourceOptions.parse({**reader, **chosen, "tableEvents": "true"}, {})
    assert options.row_form() == RowForm(
        shape="json",
        metadata="minimal",
        before_image=False,
        truncate="ignore",
        table_events=True,
    )
    with pytest.raises(BadOption, match="option 'metadata' cannot be used with shape=envelope"):
        SourceOptions.parse({**reader, "shape": "envelope", "metadata": "minimal"}, {})
    with pytest.raises(BadOption, match="option 'tableEvents' cannot be used with shape=envelope"):
        SourceOptions.parse({**reader, "shape": "envelope", "tableEvents": "true"}, {})


@pytest.mark.parametrize(("truncate", "ends"), [("fail", True), ("emit", False), ("ignore", False)])
def test_a_batch_ends_before_a_truncate_that_is_refused(truncate: str, ends: bool) -> None:
    assert parse(truncate=truncate).batch_limits().until_truncate == ends
