"""Commands without an ODBC driver, and the record of what passes over the wire."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.commands.commands import run_plain, server_options
from harness.servers.stores import ORDERS, PASSWORD, listening_stores, order_row
from informix_emulator import ListeningServer
from informix_emulator.sqli.pam import Prompt, PromptStyle
from odbc_driver.build import build_drivers

WRONG = "wr0ng-and-secret"
CODECS = ("utf-8", "utf-16-le", "utf-16-be")


def without_transport(listening: ListeningServer) -> list[str]:
    return [each for each in server_options(listening) if "transport" not in each]


@pytest.fixture
def shop() -> Iterator[ListeningServer]:
    with listening_stores() as (_, listening):
        yield listening


@pytest.fixture(autouse=True)
def no_kit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INFORMIXDIR", raising=False)


def test_a_command_that_finds_no_driver_connects_without_one(shop: ListeningServer) -> None:
    result = run_plain("status", *without_transport(shop))
    assert result.exit_code == 0, result.output
    assert "ODBC" not in result.output


@pytest.mark.parametrize(
    ("flag", "option"),
    [
        ("--connection-string=CLIENT_LOCALE=en_us.8859-1", "--connection-string"),
        ("--connection-string=OPTOFC=1", "--connection-string"),
    ],
)
def test_an_option_that_needs_a_driver_is_named_where_there_is_none(
    flag: str, option: str, shop: ListeningServer
) -> None:
    result = run_plain("status", *without_transport(shop), flag)
    assert result.exit_code == 1, result.output
    assert "No Informix ODBC driver was found" in result.output
    assert f"and {option} requires one." in result.output
    assert f"sqli needs no driver, if {option} is not set." in result.output


def test_a_port_that_closes_each_connection_is_one_to_check() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def close_the_first() -> None:
            listener.accept()[0].close()

        thread = threading.Thread(target=close_the_first)
        thread.start()
        flags = ("--host=127.0.0.1", f"--port={port}", "--server=informix", "--transport=sqli")
        result = run_plain("status", *flags)
        thread.join()
    assert result.exit_code == 1, result.output
    assert "broke before the login was complete" in result.stderr
    assert "Check host and port" in result.stderr


def test_a_host_without_an_address_is_said_to_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    result = run_plain("status", "--host=db.exmaple", "--server=informix", "--transport=sqli")
    assert result.exit_code == 1
    assert "The host of db.exmaple:9088 is not known here" in result.stderr
    assert "firewall" not in result.stderr


def test_a_command_that_is_named_a_driver_takes_it(shop: ListeningServer) -> None:
    result = run_plain("status", *without_transport(shop), f"--driver={build_drivers().narrow}")
    assert result.exit_code == 0, result.output
    assert "No ODBC driver" not in result.output


def test_a_command_that_is_told_odbc_names_the_other_way(shop: ListeningServer) -> None:
    result = run_plain("status", *without_transport(shop), "--transport=odbc")
    assert result.exit_code != 0
    assert "transport=sqli needs no driver" in result.output


def test_a_trace_has_each_message_and_no_password(shop: ListeningServer, tmp_path: Path) -> None:
    path = tmp_path / "wire.txt"
    result = run_plain("status", *server_options(shop), f"--trace-wire={path}")
    assert result.exit_code == 0, result.output
    text = path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert all(re.fullmatch(r"\S+Z \d+ [<>] [\w ]+ [0-9a-f]*", line) for line in text.splitlines())
    assert {" > login ", " < login answer ", " > SQ_PREPARE ", " < SQ_TUPLE ", " > SQ_EXIT "} <= set(
        re.findall(r" [<>] [\w ]+ ", text)
    )
    for codec in CODECS:
        assert PASSWORD.encode(codec).hex() not in text
    assert PASSWORD not in text


@pytest.mark.parametrize("way", ["environment", "file", "refused", "asked by PAM"])
def test_a_trace_of_rows_that_pass_has_no_password_whichever_way_it_comes(
    way: str, shop: ListeningServer, tmp_path: Path
) -> None:
    path, secret = tmp_path / "wire.txt", tmp_path / "secret"
    secret.write_text(WRONG if way == "refused" else PASSWORD)
    given = [f"--password-file={secret}"] if way in ("file", "refused") else []
    if way == "asked by PAM":
        shop.server.prompts = (Prompt(PromptStyle.HIDDEN, "Password: "),)
    with shop.server.transaction() as transaction:
        transaction.insert(ORDERS, order_row((4711, None, "a row", None)))
    shop.server.set_full_row_logging(ORDERS, on=True)
    with shop.server.transaction() as transaction:
        transaction.insert(ORDERS, order_row((4712, None, "another", None)))
    flags = ["--table=informix.orders", "--from=earliest", "--limit=1", f"--trace-wire={path}"]
    result = run_plain("tail", *server_options(shop), "--database=stores", *given, *flags)
    text = path.read_text()
    assert result.exit_code == (1 if way == "refused" else 0), result.output
    assert (b"another".hex() in text) is (way != "refused")
    assert ("SQ_RESPONSE" in text) is (way == "asked by PAM")
    for word in (PASSWORD, WRONG):
        assert word not in text + result.output
        assert not [codec for codec in CODECS if word.encode(codec).hex() in text]


def test_a_trace_is_never_written_over(shop: ListeningServer, tmp_path: Path) -> None:
    path = tmp_path / "wire.txt"
    path.write_text("mine")
    result = run_plain("status", *server_options(shop), f"--trace-wire={path}")
    assert result.exit_code == 2
    assert "already exists" in result.output
    assert path.read_text() == "mine"


def test_a_trace_of_odbc_is_refused(shop: ListeningServer, tmp_path: Path) -> None:
    over_odbc = ["--transport=odbc", f"--driver={build_drivers().narrow}"]
    traced = [*without_transport(shop), *over_odbc, f"--trace-wire={tmp_path / 'wire.txt'}"]
    result = run_plain("status", *traced)
    assert result.exit_code == 2
    assert "--transport sqli" in result.output
