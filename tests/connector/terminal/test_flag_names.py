"""Errors on the command line name flags."""

from __future__ import annotations

import click
import pytest

from informix_cdc.commands.cli import main
from informix_cdc.terminal.flag_names import in_flags

TEXTS = [
    ("option 'startingPosition' must be a place.", "--from must be a place."),
    ("options 'passwordFile' and 'user' both", "--password-file and --user both"),
    (
        "Set option passwordFile, or passwordCommand, or X",
        "Set --password-file, or --password-command, or X",
    ),
    ("set options host, port, database and server.", "set --host, --port, --database and --server."),
    ("or authentication=trusted where", "or --authentication=trusted where"),
    ("with option unsupportedColumns=omit, or", "with --unsupported-columns=omit, or"),
    ("Take it out of option table.", "Take it out of --table."),
    ("Set snapshotKey=informix.t(a, b).", "Set --snapshot-key=informix.t(a, b)."),
    # not of this command, and no option
    ("option 'maxRowsPerTrigger' and failOnDataLoss=false", None),
    ("the table of user joe on port 1: host=, x.columns=1", None),
]


@pytest.mark.parametrize(("text", "shown"), TEXTS, ids=[text for text, _ in TEXTS])
def test_an_option_is_named_by_the_flag_of_the_command(text: str, shown: str | None) -> None:
    with click.Context(main.commands["tail"]):
        assert in_flags(text) == (text if shown is None else shown)


def test_outside_of_a_command_an_option_keeps_its_name() -> None:
    assert in_flags("option 'table'") == "option 'table'"
