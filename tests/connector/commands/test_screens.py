"""What a person sees on a terminal of 80 columns: each word whole on a line, colour with meaning."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.text import Text

from connector.commands.conftest import connection_arguments
from harness.runs.terminal import lines_on, on_a_terminal, words_of
from harness.runs.tiers import rest_in_all
from harness.spark.checkpoints import offset, run_batches
from informix_capture_client.positions import log_page
from informix_cdc.commands import emulator as emulator_command
from informix_cdc.commands import tail as tail_command
from informix_cdc.commands.cli import main
from informix_cdc.options import PASSWORD_VARIABLE
from informix_cdc.terminal import screen
from informix_cdc.terminal.screen import plain_console
from informix_emulator import ListeningServer
from informix_emulator.shop import CUSTOMERS, ORDERS, PASSWORD

pytestmark = pytest.mark.slow

COLUMNS = 80
LONGEST = 48  # columns; what is longer may not fit beside an indent: paths of this test's folder
ENVIRONMENT = {PASSWORD_VARIABLE: PASSWORD, "PYSPARK_PYTHON": sys.executable}
WORD = [sys.executable, "-m", "informix_cdc.commands.cli"]
TABLES = "--table=informix.customers,informix.orders"


def broken_words(narrow: str, wide: str) -> dict[str, int]:
    """Return the words of the unwrapped text that do not stand whole on the lines of the narrow one."""
    missing = words_of(wide.splitlines()) - words_of(lines_on(narrow, COLUMNS))
    return {word: count for word, count in missing.items() if len(word) <= LONGEST}


@pytest.fixture
def busy(shop: ListeningServer) -> ListeningServer:
    """A shop with rows that are wider than any screen."""
    for table in (ORDERS, CUSTOMERS):
        shop.server.set_full_row_logging(table, on=True)
    with shop.server.transaction() as transaction:
        transaction.insert(
            CUSTOMERS,
            {
                "customer_num": 101,
                "fname": "Ludwig",
                "lname": "von Pauli",
                "company": "Sports Supplies and More",
                "city": "Sunnyvale",
                "phone": "408-789-8075",
            },
        )
        transaction.insert(ORDERS, {"order_num": 1001, "customer_num": 101})
    return shop


def both(command: list[str], between: Callable[[], object] = list) -> tuple[str, str]:
    """Return what a command shows on the terminal, and what it writes into a pipe."""
    narrow = on_a_terminal([*WORD, *command], ENVIRONMENT, COLUMNS)
    between()
    # in this process: a command without a terminal is tried as a process by the tests of `tail`
    wide = CliRunner().invoke(main, command, env={**ENVIRONMENT, "COLUMNS": "4000"})
    return narrow, wide.output


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        *([name, flag] for name in sorted(main.commands) for flag in ("--help", "--help-all")),
    ],
    ids=" ".join,
)
def test_help_breaks_no_word_and_no_flag(command: list[str]) -> None:
    def page(width: int) -> str:
        settings = {"terminal_width": width, "max_content_width": width}
        return CliRunner().invoke(main, command, **settings).output

    wide, narrow = page(4000), page(COLUMNS)
    assert not words_of(wide.splitlines()) - words_of(narrow.splitlines())
    assert max(map(len, narrow.splitlines())) <= COLUMNS


# Each has more than ten flags of its own.
LONG = {"alter": 30, "emulator": 34, "status": 28}


@pytest.mark.parametrize("command", sorted(main.commands))
def test_help_is_one_screen(command: str) -> None:
    page = CliRunner().invoke(main, [command, "--help"], terminal_width=COLUMNS).output
    assert len(page.splitlines()) <= LONG.get(command, 24)


def test_a_command_s_own_flags_come_before_those_that_all_have() -> None:
    for flag, heading in (("--help", "Options of the source"), ("--help-all", "Connection:")):
        page = CliRunner().invoke(main, ["tail", flag], terminal_width=COLUMNS).output
        own, found, shared = page.partition(heading)
        assert found
        assert {"--from", "--limit", "--help"} <= set(re.findall(r"--[a-z-]+", own))
        assert {"--host", "--password-file"} <= set(re.findall(r"--[a-z-]+", shared))
        assert "--host" not in own
        assert ("--db-locale" in shared) == ("[default: auto]" in page) == (flag == "--help-all")
    alone = CliRunner().invoke(main, ["jar", "--help"]).output
    assert "Options of the source" not in alone


def test_each_command_has_a_short_help_that_is_a_whole_sentence() -> None:
    for name, command in main.commands.items():
        assert (command.short_help or "").endswith("."), name
        assert len(f"  {name:8}  {command.short_help}") <= COLUMNS, name
    assert (
        "..."
        not in CliRunner()
        .invoke(main, ["--help"], terminal_width=COLUMNS)
        .output.partition("Commands:")[2]
    )


@pytest.mark.parametrize(
    "command",
    rest_in_all(
        [
            ["doctor", TABLES],
            ["doctor", "--table=informix.odrers"],
            ["doctor", TABLES, "--port=1", "--delivery=grpc+tls://203.0.113.7"],
            ["doctor", "--table=orders"],
            ["tail", TABLES, "--from=earliest", "--limit=2"],
            ["acquire", "informix.orders"],
            ["release", "informix.items", "--no-checkpoint", "--yes"],
            ["release", "informix.orders", "--no-checkpoint", "--yes"],
            ["release", "informix.orders"],
            ["record", TABLES, "--to=/nowhere/at/all"],
            ["status"],
            ["tail", TABLES, "--connection-string=PWD=x"],
        ]
    ),
    ids=" ".join,
)
def test_a_screen_breaks_no_word(busy: ListeningServer, command: list[str]) -> None:
    word, *others = command
    connection = [
        each for each in connection_arguments(busy) if word != "status" or "database" not in each
    ]
    narrow, wide = both([word, *connection, *others])
    assert wide.strip()
    if "switched off" not in narrow:  # else the second of them has less to say
        assert broken_words(narrow, wide) == {}


def test_the_status_of_a_checkpoint_breaks_no_word(busy: ListeningServer, tmp_path: Path) -> None:
    here = log_page(1, 0)
    lost = ["ROW_LOGGING_OFF", "full row logging of stores:informix.orders was switched off meanwhile."]
    run_batches(tmp_path, {**offset(here, here, 5, 6, 7), "lost": lost})
    connection = [each for each in connection_arguments(busy) if "database" not in each]
    for flags in ([], ["--offsets"]):
        narrow, wide = both(["status", f"--checkpoint={tmp_path}", *flags, *connection])
        assert "was switched off meanwhile" in " ".join(narrow.split())
        assert broken_words(narrow, wide) == {}


def test_what_the_emulator_says_is_broken_between_words(
    shop: ListeningServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    emulator_command.announce(shop, None, "informix")
    wide = "".join(capsys.readouterr())
    monkeypatch.setattr(screen, "width_of", lambda _stream: COLUMNS)
    emulator_command.announce(shop, None, "informix")
    command, sentences = capsys.readouterr()
    assert broken_words(sentences + command, wide) == {}
    assert len(command.splitlines()) == 1  # to be copied


@pytest.mark.only_in_all
def test_a_long_row_is_continued_below_its_values_and_only_the_time_is_bold(
    busy: ListeningServer,
) -> None:
    command = ["tail", *connection_arguments(busy), TABLES, "--from=earliest", "--limit=2"]
    screen = on_a_terminal([*WORD, *command], ENVIRONMENT, COLUMNS)
    lines = lines_on(screen, COLUMNS)
    first = next(number for number, line in enumerate(lines) if "insert   customers" in line)
    assert lines[first + 1].startswith(" " * 31)
    assert lines[first + 1][31] != " "
    assert "Sports Supplies and More" in " ".join(" ".join(lines[first : first + 5]).split())
    assert "\x1b[32minsert" in screen  # green, and not bold
    assert "\x1b[1mcustomer_num" in screen


@pytest.mark.only_in_all
def test_a_remedy_is_one_line_for_whoever_copies_it(busy: ListeningServer) -> None:
    del busy.server.databases["syscdcv1"]
    command = ["doctor", *connection_arguments(busy), TABLES]
    screen = on_a_terminal([*WORD, *command], ENVIRONMENT, COLUMNS)
    (remedy,) = [line for line in screen.splitlines() if line.rstrip().endswith("syscdcv1.sql")]
    assert len(lines_on(remedy, COLUMNS)) > 1
    narrow, wide = both(command)
    assert broken_words(narrow, wide) == {}


@pytest.mark.parametrize(
    "command",
    [
        ["tail", "--hots=x"],
        ["tail", "--limit=0"],
        ["emulator", "--replay=/etc/hosts", "--wait-to-fill"],
    ],
)
def test_an_error_of_usage_is_broken_between_words(command: list[str]) -> None:
    narrow, wide = (text.partition("Error: ")[2] for text in both(command))  # before it: who was called
    assert wide
    assert broken_words("Error: " + narrow, wide) == {}


def test_ctrl_c_on_a_terminal_leaves_whole_rows_and_whole_sentences(
    busy: ListeningServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The terminal shows ^C where the cursor is: what follows would be longer than its line."""
    monkeypatch.setattr(screen, "width_of", lambda _stream: COLUMNS)
    with screen.ended_by_interrupt():
        raise KeyboardInterrupt
    screen.say("Full row logging remains on.")
    assert capsys.readouterr().err == "\nFull row logging remains on.\n"
    monkeypatch.setattr(screen, "width_of", lambda _stream: 0)
    with screen.ended_by_interrupt():
        raise KeyboardInterrupt
    assert capsys.readouterr().err == ""  # a pipe has no ^C


def test_a_row_of_several_lines_is_printed_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[str] = []
    console = plain_console(file=io.StringIO(), force_terminal=True, width=COLUMNS)
    monkeypatch.setattr(console, "print", lambda piece: pieces.append(piece.plain))
    tail_command._print(console, Text("18:54:13 insert   orders       "), Text("word " * 40))
    (piece,) = pieces
    assert len(piece.splitlines()) > 1
    assert all(len(line) <= COLUMNS for line in piece.splitlines())


def test_waiting_is_shown_on_a_terminal_and_is_a_plain_line_elsewhere(
    busy: ListeningServer, tmp_path: Path
) -> None:
    command = ["record", *connection_arguments(busy), TABLES, "--reads=2"]
    screen = on_a_terminal([*WORD, *command, f"--to={tmp_path / 'a.jsonl'}"], ENVIRONMENT, COLUMNS)
    assert "━" in screen
    assert "0:00:0" in screen
    _, plain = both([*command, f"--to={tmp_path / 'b.jsonl'}"])
    assert "━" not in plain
    assert "\x1b" not in plain
