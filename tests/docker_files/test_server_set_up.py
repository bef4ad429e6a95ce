"""The server's set-up: its scripts with a stand-in for dbaccess, its SQL on the emulator."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from docker_files.docker_folder import DOCKER, run
from informix_emulator import EmulatedServer
from informix_emulator.shop import DATABASE, demo_server
from informix_emulator.sql import open_session

Script = Callable[..., CompletedProcess[str]]
Ask = Callable[[str], list[tuple[object, ...]]]
INFORMIX = DOCKER / "informix"
SET_UP, HEALTH = INFORMIX / "set_up.sh", INFORMIX / "health.sh"
# file by file: database, name and locale
FRESH = [
    "sysadmin sbspace.sql none",
    "- syscdcv1.sql none",
    "- database.sql en_US.utf8",
    "stores tables.sql en_US.utf8",
    "stores demo_data.sql en_US.utf8",
    "stores workload.sql en_US.utf8",
]
DBACCESS = """#!/usr/bin/env bash
file=$(basename "$2")
case "$1 ${DB_LOCALE:-none}" in
    "sysmaster none" | "sysadmin none" | "stores en_US.utf8" | "- "*) ;;
    *) exit 1 ;; # -23197: database locale information mismatch
esac
[ "$file" != - ] || exec grep --only-matching --word-regexp --file="$STATE/made"
echo "$1 $file ${DB_LOCALE:-none}" >>"$STATE/done"
[ "$file" != "${BROKEN:-}" ] && [ -e "$2" ] || exit 1
leaves='s/database.sql/stores/; s/demo_data.sql/101/; s/workload.sql/shop_order/; s/.sql//'
sed "$leaves" <<<"$file" >>"$STATE/made" # what a query finds
"""


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Return a function that runs a script with the stand-in for dbaccess."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/syscdcv1.sql").touch()
    (tmp_path / "made").touch()
    (tmp_path / "dbaccess").write_text(DBACCESS)
    (tmp_path / "dbaccess").chmod(0o755)
    path, folder = f"{tmp_path}:{os.environ['PATH']}", str(tmp_path)
    return partial(run, "bash", PATH=path, STATE=folder, INFORMIXDIR=folder)


def done(folder: Path) -> list[str]:
    """Return which files ran until now, each with its database and locale."""
    return (folder / "done").read_text().splitlines()


def test_a_fresh_server_gets_everything_in_order_and_a_second_run_creates_nothing(
    script: Script, tmp_path: Path
) -> None:
    assert script(SET_UP).returncode == 0
    assert done(tmp_path) == FRESH
    assert script(SET_UP).returncode == 0
    assert done(tmp_path) == [*FRESH, FRESH[3], FRESH[5]]


@pytest.mark.parametrize("file", [line.split()[1] for line in FRESH])
def test_an_error_ends_the_set_up_and_the_next_run_goes_on_from_there(
    script: Script, tmp_path: Path, file: str
) -> None:
    assert script(SET_UP, BROKEN=file).returncode != 0
    ran = done(tmp_path)
    assert ran[-1].split()[1] == file
    assert script(SET_UP).returncode == 0
    assert ran[-1] in done(tmp_path)[len(ran) :]


def test_a_server_is_healthy_once_nothing_is_missing(script: Script, tmp_path: Path) -> None:
    script(SET_UP)
    assert script(HEALTH).returncode == 0
    made = (tmp_path / "made").read_text()
    for missing in ("sbspace", "syscdcv1", "stores", "shop_order"):
        (tmp_path / "made").write_text(made.replace(missing, "else"))
        result = script(HEALTH)
        assert (result.returncode, missing in result.stderr) == (1, True)


def statements(name: str) -> list[str]:
    text = re.sub(r"^--.*$", "", (INFORMIX / name).read_text(), flags=re.MULTILINE)
    *found, rest = (each.strip() for each in text.split(";"))
    assert rest == ""
    return found


def asking(server: EmulatedServer) -> Ask:
    session = open_session(server, "informix", DATABASE, False)
    return lambda text: [tuple(row) for row in session.prepare(text).run((), lambda: None).rows]


@pytest.fixture
def ask() -> Ask:
    server = EmulatedServer()
    server.create_database(DATABASE)
    ask = asking(server)
    for text in statements("tables.sql") + statements("demo_data.sql"):
        ask(text)
    return ask


def test_database_and_tables_are_those_of_the_demo(ask: Ask) -> None:
    assert statements("database.sql") == [f"CREATE DATABASE {DATABASE} WITH LOG"]
    columns = "SELECT tabname, colname, MOD(coltype, 256), collength FROM systables t, syscolumns c"
    columns += " WHERE t.tabid = c.tabid AND t.tabid > 99 ORDER BY tabname, colno"
    assert ask(columns) == asking(demo_server())(columns) != []


def sell(ask: Ask) -> None:
    """Run the procedure statement by statement, with numbers for its variables."""
    begin, placed, *body, end = statements("workload.sql")
    assert begin.startswith("CREATE PROCEDURE IF NOT EXISTS informix.shop_order()\n")
    assert (placed, end) == ("DEFINE placed INTEGER", "END PROCEDURE")
    variables: dict[str, object] = {}
    for text in body:
        text = re.sub(r"LET (\w+) = (.*)", r"SELECT \2 INTO \1 FROM systables WHERE tabid = 1", text)
        if into := re.fullmatch(r"(SELECT .*) INTO (\w+) (FROM .*)", text):
            ((variables[into[2]],),) = ask(f"{into[1]} {into[3]}")
        else:
            ask(re.sub(r"\b(buyer|placed)\b", lambda name: str(variables[name[1]]), text))


def test_each_call_of_the_procedure_places_ships_and_deletes_an_order(ask: Ask) -> None:
    ask("INSERT INTO orders (order_num, customer_num) VALUES (502, 101)")
    ask("INSERT INTO items (order_num, item_num) VALUES (502, 1)")
    for _ in range(3):
        sell(ask)
    totals = ask("SELECT order_num, total FROM orders ORDER BY order_num")
    assert [number for number, _ in totals] == [1001, 1002, 1003, 1004]
    assert ask("SELECT order_num, SUM(total_price) FROM items GROUP BY 1 ORDER BY 1") == totals
    assert ask("SELECT order_num FROM orders WHERE ship_date IS NOT NULL") == [(1001,)]
