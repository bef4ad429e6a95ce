"""`informix-cdc cutover`, as an operator runs it beside a mirror."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.lake.ledger import Ledger, LedgerTable, ledger
from harness.lake.mirroring import is_caught_up, until
from harness.lake.postgresql import PostgresRun, postgres, session
from harness.runs.background import meanwhile
from harness.servers.stores import PASSWORD
from informix_cdc.commands.cli import main
from informix_cdc.lake import verifying
from informix_cdc.postgresql import LocalServer

pytestmark = pytest.mark.slow
ORDERS = LedgerTable("orders", ("k0",), {"k0": "serial", "c0": "varchar(40,0)"})


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with postgres() as made:
        yield made


class Evening:
    """A mirror with a file, and its commands."""

    def __init__(self, made: Ledger, run: PostgresRun, folder: Path) -> None:
        self.made, self.run = made, run
        self.file = folder / "shop.toml"
        into = {
            "into": run.settings.into,
            "checkpoint": run.settings.checkpoint,
            "format": "postgresql",
        }
        lines = [f"{name} = {json.dumps(value)}" for name, value in into.items()]
        lines += ["[storage_options]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in run.server.parameters.items()]
        source = {name: value for name, value in run.source.items() if name != "password"}
        lines += ["[source]", *(f"{name} = {json.dumps(str(value))}" for name, value in source.items())]
        self.file.write_text("\n".join(lines))

    def command(self, *flags: str) -> Result:
        environment = {"INFORMIX_CDC_PASSWORD": PASSWORD}
        return CliRunner().invoke(main, ["cutover", str(self.file), *flags], env=environment)

    @contextmanager
    def mirrored(self) -> Iterator[None]:
        with self.run.running() as step:
            until(step, is_caught_up(self.run, self.made))
            with meanwhile(step):
                yield


@pytest.fixture
def evening(server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Evening]:
    monkeypatch.setattr(verifying, "_POLL_SECONDS", 0.05)
    with ledger(41, 1) as (made, listening):
        made.add(ORDERS)
        made.change(30)
        run = PostgresRun(tmp_path, listening.port, server, snapshotParallelism="8")
        yield Evening(made, run, tmp_path)


def test_an_evening_with_rehearsal_and_way_back(evening: Evening) -> None:
    with evening.mirrored():
        rehearsed = evening.command("--dry-run", "--when-idle", "0.3")
        assert rehearsed.exit_code == 0, rehearsed.output
        assert "nothing was changed" in rehearsed.stderr
        done = evening.command()
        assert done.exit_code == 0, done.output
    lines = rehearsed.stdout.splitlines()
    assert lines[0].startswith("rehearsed, with commit ")
    assert done.stdout.splitlines()[0].startswith("cut over at ")
    assert done.stdout.splitlines()[1:] == lines[1:]
    rows = len(evening.made.state_at(evening.made.last_change)["orders"])
    assert any(line.startswith(f"informix.orders -> orders: {rows:,} rows, digest ") for line in lines)
    assert any(line.startswith("orders.k0: the next number is ") for line in lines)
    assert f"informix-cdc cutover {evening.file} --undo" in " ".join(done.stderr.split())
    with session(evening.run.server) as other:
        other.execute(f"INSERT INTO {evening.run.schema}.orders (c0) VALUES ('new')")
    again = evening.command()
    assert (again.exit_code, "was cut over at" in again.stderr) == (2, True)
    undone = evening.command("--undo")
    assert undone.exit_code == 0, undone.output
    assert f"informix-cdc mirror {evening.file}" in " ".join(undone.stderr.split())


def test_what_prevents_it_is_printed_line_by_line(evening: Evening) -> None:
    with evening.mirrored():
        pass
    not_running = evening.command()
    assert (not_running.exit_code, "no mirror is running" in not_running.stderr) == (1, True)
    transaction = evening.made.server.begin()
    transaction.insert(ORDERS.full_name, {"k0": 10_000, "c0": "open"})
    prevented = evening.command()
    transaction.rollback()
    assert prevented.exit_code == 1
    assert "Not cut over: stores:informix.orders has locks of session" in prevented.stderr
    assert prevented.stdout == ""


def test_it_needs_the_file_of_a_mirror(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["cutover"])
    assert (found.exit_code, "FILE.toml" in found.stderr) == (2, True)
