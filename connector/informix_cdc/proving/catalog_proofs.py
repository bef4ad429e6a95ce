"""Proofs about what the server's catalog and error numbers say, without reading a capture session.

Rule: see `outcomes.py`.
"""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import fields

from informix_capture_client import statements
from informix_capture_client.errors import AccessRefused, BadOption, InformixCdcError
from informix_capture_client.findings import Unanswered
from informix_capture_client.locales import codec_of
from informix_capture_client.session import read_open_sessions
from informix_capture_client.sql_names import TableName
from informix_cdc.proving.outcomes import (
    Deviation,
    NotTried,
    error_text,
    expect,
    expect_equal,
    natives_of,
)
from informix_cdc.proving.proofs import proof
from informix_cdc.proving.prover import Prover
from informix_cdc.proving.sql_text import select
from informix_cdc.server import (
    LONG_TRANSACTIONS,
    CdcFacts,
    ServerFacts,
    TableFacts,
    read_cdc_facts,
    read_server_facts,
    read_table_facts,
)

NOBODY = ("ifxcdc_nobody", "no-such-user")  # a wrong password of a real user could lock the account


@proof(6, 89, does="compares systrans before and after a COMMIT with the records of the transaction")
def open_transactions(prover: Prover) -> None:
    """It lists the transaction by the id of its records, until it has ended."""
    table = prover.plain_table()
    with prover.catalog() as catalog, prover.reading(table) as (reader, writer):
        writer.begin()
        writer.insert(table, id="1")
        listed = catalog.open_transactions()
        writer.commit()
        after = catalog.open_transactions()
        reader.until_ended()
    number = reader.rows[0].transaction_id
    expect(number in listed, "systrans lists the transaction", "it does not")
    expect(number not in after, "systrans no longer lists it after COMMIT", "it does", 89)


@proof(42, does="executes cdc_errortext with parameters", reads=False)
def error_texts(prover: Prover) -> None:
    """It returns a text."""
    with prover.cdc_connection() as transport:
        ((text,),) = transport.rows(statements.ERROR_TEXT, "CDC_E_NOTAB", "en_us.819")
    expect(bool((text or "").strip()), "a text", "none")


@proof(63, does="selects from a table that does not exist", reads=False)
def an_error_of_sql(prover: Prover) -> None:
    """The first number is that of the statement."""
    with prover.connection() as transport:
        try:
            transport.rows(f"SELECT t.a FROM {prover.owner}.ifxcdc_nowhere_at_all t")
        except InformixCdcError as reason:
            answer = reason.answer
            expect_equal("the first number", -206, answer.native if answer else None)
            others = [native for _, native, _ in answer.diagnostics[1:]] if answer else []
            expect(others in ([], [-111]), "no other number but -111", f"{others}")
            return
    raise Deviation("SQL error -206", "no error")


@proof(57, does="looks for a table by a wrong name", reads=False)
def names_that_are_wrong(prover: Prover) -> None:
    """The database and the table are suggested."""
    table = prover.plain_table()
    with prover.catalog() as catalog:
        expect(prover.database in catalog.databases(), "the database is listed", "it is not")
        wanted = f"{prover.owner}.{table.name}"
        for owner, name in (("", table.name), (prover.owner, f"{table.name}x")):
            near = catalog.find_table(TableName(prover.database, owner, name)).near
            expect(wanted in near, "the right name is suggested", "it is not")


@proof(
    26, does="connects to a database that does not exist, and as a user who does not exist", reads=False
)
def wrong_names_of_databases_and_users(prover: Prover) -> None:
    """Both are refused, as what they are."""
    for database, login, text in (
        ("ifxcdc_no_such_database", None, "Database ifxcdc_no_such_database"),
        (prover.database, NOBODY, f"refused user {NOBODY[0]}"),
    ):
        what = "an unknown user" if login else "an unknown database"
        try:
            prover.connect(database, login=login, db_locale=prover.locale).close()
        except AccessRefused as reason:
            expect(text in str(reason), f"{what} is named", f"{what}: {error_text(reason)}")
        except InformixCdcError as reason:
            raise Deviation(f"{what} is refused as such", error_text(reason)) from None
        else:
            raise Deviation(f"{what} is refused", "accepted")


