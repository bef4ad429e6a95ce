"""A server's words are shown and not obeyed: no command prints a control character of theirs."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.live import Live
from rich.table import Table
from rich.text import Text

from informix_capture_client.errors import AccessRefused
from informix_capture_client.findings import Finding, State
from informix_capture_client.printable import printable
from informix_cdc.commands import doctor, status, tail
from informix_cdc.options import SourceOptions
from informix_cdc.terminal import say, say_unbroken, screen
from informix_cdc.terminal.change_text import as_lines, to_json
from informix_cdc.terminal.options import one_line_errors
from informix_cdc.terminal.screen import plain_console

COMMANDS = Path(doctor.__file__).parent
HOSTILE = "\x1b]0;mine\x07\x1b[2J\x9b31m\x7f\u202egnp\u2028[red]ok[/red]"
SHOWN = r"\u001b]0;mine\u0007\u001b[2J\u009b31m\u007f\u202egnp\u2028[red]ok[/red]"

IN_A_CELL = r"\u001b]0;mine\u001b[2J"  # rich leaves some out, and a cell may be cut


def steers(text: str) -> list[str]:
    return [sign for sign in text if sign != "\n" and unicodedata.category(sign) in ("Cc", "Cf", "Zl")]


@given(st.text())
def test_no_text_steers_a_terminal_and_plain_words_stay(text: str) -> None:
    assert steers(printable(text)) == []
    assert printable(printable(text)) == printable(text)
    assert json.loads(printable(json.dumps(text, ensure_ascii=False))) == text
    assert printable("Zürich 漢字 a\nb") == "Zürich 漢字 a\nb"


@pytest.mark.parametrize(
    "error", [AccessRefused(f"It said {HOSTILE}."), FileNotFoundError(2, "gone", HOSTILE)]
)
def test_an_error_shows_the_words_of_others_as_they_are(error: Exception) -> None:
    @click.command()
    def command() -> None:
        with one_line_errors():
            raise error

    result = CliRunner().invoke(command)
    assert SHOWN.partition(r"\u2028")[0] in result.stderr
    assert steers(result.stderr) == []


def test_an_error_is_printable_wherever_it_is_shown() -> None:
    assert steers(str(AccessRefused(HOSTILE, HOSTILE))) == []  # by Spark, in a notebook or a log


@pytest.mark.parametrize("sentence", [say, say_unbroken])
@pytest.mark.parametrize("to_stdout", [False, True])
@pytest.mark.parametrize("columns", [0, 80])
def test_no_sentence_steers_a_terminal(
    sentence: Callable[..., None],
    to_stdout: bool,
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(screen, "width_of", lambda _stream: columns)
    sentence(f"Following stores:{HOSTILE}.", to_stdout=to_stdout)
    shown = "".join(capsys.readouterr())
    assert SHOWN in shown
    assert steers(shown) == []


def printed(*pieces: object, live: bool = False) -> str:
    """Return what a console prints on a terminal, without the sequences of rich itself."""
    terminal = plain_console(file=(screen := io.StringIO()), force_terminal=True, width=120)
    if live:
        with Live(console=terminal, auto_refresh=False) as view:
            view.update(pieces[0], refresh=True)  # type: ignore[arg-type]
    else:
        terminal.print(*pieces)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", screen.getvalue())


def a_table() -> Table:
    table = Table("name", "value")
    table.add_row(HOSTILE, Text(HOSTILE))
    return table


@pytest.mark.parametrize("live", [False, True])
def test_no_table_line_or_live_view_steers_a_terminal(live: bool) -> None:
    shown = printed(a_table(), live=live)
    assert SHOWN in shown
    assert shown.count(IN_A_CELL[:10]) >= 2  # the other one, a Text, is cut
    assert steers(shown) == []
    for line in (Text(HOSTILE), Text("x").append(HOSTILE, "red")):
        assert IN_A_CELL in printed(line, live=live)
        assert steers(printed(line, live=live)) == []
    assert "[red]ok[/red]" in printed("[red]ok[/red]")  # nor is it markup


def test_a_table_is_as_wide_as_what_it_shows() -> None:
    widths = {len(line) for line in printed(a_table()).splitlines() if line.strip()}
    assert len(widths) == 1


def test_every_command_prints_through_the_one_console() -> None:
    """A `Console` of rich made anywhere else would let them through."""
    makers = [
        path.name for path in COMMANDS.glob("*.py") if re.search(r"\bConsole\(", path.read_text())
    ]
    assert makers == []
    assert all(hasattr(module, "answers") for module in (status, tail))
    assert hasattr(doctor, "plain_console")


def a_source() -> SourceOptions:
    given = {"host": "db1", "server": "ids1", "database": "db", "table": "a.b", "transport": "sqli"}
    return SourceOptions.parse({**given, "password": "x"})


@pytest.mark.parametrize("as_json", [False, True])
def test_the_doctor_shows_a_hostile_answer(
    as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [Finding("connection", State.FAILURE, HOSTILE, HOSTILE, table=f"db:{HOSTILE}")]
    monkeypatch.setattr(doctor, "diagnose", lambda *_: iter([found]))
    monkeypatch.setenv("COLUMNS", "400")
    doctor.print_findings(a_source(), as_json=as_json)
    shown = capsys.readouterr().out
    assert IN_A_CELL in shown.replace(r"\u0007", "")
    assert steers(shown) == []
    if as_json:
        assert json.loads(shown)["findings"][0]["remedy"] == HOSTILE


def test_a_line_of_json_and_a_line_for_people_show_a_hostile_cell() -> None:
    change: Any = SimpleNamespace(change_type="insert", row={"note": HOSTILE}, metadata={})
    line = to_json(change)
    assert steers(line) == []
    assert json.loads(line)["row"] == {"note": HOSTILE}
    assert steers(printed(next(as_lines([change]))[1])) == []


def test_the_line_breaks_of_a_server_begin_no_line_of_the_doctor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "refused\nok       connection          all is well\n\nmore"
    found = [Finding("connection", State.FAILURE, text, text)]
    monkeypatch.setattr(doctor, "diagnose", lambda *_: iter([found]))
    monkeypatch.setenv("COLUMNS", "400")
    doctor.print_findings(a_source(), as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert not any(line.startswith(("ok", "more")) for line in lines)
    assert sum("refused ok connection all is well more" in line for line in lines) == 2
