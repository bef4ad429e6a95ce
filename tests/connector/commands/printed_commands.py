"""Commands that are printed, as a shell and the command line read them; nothing is run."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

import click

from informix_capture_client.sql_names import TableName
from informix_cdc.commands.cli import main
from informix_cdc.options import names


class ReadCommand(NamedTuple):
    """A command as the command line understands it."""

    word: str
    params: dict[str, object]

    @property
    def tables(self) -> list[TableName]:
        """The tables that it names."""
        given = self.params.get("tables") or names(str(self.params["table"]))
        assert isinstance(given, tuple)
        return [TableName.parse(str(each), str(self.params.get("database") or "")) for each in given]


def commands_in(text: str) -> list[str]:
    """Return each line of a text that is a command of informix-cdc, with what precedes it left out."""
    return [line[line.index("informix-cdc ") :] for line in text.splitlines() if _is_command(line)]


def _is_command(line: str) -> bool:
    return line.strip().partition("=")[2].partition(" ")[2].startswith("informix-cdc ") or (
        line.strip().startswith("informix-cdc ")
    )


def read_by_a_shell(command: str, folder: Path) -> list[str]:
    """Return the words that bash hands on, in an empty folder in which a name must make no file."""
    shell = ["bash", "-c", f"printf '%s\\0' {command}"]
    output = subprocess.run(shell, cwd=folder, stdout=subprocess.PIPE, check=True).stdout
    words = [os.fsdecode(word) for word in output.split(b"\0")[:-1]]
    assert [*folder.iterdir()] == []
    if "$'" not in command:
        assert shlex.split(command) == words
    return words


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that the first words name, and the others."""
    program, *words = words
    assert program == "informix-cdc"
    command: click.Command = main
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        word, *words = words
        command = command.commands[word]
    return command, words


def parsed(words: list[str]) -> ReadCommand:
    """Parse the words of a command as `informix-cdc` does.

    Raises:
        click.ClickException: it is refused.
    """
    command, words = command_of(words)
    context = command.make_context(command.name, words, parent=click.Context(main))
    read = ReadCommand(str(command.name), context.params)
    if read.word == "release":
        assert bool(read.params["checkpoints"]) != read.params["no_checkpoint"]
    return read
