"""Options that mean nothing to a transport are refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.servers.stores import source_options
from informix_capture_client.errors import BadOption
from informix_cdc.options.source import SourceOptions

TLS = {"encryption": "tls"}
REFUSED = [
    ("driver", {"transport": "sqli", "driver": "/opt/libthcli.so"}, "loads no driver"),
    ("connectionString", {"transport": "sqli", "connectionString": "OPTOFC=1"}, "loads no driver"),
    ("host", {"transport": "odbc", "host": "a:1,b:2"}, "cannot be used with"),
    ("tlsCaFile", {"transport": "odbc", **TLS, "tlsCaFile": "/ca.pem"}, "conssl.cfg"),
    ("tlsCaFile", {"transport": "sqli", "tlsCaFile": "/ca.pem"}, "requires encryption=tls"),
    ("tlsCertificateFile", {"transport": "odbc", **TLS, "tlsCertificateFile": "/c.pem"}, "conssl.cfg"),
    ("transport", {"transport": "emulator"}, "no longer has a protocol of its own"),
]


@pytest.mark.parametrize(("option", "given", "words"), REFUSED)
def test_what_means_nothing_to_a_transport_is_refused(
    option: str, given: dict[str, str], words: str
) -> None:
    with pytest.raises(BadOption, match=f"option '{option}'.*{words}") as caught:
        SourceOptions.parse(source_options(9088, **given), {})
    assert caught.value.remedy


def test_the_emulator_s_former_transport_is_answered_with_the_present_one() -> None:
    with pytest.raises(BadOption) as caught:
        SourceOptions.parse(source_options(9088, transport="Emulator"), {})
    assert caught.value.remedy.startswith("Set transport=sqli")


def test_what_a_transport_heeds_is_taken() -> None:
    given = source_options(
        9088,
        transport="sqli",
        host="db1:9089, [::1]:9090,db2",
        **TLS,
        tlsCaFile="/ca.pem",
        tlsCertificateFile="/c.pem",
    )
    options = SourceOptions.parse(given, {})
    assert options.connection.addresses() == [("db1", 9089), ("::1", 9090), ("db2", 9088)]
    settings = options.connection.settings("stores")
    assert (settings.tls_ca_file, settings.tls_certificate_file) == ("/ca.pem", "/c.pem")
    assert (settings.encryption, settings.extra) == ("tls", "")


def client_kit(folder: Path) -> dict[str, str]:
    """Return an environment with a client kit that has the file of a driver."""
    library = folder / "lib" / "cli" / "libthcli.so"
    library.parent.mkdir(parents=True)
    library.touch()
    return {"INFORMIXDIR": str(folder)}


@pytest.mark.parametrize(
    ("changes", "without_a_driver", "with_one"),
    [
        ({}, "sqli", "odbc"),
        ({"transport": "auto"}, "sqli", "odbc"),
        ({"transport": "odbc"}, "odbc", "odbc"),
        ({"transport": "sqli"}, "sqli", "sqli"),
        ({"dialect": "gbase8s"}, "sqli", "sqli"),  # whose kit is another one
        ({"driver": "libodbc.so.2"}, "odbc", "odbc"),
        ({"connectionString": "OPTOFC=1"}, "odbc", "odbc"),
        ({"connectionString": "CLIENT_LOCALE=en_us.8859-1"}, "odbc", "odbc"),
        ({"host": "db1,db2"}, "sqli", "sqli"),
        ({**TLS, "tlsCaFile": "/ca.pem"}, "sqli", "sqli"),
        (TLS, "sqli", "odbc"),
    ],
)
def test_without_a_word_the_driver_is_taken_where_there_is_one(
    changes: dict[str, str], without_a_driver: str, with_one: str, tmp_path: Path
) -> None:
    given = {name: text for name, text in source_options(9088).items() if name != "transport"}
    chosen = [
        SourceOptions.parse({**given, **changes}, environment).connection.transport
        for environment in ({}, client_kit(tmp_path))
    ]
    assert chosen == [without_a_driver, with_one]


@pytest.mark.parametrize(
    ("asking", "value"),
    [("driver", "libodbc.so.2"), ("connectionString", "OPTOFC=1")],
)
@pytest.mark.parametrize(
    ("refused", "more"), [("host", {"host": "db1,db2"}), ("tlsCaFile", {**TLS, "tlsCaFile": "/ca.pem"})]
)
def test_options_of_both_transports_are_refused_by_name(
    asking: str, value: str, refused: str, more: dict[str, str]
) -> None:
    given = {name: text for name, text in source_options(9088).items() if name != "transport"}
    with pytest.raises(BadOption, match=f"option '{refused}'") as caught:
        SourceOptions.parse({**given, **more, asking: value}, {})
    assert f"the ODBC driver, which option {asking} requires" in caught.value.message
    assert "transport=odbc" not in str(caught.value)
    assert f"remove option {asking} and set transport=sqli" in caught.value.remedy


@pytest.mark.parametrize("host", ["a:1,joe:hunter2@b", "a:1,jdbc:informix-sqli://h", "a b,c:1"])
def test_a_list_with_something_else_in_it_is_refused_and_not_quoted(host: str) -> None:
    with pytest.raises(BadOption, match="option 'host'") as caught:
        SourceOptions.parse(source_options(9088, host=host), {})
    assert "hunter2" not in str(caught.value)