@proof(29, does="reads the locale of the database", reads=False)
def the_locale_of_the_database(prover: Prover) -> None:
    """Its code set is known."""
    with prover.catalog() as catalog:
        try:
            codec_of(catalog.database_locale())
        except BadOption:
            raise Deviation("a code set that we know", "another one") from None


@proof(39, does="opens the database with other locales", reads=False)
def locales_of_connections(prover: Prover) -> None:
    """They are refused with -23197, or accepted."""
    table = prover.plain_table()
    with prover.writer() as writer:
        writer.insert(table, id="1", b="größer")
    with prover.connection() as transport:
        read = [row[1] for row in transport.rows(select(table))]
    expect(read == ["größer"], "the characters that were written", "other characters")
    for locale in ("en_US.819", ""):
        what = "another code set" if locale else "no locale"
        try:
            prover.connect(prover.database, db_locale=locale).close()
        except InformixCdcError as reason:
            is_known = bool(natives_of(reason) & {-23197})
            expect(is_known, f"{what}: SQL error -23197", f"{what}: {error_text(reason)}")
            prover.note(f"a connection with {what} is refused")
        else:
            prover.note(f"a connection with {what} is accepted")


@proof(35, does="asks every system table that the doctor asks", reads=False)
def questions_of_the_doctor(prover: Prover) -> None:
    """Each is answered; the next proof lists sessions, which not every user may read."""
    table = prover.plain_table()
    name = TableName(table.database, table.owner, table.name)
    with (
        prover.connection() as own,
        closing(prover.connect(statements.SYSTEM_DATABASE)) as system,
        prover.cdc_connection() as transport,
    ):
        server = read_server_facts(system, prover.database)
        found: list[ServerFacts | TableFacts | CdcFacts] = [server]
        found += read_table_facts(own, prover.database, [name])
        found.append(read_cdc_facts(transport, prover.owner, prover.product))
    for facts in found:
        for asked in fields(facts):
            answer = getattr(facts, asked.name)
            if isinstance(answer, Unanswered) and asked.name != "sessions":
                why = answer.reason if answer.error is None else error_text(answer.error)
                raise Deviation(f"{asked.name} can be read", f"{asked.name}: {why}")
    assert not isinstance(server.parameters, Unanswered)
    for parameter in LONG_TRANSACTIONS:
        expect(parameter in server.parameters, f"sysconfig has {parameter}", "no row")
    is_version = bool(re.search(r"Version \d+", str(server.version)))
    expect(is_version, "a version with a number", "another text")


@proof(35, does="lists the capture sessions with their tables")
def capture_sessions(prover: Prover) -> None:
    """Our own is among them."""
    table = prover.plain_table()
    with prover.session(table), prover.cdc_connection() as transport:
        try:
            sessions = read_open_sessions(transport, prover.product)
        except AccessRefused:
            raise NotTried("the user may not read syscdcsess and syscdctabs") from None
    name = TableName(table.database, table.owner, table.name)
    expect((name,) in [session.tables for session in sessions], "our session and its table", "neither")


@proof(94, does="reads the columns of a descending index", reads=False)
def columns_of_an_index(prover: Prover) -> None:
    """They are numbers of columns, negative for descending ones."""
    table = prover.create_table({"id": "integer", "v": "integer"})
    index = f"i_{table.name}"
    with prover.connection() as transport:
        transport.rows(f"CREATE UNIQUE INDEX {index} ON {table.name} (v DESC, id)")
        parts = "SELECT t.part1, t.part2, t.part3 FROM informix.sysindexes t"
        asked = f"{parts} WHERE t.idxname = '{index}'"
        ((first, second, third),) = transport.rows(prover.product.statement(asked))
    found = (abs(int(first or 0)), int(second or 0), int(third or 0))
    expect_equal("parts", (2, 1, 0), found)


