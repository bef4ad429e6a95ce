"""Keys and foreign keys are in the catalogue, and found by joins over it."""

from __future__ import annotations

import pytest

from emulator.sql.asking import Asked
from emulator.sql.client_statements import GET_COLUMNS
from informix_emulator.system_tables.rows import _TABLES

# what a driver asks for getImportedKeys: the keys, by their constraints and the indexes of both
IMPORTED_KEYS = (
    "SELECT p.tabname, pc.colname, c.tabname, cc.colname, fk.constrname, pk.constrname, r.delrule"
    " FROM sysreferences r, sysconstraints fk, sysconstraints pk, sysindexes fi, sysindexes pi,"
    " systables p, systables c, syscolumns pc, syscolumns cc"
    " WHERE r.constrid = fk.constrid AND r.primary = pk.constrid AND r.ptabid = p.tabid"
    " AND fk.tabid = c.tabid AND fk.constrtype = 'R' AND fi.idxname = fk.idxname"
    " AND fi.tabid = c.tabid AND pi.idxname = pk.idxname AND pi.tabid = p.tabid"
    " AND pc.tabid = p.tabid AND pc.colno = pi.part1 AND cc.tabid = c.tabid AND cc.colno = fi.part1"
    " ORDER BY 3, 5"
)
CONSTRAINTS = "SELECT constrname, constrtype FROM sysconstraints ORDER BY 1"


@pytest.fixture
def shop(db: Asked) -> Asked:
    db.all(
        "CREATE TABLE customer (id integer PRIMARY KEY CONSTRAINT pk_customer, code char(4) UNIQUE)",
        "CREATE TABLE orders (id integer, buyer integer REFERENCES customer CONSTRAINT fk_buyer,"
        " code char(4), FOREIGN KEY (code) REFERENCES customer (code) CONSTRAINT fk_code)",
    )
    return db


def test_a_join_finds_foreign_keys_with_the_columns_of_both_tables(shop: Asked) -> None:
    assert shop.rows(IMPORTED_KEYS) == [
        ("customer", "id", "orders", "buyer", "fk_buyer", "pk_customer", "R"),
        ("customer", "code", "orders", "code", "fk_code", "u100_2", "R"),
    ]


def test_a_foreign_key_shares_an_index_of_its_columns(shop: Asked) -> None:
    shop.run("CREATE TABLE more (buyer integer PRIMARY KEY CONSTRAINT pk_more, x integer)")
    shop.run("ALTER TABLE more ADD CONSTRAINT FOREIGN KEY (buyer) REFERENCES customer CONSTRAINT f")
    found = shop.rows("SELECT idxname FROM sysconstraints WHERE constrname = 'f'")
    assert found == [("pk_more",)]
    assert shop.rows("SELECT nindexes FROM systables WHERE tabname = 'more'") == [(1,)]
    assert shop.rows("SELECT nindexes FROM systables WHERE tabname = 'orders'") == [(2,)]


def test_constraints_are_of_three_kinds_and_keep_their_numbers(shop: Asked) -> None:
    assert shop.rows(CONSTRAINTS) == [
        ("fk_buyer", "R"),
        ("fk_code", "R"),
        ("pk_customer", "P"),
        ("u100_2", "U"),
    ]
    number = "SELECT constrid FROM sysconstraints WHERE constrname = 'fk_code'"
    before = shop.rows(number)
    shop.run("ALTER TABLE orders DROP (buyer)")
    assert shop.rows(number) == before


# an alteration, and the foreign keys that it leaves
LEFT: dict[str, list[str]] = {
    "ALTER TABLE customer DROP (code)": ["fk_buyer"],
    "ALTER TABLE orders DROP (buyer)": ["fk_code"],
    "ALTER TABLE orders ADD (z integer)": ["fk_buyer", "fk_code"],
    "RENAME COLUMN orders.buyer TO client": ["fk_buyer", "fk_code"],
    "RENAME COLUMN customer.id TO number": ["fk_buyer", "fk_code"],
    "DROP TABLE customer": [],
    "DROP TABLE orders": [],
}


