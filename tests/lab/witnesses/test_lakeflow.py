"""LeoneGarage's Lakeflow connector finds tables, takes a snapshot, and captures one poll of a shop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from informix_emulator import EmulatedServer, keep_rows
from informix_emulator.shop import COLUMNS, CommittedTransaction, Workload
from lab.witnesses.lakeflow import MOST_RECORDS, bridged
from lab.witnesses.programs import Program
from lab.witnesses.served import DATABASE, served
from lab.witnesses.transactions import committed, first_difference

pytestmark = pytest.mark.witness
PEOPLE = f"{DATABASE}:informix.people"
SHOP_TRANSACTIONS = 300  # more than a poll takes


@pytest.fixture(params=["informix-14.10", "informix-15"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[EmulatedServer, Program]]:
    with served(poses_as=request.param) as (server, port), bridged(tmp_path, port) as bridge:
        yield server, bridge


def test_rows_of_a_snapshot_are_read_page_by_page(place: tuple[EmulatedServer, Program]) -> None:
    server, bridge = place
    server.create_table(
        PEOPLE,
        "id integer, branch char(4), name varchar(40), paid decimal(12,2), primary key (branch, id)",
    )
    keep_rows(server)
    rows = [(n % 3, f"b{n // 3}", f"größe {n}", n / 4 if n % 5 else None) for n in range(20)]
    with server.transaction() as tx:
        for row in rows:
            tx.insert(PEOPLE, dict(zip(("id", "branch", "name", "paid"), row, strict=True)))

    assert bridge.ask("list_tables", DATABASE)["informix.people"] == [
        ["id", "branch", "name", "paid"],
        ["branch", "id"],
    ]
    found: list[dict[str, Any]] = []
    while page := bridge.ask("snapshot", "informix.people", _key(found), 6):
        found += page

    assert [
        (
            int(row["id"]),
            row["branch"].rstrip(),
            row["name"],
            None if row["paid"] is None else float(row["paid"]),
        )
        for row in found
    ] == sorted(rows, key=lambda row: (row[1], row[0]))


def _key(found: list[dict[str, Any]]) -> list[object] | None:
    return [found[-1]["branch"], int(found[-1]["id"])] if found else None


def shop(
    server: EmulatedServer, bridge: Program
) -> tuple[list[str], int, Workload, list[CommittedTransaction]]:
    """Let the bridge find a shop; its tables, where it begins, and what its workload has committed."""
    for name, text in COLUMNS.items():
        server.create_table(name, text)
    bridge.ask("list_tables", DATABASE)
    names = [name.partition(":")[2] for name in COLUMNS]
    position = bridge.ask("prepare", names)
    account: list[CommittedTransaction] = []
    work = Workload(server, seed=20, transactions_per_second=500, on_commit=account.append)
    return names, position, work, account


def of_transactions(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record for record in records if record["type"] not in ("METADATA", "TIMEOUT")]


def test_a_poll_of_a_shop_is_equal_to_its_account(place: tuple[EmulatedServer, Program]) -> None:
    server, bridge = place
    names, position, work, account = shop(server, bridge)
    work.run_transactions(SHOP_TRANSACTIONS)

    records = bridge.ask("changes", names, position, 1, MOST_RECORDS)

    table_of = {str(label): name for label, name in enumerate(COLUMNS, 1)}
    found = list(committed(of_transactions(records)))
    commits = [commit for commit, rows in found if rows]
    due = account[: len(commits)]
    assert first_difference(due, found, table_of) == ""
    assert len(commits) > 20
    assert not server.sessions()


@pytest.mark.parametrize("late_begin", [False, True])
def test_polls_that_begin_where_the_last_one_ended_are_equal_to_the_account(
    tmp_path: Path, late_begin: bool
) -> None:
    """Each begins at a COMMTX, and what has no BEGINTX is refused.

    So it works only where a session is shown nothing of transactions that began before it.
    """
    manner = {"hides_headless": True, "late_begin": late_begin}
    with served(poses_as="informix-15", **manner) as (server, port), bridged(tmp_path, port) as bridge:
        names, position, work, account = shop(server, bridge)
        found: list[tuple[int, list[Any]]] = []
        for part in (1, 2, 3):
            work.run_transactions(part * SHOP_TRANSACTIONS // 3)
            records = of_transactions(bridge.ask("changes", names, position, 1, MOST_RECORDS))
            found += committed(records)
            position = max(record["sequence"] for record in records)
    table_of = {str(label): name for label, name in enumerate(COLUMNS, 1)}
    assert first_difference(account, found, table_of) == ""
