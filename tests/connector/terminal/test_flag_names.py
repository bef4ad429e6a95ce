"""Errors on the command line name flags."""

from __future__ import annotations

import click
import pytest

from informix_cdc.commands.cli import main
from informix_cdc.terminal.flag_names import in_flags, no_such_flag

TEXTS = [
    ("option 'startingPosition' must be a place.", "--from must be a place."),
    ("options 'passwordFile' and 'user' both", "--password-file and --user both"),
    (
        "Set option passwordFile, option passwordCommand or X",
        "Set --password-file, --password-command or X",
    ),
    ("set options host, port, database and server.", "set --host, --port, --database and --server."),
    ("or set authentication=trusted if", "or set --authentication=trusted if"),
    ("with option unsupportedColumns=omit, or", "with --unsupported-columns=omit, or"),
    ("Remove it from option table.", "Remove it from --table."),
    ("Set snapshotKey=informix.t(a, b).", "Set --snapshot-key=informix.t(a, b)."),
    # not of this command, and no option
    ("option 'maxRowsPerTrigger' and onDataLoss=continue", None),
    ("the table of user joe on port 1: host=, x.columns=1", None),
]


@pytest.mark.parametrize(("text", "shown"), TEXTS, ids=[text for text, _ in TEXTS])
def test_an_option_is_named_by_the_flag_of_the_command(text: str, shown: str | None) -> None:
    with click.Context(main.commands["tail"]):
        assert in_flags(text) == (text if shown is None else shown)


def test_commands_whose_tables_are_arguments_say_so() -> None:
    with click.Context(main.commands["release"]):
        assert in_flags("Set option table to a.b.") == "Set argument TABLE to a.b."
        assert in_flags("option 'table' must be") == "argument TABLE must be"


HINTS = [
    ("tail", "--startingPosition", "Use --from."),
    ("tail", "--starting-position", "Use --from."),
    ("tail", "--tlsCaFile", "Use --tls-ca-file."),
    ("tail", "--spoolPath", "It is option spoolPath of the Spark source."),
    ("tail", "--initialSnapshot", "Use --snapshot."),
    ("status", "--database", "Omit it: status covers the whole server."),
    ("status", "--table", "Omit it: status covers the whole server."),
    ("release", "--table", "Give the tables as arguments: release informix.orders."),
]


@pytest.mark.parametrize(("word", "flag", "hint"), HINTS)
def test_a_flag_that_a_command_lacks_is_answered_with_what_there_is(
    word: str, flag: str, hint: str
) -> None:
    shown = no_such_flag(flag, click.Context(main.commands[word], info_name=word))
    assert shown.startswith(f"{flag} is not a flag of {word}. ")
    assert shown.endswith(hint)


def test_a_flag_that_no_option_is_called_like_is_left_to_click() -> None:
    assert no_such_flag("--nothing", click.Context(main.commands["tail"], info_name="tail")) == ""


def test_outside_of_a_command_an_option_keeps_its_name() -> None:
    assert in_flags("option 'table'") == "option 'table'"