@pytest.mark.parametrize("end", ["COMMIT WORK", "ROLLBACK WORK"])
@pytest.mark.parametrize("text", LEFT)
def test_an_alteration_changes_foreign_keys_until_it_is_undone(
    shop: Asked, text: str, end: str
) -> None:
    before = shop.rows(IMPORTED_KEYS), shop.rows(CONSTRAINTS)
    shop.all("BEGIN WORK", text, end)
    if end == "ROLLBACK WORK":
        assert (shop.rows(IMPORTED_KEYS), shop.rows(CONSTRAINTS)) == before
    else:
        assert [row[4] for row in shop.rows(IMPORTED_KEYS)] == LEFT[text]
        known = shop.rows("SELECT constrname FROM sysconstraints WHERE constrtype = 'R' ORDER BY 1")
        assert [name for (name,) in known] == LEFT[text]


def test_a_renamed_key_is_still_heeded(shop: Asked) -> None:
    shop.all("RENAME COLUMN customer.id TO number", "RENAME COLUMN orders.buyer TO client")
    shop.run("INSERT INTO customer VALUES (1, 'a')")
    assert shop.refused("INSERT INTO orders VALUES (1, 2, 'a')").native == -691
    shop.run("INSERT INTO orders VALUES (1, 1, 'a')")
    assert shop.refused("DELETE FROM customer").native == -692
    names = "SELECT constrname FROM sysconstraints WHERE constrtype = 'R'"
    shop.all("DELETE FROM orders", "DROP TABLE customer")
    shop.run("INSERT INTO orders VALUES (1, 9, 'b')")  # nothing is referred to any more
    assert shop.rows(names) == []


def test_a_key_that_is_added_and_rolled_back_is_gone(db: Asked) -> None:
    db.run("CREATE TABLE t (id integer, a integer)")
    db.all("BEGIN WORK", "ALTER TABLE t ADD CONSTRAINT PRIMARY KEY (id) CONSTRAINT pk")
    assert db.rows(CONSTRAINTS) == [("pk", "P")]
    db.run("ROLLBACK WORK")
    assert db.rows(CONSTRAINTS) == []
    db.all("INSERT INTO t VALUES (1, -1)", "INSERT INTO t VALUES (1, -1)")


def test_the_driver_is_told_defaults(db: Asked) -> None:
    db.run("CREATE TABLE customer (a integer DEFAULT 7, b date DEFAULT TODAY, c char(1))")
    db.run("ALTER TABLE customer ADD d date DEFAULT NULL")
    assert [row[11] for row in db.rows(GET_COLUMNS)] == ["7", "today", None, None]


def test_a_key_that_is_none_is_refused(db: Asked) -> None:
    db.run("CREATE TABLE t (id integer, a integer)")
    error = db.refused("CREATE TABLE d (a integer REFERENCES t (id))")
    assert (error.native, error.argument) == (-297, "t")
    assert db.rows("SELECT count(*) FROM systables WHERE tabid > 99") == [(1,)]


def test_the_tables_of_the_catalogue_are_in_it_with_their_columns(db: Asked) -> None:
    names = "SELECT tabname FROM systables WHERE tabid < 90 ORDER BY tabid"
    found = [str(name) for (name,) in db.rows(names)]
    assert found[:2] == ["systables", "syscolumns"]
    assert sorted(found) == sorted(name for database, name in _TABLES if not database)
    for tabid, name in enumerate(found, 1):
        db.rows(f"SELECT FIRST 1 * FROM {name}")
        shown = [column.name for column in db.columns]
        columns = db.rows(f"SELECT colname FROM syscolumns WHERE tabid = {tabid} ORDER BY colno")
        assert [column for (column,) in columns] == shown


def test_the_tables_of_users_begin_with_100(db: Asked) -> None:
    """What the product asks of a catalogue leaves out lower numbers."""
    db.run("CREATE TABLE t (id integer)")
    assert db.rows("SELECT tabid, tabname FROM systables WHERE tabid > 99") == [(100, "t")]
