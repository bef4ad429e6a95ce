"""The commands of README and the pages: each that has arguments is one that the command line takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from connector.commands.printed_commands import command_of, parsed
from informix_cdc.commands import configuration

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        *(
            path
            for folder in ("", "evidence", "operations")
            for path in (ROOT / "docs" / folder).glob("*.md")
        ),
    ]
)
_BLOCK = re.compile(r"^ *```[^\n]*\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_ENDS = {"&", "|", ">", ";", "2>", "&&"}


def commands_of(page: Path) -> Iterator[str]:
    text = page.read_text()
    for block in _BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            before, found, rest = line.partition("informix-cdc ")
            if found and re.fullmatch(r"\s*(?:\$ )?(?:[A-Z_]+=\S+ )*", before):
                yield found + rest


def words_of(command: str) -> list[str]:
    words = shlex.split(command, comments=True)
    ends = [number for number, word in enumerate(words) if word in _ENDS]
    return words[: min(ends, default=len(words))]


def test_the_pages_have_commands() -> None:
    assert sum(len([*commands_of(page)]) for page in PAGES) > 12


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_command_of_a_page_is_one_that_is_taken(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # --trace-wire makes its file
    monkeypatch.setattr(click.Path, "convert", lambda _self, value, *_: value)  # its files are not here
    of_file = {"checkpoint": "/c", "checkpoints": ["/c"]}
    monkeypatch.setattr(configuration, "of_commands", lambda _: of_file)
    for command in commands_of(page):
        parsed(words_of(command))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_flag_that_a_sentence_names_is_one_of_its_command(page: Path) -> None:
    sentences = re.sub(r"\s+", " ", _BLOCK.sub("", page.read_text()))
    for piece in sentences.split("`")[1::2]:
        if piece.startswith("informix-cdc "):
            command, words = command_of(piece.split())
            known = {flag for param in command.params for flag in param.opts}
            named = {word.partition("=")[0] for word in words if word.startswith("--")}
            assert named <= known | {"--help"}, piece