@proof(95, does="asks whether the database ignores case", reads=False)
def case_of_the_database(prover: Prover) -> None:
    """It does not."""
    with prover.connection() as transport:
        ((ignores,),) = transport.rows(statements.IGNORES_CASE, prover.database)
    expect_equal("is_case_insens", 0, int(ignores or 0))


@proof(96, does="selects the first rows behind a key", reads=False)
def rows_behind_a_key(prover: Prover) -> None:
    """They come in the order of the key."""
    table = prover.create_table({"id": "integer", "v": "integer"}, "LOCK MODE ROW")
    with prover.connection() as transport:
        transport.rows(f"CREATE UNIQUE INDEX i_{table.name} ON {table.name} (id)")
        for number in range(1, 6):
            transport.rows(f"INSERT INTO {table.name} VALUES ({number}, 0)")
        found = transport.rows(
            f"SELECT /*+ AVOID_FULL(t) */ FIRST 2 t.id, t.v FROM {table.name} t"
            " WHERE t.id >= 2 AND t.id > 2 ORDER BY t.id"
        )
    expect_equal("rows", [("3", "0"), ("4", "0")], found)


@proof(107, does="selects a TEXT and a BYTE that are NULL, with their lengths", reads=False)
def texts_that_are_null(prover: Prover) -> None:
    """SQL alone cannot write other values."""
    from informix_capture_client.object_readers import NULL, ByKey, object_reader, read_whole, try_open

    table = prover.create_table({"id": "integer", "page": "text", "picture": "byte"})
    with prover.connection() as transport:
        transport.rows(f"INSERT INTO {table.name} VALUES (1, NULL, NULL)")
        reader = object_reader(transport)
        for column in ("page", "picture"):
            asked = f"SELECT LENGTH(t.{column}), t.{column} FROM {table.name} t WHERE t.id = ?"
            opened = try_open(reader, ByKey(asked, (1,), is_value=True), 1 << 20)
            found = read_whole(reader, opened, 1 << 20, lambda: False)
            expect_equal(f"the {column}", NULL, found.status)


@proof(
    100, 101, 102, 103, 104, 105,
    does="makes a BLOB of the server's file /etc/services or /etc/protocols, opens it by the handle of"
    " the log and by SELECT, and deletes its row",
)  # fmt: skip
def large_objects(prover: Prover) -> None:
    """The content is compared, and neither kept nor reported."""
    from informix_cdc.proving.large_object_steps import require_objects

    require_objects(prover)


@proof(31, does="compares the bytes of a captured row of GBase 8s with the layout of Informix")
def rows_of_gbase(prover: Prover) -> None:
    """Sizes are big-endian, and a VARCHAR has a length of one byte."""
    if prover.dialect != "gbase8s":
        raise NotTried("needs GBase 8s (--dialect gbase8s)")
    kinds = {"id": "integer", "a": "varchar(40,0)", "b": "nvarchar(40,0)", "c": "lvarchar(300)"}
    table = prover.create_table(kinds)
    with prover.reading(table) as (reader, writer):
        writer.insert(table, id="258", a="abc", b="de", c="f" * 259)
        reader.until_ended()
    expect_equal("sizes", (4, 3, 262), reader.rows[0].sizes)
    layout = b"\0\0\1\2" + b"\x03abc" + b"\x02de" + b"\x01\x04\0" + b"f" * 259
    expect(reader.rows[0].payload == layout, "the layout of Informix", "another one")


@proof(37, does="asks GBase 8s for its log, a table and a session", reads=False)
def statements_of_gbase(prover: Prover) -> None:
    """Each is answered as Informix answers."""
    if prover.dialect != "gbase8s":
        raise NotTried("needs GBase 8s (--dialect gbase8s)")
    table = prover.plain_table()
    with prover.catalog() as catalog, prover.session(table):
        is_sound = catalog.current_position() >= catalog.oldest_position() > 0
        expect(is_sound, "positions of the log", "none")
        expect(bool(prover.described(catalog, table).columns), "columns", "none")
