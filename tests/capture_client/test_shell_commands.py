"""Commands that are shown and pasted: a shell hands on what was meant, and runs nothing else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from informix_capture_client.catalog.set_up import check_cdc_locale
from informix_capture_client.dialects import GBASE_8S
from informix_capture_client.log_events import logfmt
from informix_capture_client.shell_commands import (
    command,
    command_for_log,
    command_granting_capture,
    shell_words,
)

AWKWARD = (
    *("plain", "two words", "two\nlines", "a\n touch pwned\n", "\t", "\x1b[31m", "\u202e'0a", "\u2028"),
    *("$(touch pwned)", "`touch pwned`", "'$(touch pwned)'", "'; touch pwned; '", '"; touch pwned; "'),
    *("a;touch pwned&", "!x", "*", "~", "#", "{a,b}", "$'\\x41'", "\\", "%s", "é", "\U0001f600"),
    *("/p/\udcff/x", "\udcff'$(touch pwned)'"),
)
STUBS = "informix-cdc() { printf '<%s>' \"$@\"; }\ndbaccess() { env | grep -a _LOCALE; cat; }\n"


def pasted(text: str, folder: Path) -> str:
    """Return what a command prints in an empty folder, in which a name must make no file."""
    result = subprocess.run(["bash", "-c", STUBS + text], cwd=folder, capture_output=True, check=False)
    assert [*folder.iterdir()] == []
    return os.fsdecode(result.stdout)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_a_shell_reads_each_word_back(encoding: str, tmp_path: Path) -> None:
    line = " ".join(shell_words(("informix-cdc", *AWKWARD), encoding))
    assert pasted(line, tmp_path) == "".join(f"<{word}>" for word in AWKWARD)


@pytest.mark.parametrize("name", AWKWARD)
def test_a_command_in_a_line_of_the_log_runs_nothing_else(name: str, tmp_path: Path) -> None:
    words = ("release", f'informix."{name}"', "--host", name, "--server", "ids1")
    line = logfmt({"event": "x", "remedy": command_for_log(*words)})
    value = line.partition("remedy=")[2]
    host = f"<--host><{name}>" if command(name) == f"informix-cdc {name}" else ""
    assert pasted(value[1:-1], tmp_path) == f"<release>{host}<--server><ids1>"
    assert pasted(value, tmp_path) == ""


@pytest.mark.parametrize("user", [name for name in AWKWARD if name != "plain"])
def test_a_user_in_a_grant_is_one_name_of_sql(user: str, tmp_path: Path) -> None:
    name = '"' + user.replace('"', '""') + '"' if user != "é" else user
    assert pasted(command_granting_capture(user), tmp_path) == f"GRANT DBA TO {name}\n"


@pytest.mark.parametrize("locale", ["en_US.57372 x=$(touch pwned); touch pwned;", "en_US.utf8"])
def test_a_locale_of_the_server_is_one_word(locale: str, tmp_path: Path) -> None:
    advice = check_cdc_locale("en_US.819", "stores", locale, GBASE_8S).advice
    made = pasted(advice[advice.index("DB_LOCALE=") :] + " < /dev/null", tmp_path)
    assert sorted(made.splitlines()) == [f"CLIENT_LOCALE={locale}", f"DB_LOCALE={locale}"]
