"""IBM's JDBC driver in conversation: transactions, cursors, batches, metadata, errors, recovery."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.witnesses.jdbc import VERSIONS, Conversation, Refused, conversing, url
from lab.witnesses.served import DATABASE, PASSWORD, USER, served

pytestmark = pytest.mark.witness

READ_UNCOMMITTED, READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE = 1, 2, 4, 8


@pytest.fixture(scope="module", params=VERSIONS)
def program(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Conversation]:
    with conversing(request.param, tmp_path_factory.mktemp("jdbc")) as talk:
        yield talk


@pytest.fixture
def jdbc(program: Conversation) -> Iterator[Conversation]:
    with served() as (_, port):
        program.ask("connect", url(port, DATABASE), USER, PASSWORD)
        program.ask("execute", "create table orders (order_num serial primary key, note varchar(40))")
        yield program
        program.ask("close")


def notes(jdbc: Conversation) -> list[str]:
    return [note for (note,) in jdbc.rows("select note from orders order by order_num")]


def write(jdbc: Conversation, *texts: str) -> None:
    for text in texts:
        assert jdbc.count("insert into orders (order_num, note) values (0, ?)", f"string={text}") == 1


class TestTransactions:
    def test_a_committed_row_stays_and_a_rolled_back_one_goes(self, jdbc: Conversation) -> None:
        jdbc.ask("autocommit", "false")
        write(jdbc, "kept")
        jdbc.ask("commit")
        write(jdbc, "dropped")
        jdbc.ask("rollback")
        assert notes(jdbc) == ["kept"]

    def test_a_savepoint_takes_back_what_came_after_it(self, jdbc: Conversation) -> None:
        jdbc.ask("autocommit", "false")
        write(jdbc, "before")
        jdbc.ask("savepoint", "here")
        write(jdbc, "after", "and after")
        jdbc.ask("rollback to", "here")
        write(jdbc, "instead")
        jdbc.ask("commit")
        assert notes(jdbc) == ["before", "instead"]

    def test_a_released_savepoint_takes_nothing_back(self, jdbc: Conversation) -> None:
        jdbc.ask("autocommit", "false")
        jdbc.ask("savepoint", "here")
        write(jdbc, "one")
        jdbc.ask("release", "here")
        jdbc.ask("commit")
        assert notes(jdbc) == ["one"]

    @pytest.mark.parametrize("level", [READ_UNCOMMITTED, READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE])
    def test_every_isolation_level_is_taken(self, jdbc: Conversation, level: int) -> None:
        assert jdbc.ask("isolation", level) == level
        write(jdbc, "still works")
        assert notes(jdbc) == ["still works"]

    def test_the_database_says_that_it_has_transactions(self, jdbc: Conversation) -> None:
        jdbc.ask("autocommit", "false")  # -79744 where the database's properties lack them
        jdbc.ask("commit")


class TestStatements:
    def test_a_batch_counts_each_of_its_rows(self, jdbc: Conversation) -> None:
        texts = [f"string=row {number}" for number in range(500)]
        sql = "insert into orders (order_num, note) values (0, ?)"
        assert jdbc.ask("batch", sql, 1, *texts) == [1] * 500
        assert notes(jdbc) == [f"row {number}" for number in range(500)]

    def test_update_and_delete_count_their_rows(self, jdbc: Conversation) -> None:
        write(jdbc, "a", "b", "c")
        assert jdbc.count("update orders set note = ? where note <> ?", "string=x", "string=a") == 2
        assert jdbc.count("delete from orders where note = 'x'") == 2
        assert jdbc.count("delete from orders where note = 'x'") == 0
        assert notes(jdbc) == ["a"]

    def test_a_scroll_cursor_goes_where_it_is_sent(self, jdbc: Conversation) -> None:
        write(jdbc, *"abcde")
        sql = "select note from orders order by order_num"
        moves = ["first", "next", "last", "previous", "2", "next", "99"]
        found = jdbc.ask("scroll", sql, *moves)
        assert found == [["a"], ["b"], ["e"], ["d"], ["b"], ["c"], None]

    def test_two_cursors_are_read_in_turn(self, jdbc: Conversation) -> None:
        write(jdbc, *"abc")
        up = "select note from orders order by order_num"
        found = jdbc.ask("interleaved", up, f"{up} desc")
        assert found == [["a"], ["c"], ["b"], ["b"], ["c"], ["a"]]

    def test_a_result_of_many_buffers_is_whole(self, jdbc: Conversation) -> None:
        sql = "insert into orders (order_num, note) values (0, ?)"
        jdbc.ask("batch", sql, 1, *(f"string={number:040}" for number in range(3000)))
        assert notes(jdbc) == [f"{number:040}" for number in range(3000)]

    def test_a_temporary_table_belongs_to_its_connection(self, jdbc: Conversation) -> None:
        jdbc.ask("execute", "create temp table scratch (x integer)")
        assert jdbc.count("insert into scratch values (7)") == 1
        assert jdbc.rows("select x from scratch") == [["7"]]


class TestMetadata:
    def test_the_tables_are_those_that_were_made(self, jdbc: Conversation) -> None:
        found = jdbc.ask("metadata", "tables", "%")
        assert [(row["table_name"], row["table_type"]) for row in found] == [("orders", "TABLE")]

    def test_columns_have_type_size_and_nullability(self, jdbc: Conversation) -> None:
        jdbc.ask("execute", "create table wide (a integer not null, b varchar(40), c decimal(10,2))")
        found = jdbc.ask("metadata", "columns", "wide")
        facts = [(r["column_name"], r["type_name"], r["column_size"], r["is_nullable"]) for r in found]
        assert facts == [
            ("a", "int", "10", "NO"),
            ("b", "varchar", "40", "YES"),
            ("c", "decimal", "10", "YES"),
        ]

    def test_the_primary_key_names_its_columns(self, jdbc: Conversation) -> None:
        found = jdbc.ask("metadata", "primary keys", "orders")
        assert [(row["column_name"], row["key_seq"]) for row in found] == [("order_num", "1")]

    def test_a_foreign_key_names_the_columns_of_both_tables(self, jdbc: Conversation) -> None:
        jdbc.ask("execute", "create table items (item integer, num integer references orders)")
        found = jdbc.ask("metadata", "imported keys", "items")
        facts = [
            (r["pktable_name"], r["pkcolumn_name"], r["fktable_name"], r["fkcolumn_name"], r["key_seq"])
            for r in found
        ]
        assert facts == [("orders", "order_num", "items", "num", "1")]

    def test_columns_have_their_defaults(self, jdbc: Conversation) -> None:
        jdbc.ask("execute", "create table usual (a integer default 7, b date default today, c char)")
        found = jdbc.ask("metadata", "columns", "usual")
        assert [row["column_def"] for row in found] == ["7", "today", None]

    def test_the_catalogs_are_the_databases(self, jdbc: Conversation) -> None:
        found = {row["table_cat"] for row in jdbc.ask("metadata", "catalogs")}
        assert found >= {"stores", "sysmaster", "syscdcv1"}

    def test_the_schemas_have_the_owner(self, jdbc: Conversation) -> None:
        found = {row["table_schem"].strip() for row in jdbc.ask("metadata", "schemas")}
        assert "informix" in found

    def test_the_types_are_listed(self, jdbc: Conversation) -> None:
        found = {row["type_name"] for row in jdbc.ask("metadata", "types")}
        assert found >= {"integer", "varchar", "decimal", "date"} or found >= {"int", "varchar"}

    def test_the_connection_is_valid(self, jdbc: Conversation) -> None:
        assert jdbc.ask("valid", 5) is True


# What is asked for, the SQL code that it must be refused with, and the ISAM code that goes with it.
REFUSALS = {
    "a syntax error": ("selekt 1", -201, None),
    "an unknown table": ("select * from nowhere", -206, -111),
    "an unknown column": ("select nothing from orders", -217, None),
    "a double key": ("insert into orders values (1, 'again')", -268, -100),
    "a NULL where none may be": ("insert into strict values (null)", -391, None),
    "a procedure that is not there": ("execute function nobody(1)", -674, None),
    "a text that is no number": ("insert into strict values ('x')", -1213, None),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_refused_statement_leaves_the_connection_usable(jdbc: Conversation, what: str) -> None:
    sql, code, isam = REFUSALS[what]
    jdbc.ask("execute", "create table strict (x integer not null)")
    jdbc.ask("execute", "insert into orders values (1, 'first')")
    with pytest.raises(Refused) as refused:
        jdbc.ask("execute", sql)
    assert refused.value.code == code
    if isam is not None:
        assert refused.value.codes == [code, isam]
    assert notes(jdbc) == ["first"]


def test_a_capture_session_that_is_not_there_cannot_be_read(jdbc: Conversation) -> None:
    with pytest.raises(Refused) as refused:
        jdbc.ask("lo read", 99, 100)
    assert refused.value.codes[0] == -79716
    assert jdbc.ask("valid", 5) is True
