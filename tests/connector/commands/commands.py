"""Run a command of `informix-cdc` in this process, against the stores server or none."""

from __future__ import annotations

from click.testing import CliRunner, Result

from harness.servers.stores import DATABASE, PASSWORD
from informix_cdc.commands.cli import main
from informix_cdc.options import PASSWORD_VARIABLE
from informix_emulator import ListeningServer


def server_options(listening: ListeningServer) -> list[str]:
    return [
        "--host=127.0.0.1", f"--port={listening.port}", "--server=informix", "--transport=sqli",
    ]  # fmt: skip


def run(listening: ListeningServer, command: str, *arguments: str, answer: str | None = None) -> Result:
    connection = [*server_options(listening), f"--database={DATABASE}"]
    return run_plain(command, *connection, *arguments, answer=answer)


def run_plain(*arguments: str, answer: str | None = None) -> Result:
    environment = {PASSWORD_VARIABLE: PASSWORD, "COLUMNS": "240"}
    found = CliRunner().invoke(main, arguments, env=environment, input=answer)
    assert PASSWORD not in found.output
    return found


def refusal(result: Result, exit_code: int = 1) -> str:
    """Return the one line with which a command refused, behind what it may have asked."""
    assert result.exit_code == exit_code, result.output
    *_, line = result.stderr.splitlines()
    assert line.startswith("Error: IFXCDC-")
    return line
