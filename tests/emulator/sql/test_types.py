"""Values of every type: what goes in by SQL comes out as it is encoded, compared and ordered."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.sql.asking import Asked
from informix_emulator import EmulatedServer
from informix_emulator.sql.language.families import named_type
from informix_emulator.sql.language.values import (
    decimal_key,
    decimal_of,
    load,
    printed,
    store,
)

# type, literals that SQL may write, the values that they are
ROUND_TRIPS: list[tuple[str, dict[str, object]]] = [
    ("smallint", {"32767": 32767, "-32767": -32767, "0": 0}),
    ("integer", {"2147483647": 2147483647, "'-5'": -5, "1.9": 1}),
    ("bigint", {"9223372036854775807": 2**63 - 1, "-9223372036854775807": 1 - 2**63}),
    ("int8", {"-9223372036854775807": 1 - 2**63}),
    ("float", {"1.5e300": 1.5e300, "-0.25": -0.25, "3": 3.0}),
    ("smallfloat", {"3.25": 3.25, "0.1": 0.10000000149011612}),
    ("decimal(10,2)", {"12.345": Decimal("12.35"), "-0.005": Decimal("-0.01"), "'7'": Decimal("7.00")}),
    ("decimal(32,0)", {"9" * 32: Decimal("9" * 32), "-" + "9" * 32: Decimal("-" + "9" * 32)}),
    ("decimal(16)", {"0.000123": Decimal("0.000123"), "1e3": Decimal(1000)}),
    ("money(16,2)", {"99.95": Decimal("99.95")}),
    ("boolean", {"'t'": True, "'F'": False}),
    (
        "date",
        {
            "'02/29/2024'": date(2024, 2, 29),
            "'0001-01-01'": date(1, 1, 1),
            "mdy(12,31,9999)": date(9999, 12, 31),
        },
    ),
    (
        "datetime year to second",
        {
            "'2024-03-15 07:05:06'": "2024-03-15 07:05:06",
            "datetime (9999-12-31 23) year to hour": "9999-12-31 23:00:00",
        },
    ),
    ("datetime year to fraction(5)", {"'1969-12-31 23:59:59.99999'": "1969-12-31 23:59:59.99999"}),
    ("datetime hour to minute", {"datetime (07:05) hour to minute": "07:05"}),
    ("datetime fraction to fraction(4)", {"datetime (.125) fraction to fraction(4)": ".1250"}),
    ("interval year to month", {"interval (-3-07) year to month": "-3-07", "'9999-11'": "9999-11"}),
    (
        "interval day(9) to fraction(5)",
        {"interval (0 00:00:00.00001) day to fraction(5)": "0 00:00:00.00001"},
    ),
    ("interval hour(9) to minute", {"'-999999999:59'": "-999999999:59"}),
    ("char(5)", {"'ab  '": "ab   ", "''": "     ", "'O''Ha'": "O'Ha ", "'too long'": "too l"}),
    ("nchar(4)", {"'ñü'": "ñü"}),
    ("varchar(9)", {"'a b  '": "a b  ", "''": "", "'too long indeed'": "too long "}),
    ("lvarchar(300)", {"'" + "x" * 300 + "'": "x" * 300}),
]
CASES = [
    pytest.param(kind, text, value, id=f"{kind}: {text[:20]}")
    for kind, values in ROUND_TRIPS
    for text, value in {**values, "NULL": None}.items()
]


@pytest.mark.parametrize(("kind", "text", "value"), CASES)
def test_a_literal_comes_back_as_its_value(db: Asked, kind: str, text: str, value: object) -> None:
    db.run(f"CREATE TABLE t (v {kind})")
    db.run(f"INSERT INTO t VALUES ({text})")
    assert db.rows("SELECT v FROM t") == [(value,)]
    assert db.columns[0].type.spelling == named_type(kind).spelling


@pytest.mark.parametrize(("kind", "text", "value"), CASES)
def test_a_value_that_came_back_goes_in_again_as_a_parameter_and_is_found(
    db: Asked, kind: str, text: str, value: object
) -> None:
    db.run(f"CREATE TABLE t (v {kind})")
    db.run("INSERT INTO t VALUES (?)", value)
    assert db.rows("SELECT v FROM t") == [(value,)]
    found = db.rows("SELECT v FROM t WHERE v = ?", value)
    assert found == ([] if value is None else [(value,)])


DIGITS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**31), max_value=10**31)


@given(DIGITS, DIGITS)
def test_keys_of_decimals_sort_as_the_numbers_do(one: Decimal, two: Decimal) -> None:
    keys = decimal_key(one), decimal_key(two)
    assert (keys[0] < keys[1], keys[0] == keys[1]) == (one < two, one == two)
    assert decimal_of(keys[0]) == one


INTERVALS = (
    "interval day(9) to fraction(5)",
    "interval year(9) to month",
    "interval hour(4) to second",
)


@given(st.sampled_from(INTERVALS), st.integers(-(10**12), 10**12))
def test_an_interval_that_is_counted_is_printed_and_read_again(kind: str, count: int) -> None:
    wanted = named_type(kind)
    limits = {INTERVALS[0]: 8 * 10**18, INTERVALS[1]: 11 * 10**9, INTERVALS[2]: 3599 * 10**7}
    count = (count % limits[kind]) * (-1 if count < 0 else 1)
    count -= count % 100_000 if kind == INTERVALS[2] and count >= 0 else 0
    if kind == INTERVALS[2] and count % 100_000:
        return
    assert store(wanted, load(wanted, count)) == count


def test_numbers_are_compared_as_numbers_whatever_their_type(db: Asked) -> None:
    db.run("CREATE TABLE t (i integer, d decimal(20,2), f float, c char(5))")
    db.run("INSERT INTO t VALUES (10, 10.00, 10, '10')")
    db.run("INSERT INTO t VALUES (9, 9.50, 9.25, '9')")
    for condition in ("i = d", "f = i", "c = i", "d > 9.75", "c > 9", "d = '10'", "i = 10.0"):
        assert (10,) in db.rows(f"SELECT i FROM t WHERE {condition}"), condition
    assert db.rows("SELECT i FROM t ORDER BY d") == [(9,), (10,)]
    assert db.rows("SELECT max(d), min(d), sum(d), avg(i), count(*) FROM t") == [
        (Decimal("10.00"), Decimal("9.50"), Decimal("19.5"), Decimal("9.5"), Decimal(2))
    ]


def test_blanks_at_the_end_of_a_text_do_not_count(db: Asked) -> None:
    db.run("CREATE TABLE t (c char(5), v varchar(9))")
    db.run("INSERT INTO t VALUES ('ab', 'ab  ')")
    for condition in (
        "c = v",
        "c = 'ab   '",
        "v = 'ab'",
        "c LIKE 'ab'",
        "c LIKE 'ab   '",
        "c IN ('x', 'ab ')",
        "c MATCHES 'a?'",
    ):
        assert db.rows(f"SELECT 1 FROM t WHERE {condition}") == [(1,)], condition
    assert db.rows("SELECT 1 FROM t WHERE v LIKE 'ab'") == []
    assert db.rows("SELECT length(c), length(v) FROM t") == [(2, 2)]
    assert len(db.rows("SELECT c FROM t UNION SELECT v FROM t")) == 1


def test_a_text_is_cut_and_counted_in_the_bytes_of_the_database(
    server: EmulatedServer, connect: Callable[..., Asked]
) -> None:
    server.create_database("old", locale="de_de.8859-1")
    for database, kept in (("old", "größe"), ("stores", "größ")):
        db = connect(database=database)
        db.run("CREATE TABLE t (v varchar(6))")
        db.run("INSERT INTO t VALUES ('größer')")
        assert db.rows("SELECT v FROM t") == [("größer" if database == "old" else kept,)]
    assert connect(database="old").refused("INSERT INTO t VALUES ('中')").native == -23103


# what an expression is, and its type
EXPRESSIONS: dict[str, tuple[object, str]] = {
    "1 + 2": (3, "integer"),
    "7 / 2": (Decimal("3.5"), "decimal(32)"),
    "1.25 + 1": (Decimal("2.25"), "decimal(13,2)"),
    "1.5 * 1.5": (Decimal("2.25"), "decimal(4,2)"),
    "-(3)": (-3, "integer"),
    "2 * 1.5e0": (3.0, "float"),
    "mod(17, 5)": (2, "integer"),
    "abs(-4)": (4, "integer"),
    "'12'::integer": (12, "integer"),
    "12::char(4)": ("12  ", "char(4)"),
    "today": (date(2023, 11, 14), "date"),
    "current year to minute": ("2023-11-14 22:13", "datetime year to minute"),
    "sysdate": ("2023-11-14 22:13:20.00000", "datetime year to fraction(5)"),
    "to_char(today, '%d.%m.%Y')": ("14.11.2023", "varchar(255,0)"),
    "case when 1 = 2 then 'x' else 'yy' end": ("yy", "varchar(2,0)"),
    "dbservername": ("informix", "varchar(128,0)"),
    "dbinfo('dbname')": ("stores", "varchar(128,0)"),
    "(select count(*) from systables where tabid = 1)": (Decimal(1), "decimal(15,0)"),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_has_a_value_and_a_type(db: Asked, text: str) -> None:
    value = db.value(text)
    assert (value, db.columns[0].type.spelling) == EXPRESSIONS[text]


def test_a_date_is_printed_month_first() -> None:
    kind = named_type("date")
    assert printed(kind, store(kind, date(2024, 2, 1))) == "02/01/2024"


def test_the_clock_is_read_anew_whenever_a_prepared_statement_runs(db: Asked) -> None:
    moments = iter((60.0, 120.0))
    prepared = db.session.prepare("SELECT current hour to second FROM systables WHERE tabid = 1")
    db.server.clock = lambda: next(moments)
    shown = [list(prepared.run((), lambda: None).rows) for _ in range(2)]
    assert shown[0] != shown[1]
