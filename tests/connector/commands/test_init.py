"""The file that `informix-cdc init` writes is one with which a mirror starts."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from connector.commands.commands import run_plain
from connector.commands.test_mirror import served

KINDS = [
    ("informix.orders", "order_num serial primary key"),
    ("informix.nokey", "a integer"),
    ("informix.tags", "id serial primary key, t set(integer not null)"),
    ("informix.lines", 'id serial primary key, "Line No" integer'),
    ("joe.orders", "id serial primary key"),
    ('joe."it\'s"', "a integer"),
]


def written(folder: Path, port: int, *flags: str) -> Path:
    path = folder / "stores.toml"
    connection = ("--host=127.0.0.1", f"--port={port}", "--server=informix", "--database=stores")
    found = run_plain("init", str(path), *connection, *flags, f"--into={folder}/lake")
    assert found.exit_code == 0, found.output
    text = path.read_text().replace(str(Path.cwd() / "checkpoints"), str(folder))  # the checkpoint
    path.write_text(text)
    return path


def test_tables_of_all_kinds_are_settled(tmp_path: Path) -> None:
    with served(*KINDS) as port:
        path = written(tmp_path, port)
        plan = run_plain("mirror", str(path), "--plan", "--json")
    assert plan.exit_code == 0, plan.output
    shown = json.loads(plan.stdout)
    assert {each["table"]: each["keep"] for each in shown["tables"]} == {
        "informix.orders": "current",
        "informix.nokey": "changes",
        "joe.orders": "current",
    }
    assert {each["target"] for each in shown["tables"]} >= {"informix_orders", "joe_orders"}
    settings = tomllib.loads(path.read_text())
    assert settings["source"]["table"][1:] == [
        "!informix.tags",
        "!informix.lines",
        '!joe."it\'s"',
    ]
    assert "# its columns" in path.read_text() or "# columns cannot be captured" in path.read_text()


def test_two_hundred_tables_are_a_readable_file(tmp_path: Path) -> None:
    tables = [
        (f"informix.t{n:03}", "id integer" if n % 20 == 7 else "id serial primary key")
        for n in range(200)
    ]
    with served(*tables) as port:
        path = written(tmp_path, port, "--user=informix")
        assert run_plain("mirror", str(path), "--plan").exit_code == 0
    lines = path.read_text().splitlines()
    assert len(lines) < 60
    assert max(map(len, lines)) <= max(100, len(str(tmp_path)) + 90)
    assert 'user = "informix"' in lines
    assert 'table = "*.*"  # 200 tables' in lines


def test_problems_of_one_kind_are_one_paragraph_with_a_block_to_paste(tmp_path: Path) -> None:
    tables = [(f"informix.t{n}", "id integer") for n in range(3)]
    with served(*tables) as port:
        path = written(tmp_path, port)
        text = path.read_text()
        path.write_text(text.partition("\n[tables.")[0])
        found = run_plain("mirror", str(path), "--plan")
        assert found.exit_code == 1
        assert found.stderr.count("its rows cannot be identified") == 1
        block = found.stderr.partition("In the file:\n")[2].partition("\n\n")[0]
        path.write_text(path.read_text() + "\n".join(line.strip() for line in block.splitlines()))
        assert run_plain("mirror", str(path), "--plan").exit_code == 0


def test_a_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("mine")
    result = run_plain("init", str(path), "--host=h", "--server=s", "--database=d")
    assert (result.exit_code, path.read_text()) == (2, "mine")


@pytest.mark.parametrize("flags", [["--mask=informix.orders.note=null"], ["--table=informix.or*"]])
def test_what_was_given_is_written(flags: list[str], tmp_path: Path) -> None:
    with served(("informix.orders", "order_num serial primary key, note char(8)")) as port:
        source = tomllib.loads(written(tmp_path, port, *flags).read_text())["source"]
    name, _, value = flags[0].removeprefix("--").partition("=")
    assert source[name] == value
