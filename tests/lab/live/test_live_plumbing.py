"""How a live server is found and made ready, as far as that can be tried without one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import pytest

from harness import ROOT
from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    ConnectionLost,
    DriverAnswer,
    InformixCdcError,
)
from informix_capture_client.locales import codec_of
from informix_capture_client.transport.base import Argument, ConnectionSettings, Row
from lab.live import servers
from lab.live.container import IMAGE, START_SECONDS, docker_container, informix_container
from lab.live.server_dsn import (
    DIALECT_VARIABLE,
    DRIVER_VARIABLE,
    DSN_VARIABLE,
    BadDsn,
    NamedServer,
    named_server,
)

PASSWORD = "s3cret;}word"
DSN = "HOST=db1;SERVICE=9088;SERVER=ol_one;UID=informix;PWD={s3cret;}}word}"


def named(text: str = DSN, **others: str) -> NamedServer:
    found = named_server({DSN_VARIABLE: text, **others})
    assert found is not None
    return found


def test_a_connection_string_names_a_server() -> None:
    found = named(f"{DSN};Database=scratch;DRIVER=/opt/lib.so;DELIMIDENT=y")
    settings = found.settings
    assert (settings.host, settings.port, settings.server) == ("db1", 9088, "ol_one")
    assert (settings.user, settings.password) == ("informix", PASSWORD)
    assert (settings.database, settings.driver) == ("scratch", "/opt/lib.so")
    assert settings.extra == "DELIMIDENT=y"
    assert found.dialect == settings.dialect.name == "informix"


def test_what_a_connection_string_leaves_out_has_a_default() -> None:
    found = named(DSN, **{DRIVER_VARIABLE: "/opt/other.so", DIALECT_VARIABLE: "gbase8s"})
    assert (found.settings.database, found.settings.driver) == ("ifxcdc_test", "/opt/other.so")
    assert found.dialect == found.settings.dialect.name == "gbase8s"


def test_without_the_variable_no_server_is_named() -> None:
    assert named_server({}) is None
    assert named_server({DSN_VARIABLE: "  "}) is None


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({DSN_VARIABLE: "PWD=s3cret"}, "has no HOST, SERVICE, SERVER, UID"),
        ({DSN_VARIABLE: "PWD={s3cret};more"}, "is not KEY=value"),
        ({DSN_VARIABLE: DSN.replace("9088", "sqlexec")}, "SERVICE in"),
        ({DSN_VARIABLE: DSN, DIALECT_VARIABLE: "db2"}, "not one of informix, gbase8s"),
    ],
)
def test_a_mistake_is_named_and_the_password_is_not(environment: Mapping[str, str], words: str) -> None:
    with pytest.raises(BadDsn, match=words) as caught:
        named_server(environment)
    assert "s3cret" not in str(caught.value)


def test_no_printed_form_of_a_named_server_has_the_password() -> None:
    assert "s3cret" not in repr(named())


@pytest.mark.parametrize(
    ("environment", "has_docker", "reason"),
    [
        ({}, True, "no Informix ODBC driver"),
        ({DRIVER_VARIABLE: "/opt/lib.so"}, False, "no Docker engine runs here"),
        ({"INFORMIXDIR": "/opt/informix"}, True, "the developer edition of Informix needs its licence"),
        ({"INFORMIXDIR": "/opt/informix", "LICENSE": "accept"}, True, ""),
        ({DSN_VARIABLE: DSN}, True, "no Informix ODBC driver"),
        ({DSN_VARIABLE: DSN, "INFORMIXDIR": "/opt/informix"}, False, ""),
        ({DSN_VARIABLE: f"{DSN};DRIVER=/opt/lib.so"}, False, ""),
    ],
)
def test_what_is_missing_is_the_reason_of_the_skip(
    environment: dict[str, str], has_docker: bool, reason: str
) -> None:
    assert servers.missing(environment, named_server(environment), lambda: has_docker).startswith(
        reason
    )
    assert bool(servers.missing(environment, named_server(environment), lambda: has_docker)) == bool(
        reason
    )


def test_the_logs_of_a_named_server_are_overwritten_by_permission_only() -> None:
    assert set(servers.cannot({})) == {"users", "overwritten logs"}
    assert set(servers.cannot({servers.OVERWRITE_VARIABLE: "yes"})) == {"users"}


@pytest.mark.parametrize("dsn", ["HOST=x", f"{DSN};DRIVER=/nowhere/lib.so"])
def test_a_server_that_cannot_be_used_fails_in_one_line_without_the_password(
    monkeypatch: pytest.MonkeyPatch, dsn: str
) -> None:
    monkeypatch.setenv(DSN_VARIABLE, dsn)
    monkeypatch.setenv("INFORMIXDIR", "/nowhere")
    with pytest.raises(pytest.fail.Exception) as caught, servers.live_server():
        pass
    assert caught.value.pytrace is False
    assert "s3cret" not in str(caught.value)


MISMATCH = (("HY000", -23197, "Database locale information mismatch."),)
SYSTEM = {"sysmaster": "en_US.819", "syscdcv1": "en_US.57372"}


class Informix:
    """Remembers what it is told; knows the databases of `databases`, each with its locale."""

    def __init__(self, databases: dict[str, str]) -> None:
        self.databases = databases
        self.told: list[tuple[str, str, str]] = []

    def open(self, settings: ConnectionSettings, _receive_timeout_seconds: float | None) -> Connection:
        if settings.database not in ("", *self.databases):
            raise AccessRefused(f"no database {settings.database}")
        if settings.database and codec_of(settings.db_locale) != codec_of(
            self.databases[settings.database]
        ):
            raise BadOption("another code set", answer=DriverAnswer("HY000", -23197, MISMATCH))
        return Connection(self, settings)


class Connection:
    def __init__(self, server: Informix, settings: ConnectionSettings) -> None:
        self._server = server
        self._settings = settings

    def call(self, statement: str, *_arguments: Argument) -> int:
        raise AssertionError(statement)

    def lo_read(self, _session_id: int, _max_bytes: int) -> memoryview:
        raise ConnectionLost("nothing to read")

    def close(self) -> None:
        pass

    def rows(self, statement: str, *arguments: Argument) -> list[Row]:
        databases = self._server.databases
        if "sysdatabases" in statement:
            return [("1", "0", "0")] if arguments[0] in databases else []
        if "sysdbslocale" in statement:
            return [(databases[name],)] if (name := str(arguments[0])) in databases else []
        self._server.told.append((self._settings.database, self._settings.db_locale, statement))
        if statement.startswith("CREATE DATABASE"):
            is_utf8 = self._settings.db_locale.endswith("utf8")
            databases[statement.split()[2]] = "en_US.57372" if is_utf8 else "en_US.819"
        return []


def test_a_database_for_tests_is_created_once_and_opened_in_its_own_locale() -> None:
    informix = Informix(dict(SYSTEM))
    for _ in range(2):
        server = servers.capture_server(named(), informix.open)
    assert informix.told == [("", "en_US.utf8", "CREATE DATABASE ifxcdc_test WITH LOG")]
    server.run("BEGIN WORK")
    assert informix.told[-1] == ("ifxcdc_test", "en_US.57372", "BEGIN WORK")
    assert (server.name, server.owner, server.dialect) == ("ol_one", "informix", "informix")


def test_a_database_that_is_there_is_used_as_it_is() -> None:
    informix = Informix({**SYSTEM, "scratch": "de_DE.57372"})
    server = servers.capture_server(named(f"{DSN};DATABASE=scratch"), informix.open)
    assert informix.told == []
    server.run("BEGIN WORK")
    assert informix.told == [("scratch", "de_DE.57372", "BEGIN WORK")]


def test_a_database_of_another_code_set_is_made_beside_it() -> None:
    informix = Informix(dict(SYSTEM))
    server = servers.capture_server(named(), informix.open)
    assert server.sibling
    latin = server.sibling("en_US.8859-1")
    created = ("", "en_US.8859-1", "CREATE DATABASE ifxcdc_test_1 WITH LOG")
    assert informix.told[1:] == [created]
    assert (latin.database, latin.codec) == ("ifxcdc_test_1", "iso8859-1")


@pytest.mark.parametrize(
    ("databases", "words"),
    [
        ({**SYSTEM, "scratch": "de_DE.819"}, "of locale de_DE.819, and the tests want en_US.utf8"),
        ({"sysmaster": "en_US.819"}, "no syscdcv1"),
    ],
)
def test_a_server_that_is_not_set_up_is_named(databases: dict[str, str], words: str) -> None:
    with pytest.raises(BadOption, match=words):
        servers.capture_server(named(f"{DSN};DATABASE=scratch"), Informix(databases).open)


def test_the_image_is_the_one_of_the_compose_file() -> None:
    compose = ROOT / "docker" / "compose.yaml"
    assert IMAGE in compose.read_text(encoding="utf-8")


class Started:
    """Stands in for a container of testcontainers."""

    def __init__(self, code: int = 0, refuses: Exception | None = None) -> None:
        self.code = code
        self.refuses = refuses
        self.commands: list[str] = []
        self.is_stopped = False

    def __enter__(self) -> Started:
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        if self.refuses:
            raise self.refuses
        return self

    def __exit__(self, *_reason: object) -> None:
        self.is_stopped = True

    def get_container_host_ip(self) -> str:
        return "10.0.0.9"

    def get_exposed_port(self, port: int) -> str:
        return str(port + 1)

    def exec(self, command: list[str]) -> tuple[int, bytes]:
        assert command[:2] == ["bash", "-lc"]
        self.commands.append(command[2])
        return self.code, b"what it said"


def test_a_container_is_set_up_for_capture_and_stopped_at_the_end() -> None:
    container = Started()
    with informix_container("image", lambda _image: container) as started:
        assert (started.host, started.port, started.drda_port) == ("10.0.0.9", 9089, 9090)
        (set_up,) = container.commands
        assert set_up.startswith("cd $INFORMIXDIR/etc; dbaccess - syscdcv1.sql")
        started.add_user("reader", "pw")
        assert container.commands[1].endswith("echo reader:pw | sudo chpasswd")
        assert not container.is_stopped
    assert container.is_stopped


def test_a_container_that_fails_is_one_line_and_is_stopped() -> None:
    container = Started(code=1)
    with (
        pytest.raises(InformixCdcError, match="what it said"),
        informix_container("image", lambda _image: container),
    ):
        pass
    assert container.is_stopped
    silent = Started(refuses=TimeoutError("no log line\nand all its logs"))
    with (
        pytest.raises(InformixCdcError, match=r"image image does not come up: no log line$"),
        informix_container("image", lambda _image: silent),
    ):
        pass


def test_the_container_is_asked_for_as_its_image_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """With testcontainers itself, but for the engine; nobody's licence is accepted by the code."""
    monkeypatch.setattr("testcontainers.core.container.DockerClient", lambda **_options: None)
    monkeypatch.delenv("LICENSE", raising=False)
    with pytest.raises(KeyError, match="LICENSE"):
        docker_container("an/image:1")
    monkeypatch.setenv("LICENSE", "accept")
    container = docker_container("an/image:1")
    assert container.image == "an/image:1"
    assert container.env == {"LICENSE": "accept", "SIZE": "small"}
    assert [str(port).removesuffix("/tcp") for port in container.ports] == ["9088", "9089"]
    assert container._kwargs == {"privileged": True}
    assert container._wait_strategy._startup_timeout == START_SECONDS
    assert container._wait_strategy._message.search("12:00:00 SCHAPI: Started 2 dbWorker threads.")
