"""Statements that no client means: each has an answer or an error by number."""

from __future__ import annotations

import contextlib
import datetime

from hypothesis import given
from hypothesis import strategies as st

from emulator.sql.asking import Asked, patient
from harness.runs.examples import examples
from informix_emulator import EmulatedServer
from informix_emulator.sql import open_session
from informix_emulator.sql_errors import SqlError

STATEMENTS = (
    "SELECT SKIP 1 FIRST 2 a , b FROM t WHERE a = 1 AND b LIKE 'x%' ORDER BY a DESC",
    "SELECT count ( * ) , sum ( a ) , b FROM t GROUP BY b",
    "SELECT x . a , y . b FROM t x , t y WHERE x . a = y . a",
    "SELECT CASE WHEN a = 1 THEN 'x' ELSE b END FROM t",
    "SELECT mod ( a , 2 ) , abs ( d ) * 3 - a , mdy ( 1 , 2 , 2000 ) FROM t",
    "SELECT INTERVAL ( 1 ) DAY TO DAY , DATETIME ( 2020 - 1 - 1 ) YEAR TO DAY , today FROM t",
    "SELECT a :: varchar ( 10 ) , d :: decimal ( 5 , 2 ) FROM t",
    "SELECT a , b FROM t FOR UPDATE",
    "SELECT a FROM t WHERE a IN ( 1 , 2 ) UNION SELECT 1 FROM t",
    "SELECT x . a FROM t x LEFT OUTER JOIN t y ON x . a = y . a WHERE EXISTS ( SELECT 1 FROM t )",
    "INSERT INTO t ( a , b , d , m ) VALUES ( 1 , 'x' , 2.5 , current )",
    "INSERT INTO t SELECT a + 1 , b , d , m FROM t WHERE a = 1",
    "UPDATE t SET a = a + 1 , b = 'y' WHERE a = ( SELECT min ( a ) FROM t )",
    "DELETE FROM t WHERE b MATCHES '[a-z]*' ESCAPE '!'",
    "CREATE TABLE s ( a serial ( 5 ) PRIMARY KEY , b char ( 10 ) DEFAULT 'x' , UNIQUE ( b ) )",
    "CREATE TEMP TABLE s ( a decimal ( 5 , 2 ) , b varchar ( 10 , 0 ) ) WITH NO LOG",
    "CREATE TABLE s ( a integer REFERENCES t ( a ) ) EXTENT SIZE 16 LOCK MODE ROW",
    "CREATE UNIQUE INDEX s ON t ( a , b DESC )",
    "CREATE VIEW s AS SELECT a , b FROM t WHERE a > 1",
    "ALTER TABLE t ADD ( c integer DEFAULT 5 BEFORE b ) , MODIFY ( b char ( 20 ) )",
    "ALTER TABLE t DROP ( b ) , ADD CONSTRAINT UNIQUE ( a ) CONSTRAINT s",
    "RENAME COLUMN t . a TO c",
    "RENAME TABLE t TO s",
    "DROP TABLE t",
    "TRUNCATE TABLE t",
    "SET LOCK MODE TO WAIT 1",
    "SET ISOLATION TO COMMITTED READ",
    "LOCK TABLE t IN EXCLUSIVE MODE",
    "SAVEPOINT s UNIQUE",
    "SELECT dbinfo ( 'sqlca.sqlerrd1' ) , to_char ( today , '%Y-%m' ) , length ( b ) FROM t",
    "EXECUTE FUNCTION sysadmin : task ( 'checkpoint' )",
    "GRANT SELECT ON t TO joe",
)
HUGE = (str(2**63), "9" * 300, "1e308", "1e-400", "1e9999", "0", "0.00000001", "-1", "2147483648")
ODD = ("", "'", "''", "'nan'", "'1e99'", "'2020-13-01'", f"'{'x' * 40000}'", "'\0'", "?", "NULL")
SIGNS = (*'()[],.:;*+-/=<>{}"', "::", "||", "--", "/*", "*/", "!=")
WORDS = tuple(sorted({word for text in STATEMENTS for word in text.split()}))
PIECES = st.sampled_from((*HUGE, *ODD, *SIGNS, *WORDS))
EDITS = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from(["put", "insert", "cut", "double"]), PIECES),
    max_size=4,
)
VALUES = st.one_of(
    st.none(),
    st.sampled_from(
        (2**70, -(2**63), float("inf"), float("nan"), "x" * 40000, b"\xff", "\ud800", True)
    ),
    st.sampled_from((datetime.date(1, 1, 1), datetime.datetime(9999, 12, 31), 1, "1")),
)


def edited(text: str, edits: list[tuple[int, str, str]]) -> str:
    words = text.split()
    for where, how, piece in edits:
        place = where % (len(words) + 1)
        part = words[place : place + 1]
        words[place : place + 1] = {
            "put": [piece],
            "insert": [piece, *part],
            "cut": [],
            "double": part * 3,
        }[how]
    return " ".join(words)


def fresh() -> Asked:
    server = EmulatedServer(clock=lambda: 1_700_000_000)
    server.create_database("stores")
    db = Asked(open_session(server, "informix", "stores", False), server)
    db.run("CREATE TABLE t (a integer, b varchar(20), d decimal(8,2), m datetime year to second)")
    for number in range(3):
        db.run("INSERT INTO t VALUES (?, 'x', 1.5, current)", number)
    return db


@examples(300)
@given(st.lists(st.tuples(st.sampled_from(STATEMENTS), EDITS, VALUES), min_size=1, max_size=3))
def test_what_is_not_understood_is_an_error_by_number(
    program: list[tuple[str, list[tuple[int, str, str]], object]],
) -> None:
    db = fresh()
    for text, edits, value in program:
        with contextlib.suppress(SqlError):
            prepared = db.session.prepare(edited(text, edits))
            answer = prepared.run([value] * len(prepared.parameters), patient)
            for row in answer.rows:
                for column, shown in zip(prepared.columns, row, strict=True):
                    assert shown is None or column.type.encode(shown) is not None
    assert db.value("1 + 1") == 2
    db.session.close()
