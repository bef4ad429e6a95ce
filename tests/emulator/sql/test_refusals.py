"""What is refused, with which number, ISAM code and argument."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.sql.asking import Asked
from informix_emulator import EmulatedServer

TABLES = (
    "CREATE TABLE t (id integer PRIMARY KEY CONSTRAINT pk_t, n varchar(9) NOT NULL, s smallint,"
    " d decimal(4,1), w date, b boolean, m datetime year to second)",
    "CREATE UNIQUE INDEX ix_s ON t (s)",
    "CREATE TABLE child (c integer REFERENCES t (id) CONSTRAINT fk_c)",
    "CREATE TABLE numbered (id serial, x integer)",
    "INSERT INTO t (id, n, s) VALUES (1, 'one', 1)",
    "INSERT INTO child VALUES (1)",
)
# statement: number, ISAM code, argument
REFUSALS: dict[str, tuple[int, int, str]] = {
    "SELECT * FROM nothing": (-206, -111, "nothing"),
    "SELECT * FROM nowhere:t": (-329, -111, ""),
    "SELECT * FROM stores@other:t": (-206, -111, "stores"),
    "SELECT * FROM sysmaster:t": (-206, -111, "t"),
    "SELECT x FROM t": (-217, 0, "x"),
    "SELECT y.id FROM t": (-522, 0, "y"),
    "SELECT id FROM t a, t b": (-324, 0, "id"),
    "SELECT id, count(*) FROM t": (-294, 0, "id"),
    "SELECT nothing(id) FROM t": (-674, 0, "nothing"),
    "EXECUTE FUNCTION nobody(1)": (-674, 0, "nobody"),
    "SELECT (SELECT tabid FROM systables) FROM t": (-284, 0, ""),
    "SELECT 1 / 0 FROM t": (-1202, 0, ""),
    "SELECT DISTINCT n FROM t ORDER BY id": (-309, 0, "id"),
    "SELECT id FROM t UNION SELECT id, n FROM t": (-236, 0, ""),
    "SELECT id FROM t WHERE id = ? AND ? IN (SELECT ?)": (-201, 0, ""),
    "SELECT ? FROM t": (-201, 0, ""),
    "SELECT id FROM t WHERE id": (-201, 0, ""),
    "SELECT id = 1 FROM t": (-201, 0, ""),
    "SELECT id FROM t WHERE id == 1": (-201, 0, ""),
    "SELECT id FROM t WHERE n REGEXP 'x'": (-201, 0, ""),
    "SELECT id FROM t LIMIT 1, 2": (-201, 0, ""),
    "SELECT sqlite_version() FROM t": (-674, 0, "sqlite_version"),
    "SELECT * FROM sqlite_master": (-206, -111, "sqlite_master"),
    "SELECT * FROM t100": (-206, -111, "t100"),
    "SELECT id FROM t; DELETE FROM t": (-201, 0, ""),
    "SELECT 'open FROM t": (-201, 0, ""),
    "SELECT 1": (-201, 0, ""),
    "VALUES (1)": (-201, 0, ""),
    "PRAGMA user_version": (-201, 0, ""),
    "ATTACH DATABASE 'x' AS y": (-201, 0, ""),
    "REPLACE INTO t VALUES (1)": (-201, 0, ""),
    "MERGE INTO t USING t ON 1 = 1": (-201, 0, ""),
    "(" * 5000: (-201, 0, ""),
    "SELECT " + "(" * 5000 + "1" + ")" * 5000 + " FROM t": (-201, 0, ""),
    "INSERT INTO systables VALUES (1)": (-201, 0, ""),
    "INSERT INTO t VALUES (2)": (-236, 0, ""),
    "INSERT INTO t (id, id) VALUES (2, 3)": (-201, 0, ""),
    "INSERT INTO t (id, x) VALUES (2, 3)": (-217, 0, "x"),
    "INSERT INTO t (id) VALUES (2)": (-391, 0, "n"),
    "INSERT INTO t (id, n) VALUES (1, 'again')": (-268, -100, "informix.pk_t"),
    "INSERT INTO t (id, n, s) VALUES (2, 'two', 1)": (-239, -100, "s"),
    "INSERT INTO t (id, n, s) VALUES (2, 'two', 32768)": (-1214, 0, ""),
    "INSERT INTO t (id, n) VALUES (2147483648, 'two')": (-1215, 0, ""),
    "INSERT INTO t (id, n) VALUES ('x', 'two')": (-1213, 0, ""),
    "INSERT INTO t (id, n, d) VALUES (2, 'two', 1000)": (-1226, 0, ""),
    "INSERT INTO t (id, n, w) VALUES (2, 'two', '13/01/2024')": (-1205, 0, ""),
    "INSERT INTO t (id, n, w) VALUES (2, 'two', '02/30/2024')": (-1206, 0, ""),
    "INSERT INTO t (id, n, w) VALUES (2, 'two', 'soon')": (-1218, 0, ""),
    "INSERT INTO t (id, n, w) VALUES (2, 'two', mdy(1, 1, 0))": (-1204, 0, ""),
    "INSERT INTO t (id, n, b) VALUES (2, 'two', 'x')": (-1260, 0, ""),
    "INSERT INTO t (id, n, m) VALUES (2, 'two', '2024-01-01 25:00:00')": (-1263, 0, ""),
    "INSERT INTO t (id, n, m) VALUES (2, 'two', '2024-01-01 05:00:00 x')": (-1262, 0, ""),
    "INSERT INTO child VALUES (2)": (-691, 0, "informix.fk_c"),
    "DELETE FROM t": (-692, 0, "informix.fk_c"),
    "UPDATE t SET id = 5": (-692, 0, "informix.fk_c"),
    "UPDATE t SET n = NULL": (-391, 0, "n"),
    "UPDATE numbered SET id = 5": (-232, 0, "id"),
    "UPDATE t SET (n, s) = ('x', 1)": (-201, 0, ""),
    "DELETE FROM t WHERE CURRENT OF c": (-201, 0, ""),
    "CREATE TABLE t (x integer)": (-310, 0, "informix.t"),
    "CREATE TABLE u (x integr)": (-201, 0, ""),
    "CREATE TABLE u (x integer) FRAGMENT BY ROUND ROBIN IN a, b": (-201, 0, ""),
    "CREATE INDEX ix_s ON t (n)": (-316, 0, "ix_s"),
    "CREATE INDEX ix ON t (x)": (-217, 0, "x"),
    "DROP TABLE nothing": (-206, -111, "nothing"),
    "DROP TABLE t": (-692, 0, "informix.fk_c"),
    "ALTER TABLE t ADD (n integer)": (-328, 0, "n"),
    "ALTER TABLE t DROP (x)": (-217, 0, "x"),
    "CREATE DATABASE stores": (-330, -100, ""),
    "COMMIT WORK": (-255, 0, ""),
    "ROLLBACK WORK": (-255, 0, ""),
    "SAVEPOINT s": (-255, 0, ""),
    "LOCK TABLE t IN EXCLUSIVE MODE": (-255, 0, ""),
    "SET ISOLATION TO SOMETHING": (-201, 0, ""),
    # what Informix has, and no client that we know sends: docs/emulator-protocol.md, "SQL"
    "SELECT trim(n) FROM t": (-674, 0, "trim"),
    "SELECT n || 'x' FROM t": (-201, 0, ""),
    "SELECT n[1, 2] FROM t": (-201, 0, ""),
    "SELECT cast(id AS char(9)) FROM t": (-201, 0, ""),
    "SELECT w + 1 FROM t": (-1260, 0, ""),
    "SELECT id FROM t WHERE id BETWEEN 1 AND 2": (-201, 0, ""),
    "SELECT id FROM t WHERE id IN (SELECT c FROM child)": (-201, 0, ""),
    "SELECT id FROM (SELECT id FROM t)": (-201, 0, ""),
    "SELECT n, count(*) FROM t GROUP BY n HAVING count(*) > 1": (-201, 0, ""),
    "SELECT id FROM t INTO TEMP s": (-201, 0, ""),
    "SELECT id FROM t MINUS SELECT c FROM child": (-201, 0, ""),
    "CREATE TABLE u (x integer, CHECK (x > 0))": (-201, 0, ""),
    "CREATE TABLE u (x integer REFERENCES t ON DELETE CASCADE)": (-201, 0, ""),
    "CREATE SYNONYM s FOR t": (-201, 0, ""),
    "ALTER TABLE child DROP CONSTRAINT fk_c": (-201, 0, ""),
    "DROP INDEX ix_s": (-201, 0, ""),
    "DATABASE stores": (-201, 0, ""),
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE": (-201, 0, ""),
    "SET ISOLATION TO CURSOR STABILITY": (-201, 0, ""),
}


@pytest.mark.parametrize("text", [pytest.param(text, id=text[:60]) for text in REFUSALS])
def test_a_statement_is_refused_and_changes_nothing(db: Asked, text: str) -> None:
    db.all(*TABLES)
    before = db.rows("SELECT * FROM t"), db.rows("SELECT * FROM child")
    values = [None] * text.count("?")
    error = db.refused(text, *values)
    assert (error.native, error.isam, error.argument) == REFUSALS[text]
    assert (db.rows("SELECT * FROM t"), db.rows("SELECT * FROM child")) == before
    assert db.log().count("BEGINTX") == db.log().count("COMMTX") + db.log().count("RBTX")


def test_what_is_not_understood_is_logged_with_its_text(
    db: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    db.refused("FROBNICATE THE 'table'")
    (record,) = caplog.records
    assert record.name == "informix_cdc.emulator"
    assert "FROBNICATE THE 'table'" in record.getMessage()


def test_the_number_of_values_must_be_that_of_the_parameters(db: Asked) -> None:
    text = "SELECT tabid FROM systables WHERE tabid = ?"
    assert db.refused(text).native == db.refused(text, 1, 2).native == -254


def test_databases_and_tables_ask_for_rights(
    server: EmulatedServer, connect: Callable[..., Asked]
) -> None:
    owner, joe = connect(), connect("joe")
    owner.all("CREATE TABLE t (id integer)", "INSERT INTO t VALUES (1)")
    assert joe.rows("SELECT id FROM t") == [(1,)]  # a new table is open to public: NODEFDAC is unset
    owner.run("REVOKE ALL ON t FROM public")
    refused = [
        joe.refused(text).native
        for text in (
            "SELECT id FROM t",
            "INSERT INTO t VALUES (2)",
            "UPDATE t SET id = 2",
            "DELETE FROM t",
        )
    ]
    assert refused == [-272, -275, -273, -274]
    assert joe.refused("SELECT majvers FROM syscdcv1:informix.syscdcvers").native == -387
    cdc = connect(database="syscdcv1")
    cdc.all("GRANT CONNECT TO joe", "GRANT SELECT ON syscdcsess TO joe")
    owner.run("GRANT SELECT ON t TO public")
    assert joe.rows("SELECT id FROM t") == [(1,)]
    assert joe.rows("SELECT sessid FROM syscdcv1:syscdcsess") == []
    assert server.cdc_users == {"informix", "joe"}
