"""Flags for a safer connection: TLS, a trusted host, a command for the password."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from connector.commands.conftest import connection_arguments
from informix_cdc.commands.cli import main
from informix_emulator import ListeningServer
from informix_emulator.shop import PASSWORD
from odbc_driver.build import build_drivers


def doctor(shop: ListeningServer, *arguments: str, home: Path) -> Result:
    """Run the doctor over ODBC, without the variable for the password."""
    given = [each for each in connection_arguments(shop) if "transport" not in each]
    driver = f"--driver={build_drivers().narrow}"
    command = ["doctor", *given, driver, "--table=informix.orders", *arguments]
    environment = {"INFORMIX_CDC_PASSWORD": None, "INFORMIXDIR": str(home), "COLUMNS": "300"}
    return CliRunner().invoke(main, command, env=environment)


@pytest.fixture
def by_command(tmp_path: Path) -> str:
    (tmp_path / "secret").write_text(PASSWORD)
    return f"--password-command=cat {shlex.quote(str(tmp_path / 'secret'))}"


def test_tls_is_asked_for_by_a_flag_and_the_client_s_file_is_looked_for(
    shop: ListeningServer, by_command: str, tmp_path: Path
) -> None:
    result = doctor(shop, by_command, "--encryption=tls", home=tmp_path)
    assert f"TLS is requested, but {tmp_path}/etc/conssl.cfg cannot be read" in result.stdout
    assert "speaks protocol onsoctcp only" in result.stdout  # the test driver: TLS is asked for by name
    assert result.exit_code == 1
    assert PASSWORD not in result.output


def test_a_host_that_is_not_trusted_is_a_finding(shop: ListeningServer, tmp_path: Path) -> None:
    result = doctor(shop, "--authentication=trusted", home=tmp_path)
    assert "does not trust this host" in result.stdout
    assert "no password is sent" in result.stdout
    assert result.exit_code == 1


def test_a_command_that_gives_no_password_is_a_finding_that_does_not_show_it(
    shop: ListeningServer, tmp_path: Path
) -> None:
    result = doctor(shop, f"--password-command=sh -c 'echo {PASSWORD}; exit 4'", home=tmp_path)
    assert "the command ended with exit code 4" in result.stdout
    assert PASSWORD not in result.output
