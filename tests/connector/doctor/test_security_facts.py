"""What the doctor sees of this side: the client kit's conssl.cfg, and who may read the password."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.servers.stores import source_options
from informix_capture_client.findings import Unanswered
from informix_cdc.doctor.security import TlsFacts, read_security_facts
from informix_cdc.options.source import SourceOptions


def parse(**changes: str) -> SourceOptions:
    return SourceOptions.parse(source_options(9088, **{"transport": "odbc", **changes}), {})


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """A client kit with a driver and the folder of its settings."""
    for folder in ("lib/cli", "etc"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "lib/cli/libthcli.so").touch()
    return tmp_path


def tls_of(kit: Path, content: str | None, *, by_variable: bool = True) -> TlsFacts:
    if content is not None:
        (kit / "etc" / "conssl.cfg").write_text(content)
    driver = {} if by_variable else {"driver": str(kit / "lib/cli/libthcli.so")}
    environment = {"INFORMIXDIR": str(kit)} if by_variable else {}
    facts = read_security_facts(parse(encryption="tls", **driver), environment).tls
    assert facts is not None
    return facts


@pytest.mark.parametrize("by_variable", [True, False])
def test_conssl_cfg_is_read_in_the_kit_that_the_driver_belongs_to(kit: Path, by_variable: bool) -> None:
    (kit / "client.p12").touch()
    lines = f"# ours\nSSL_KEYSTORE_FILE  {kit}/client.p12  # Keystore file\n\nSSL_KEYSTORE_STH\n"
    facts = tls_of(kit, lines, by_variable=by_variable)
    assert facts.path == f"{kit}/etc/conssl.cfg"
    assert facts.entries == {"SSL_KEYSTORE_FILE": f"{kit}/client.p12"}
    assert facts.missing_files == ()


def test_a_file_that_conssl_cfg_names_and_nobody_finds_is_named(kit: Path) -> None:
    lines = f"SSL_KEYSTORE_FILE {kit}/client.p12\nSSL_KEYSTORE_STH {kit}/client.sth\n"
    (kit / "client.p12").touch()
    assert tls_of(kit, lines).missing_files == (f"{kit}/client.sth",)


def test_without_conssl_cfg_the_reason_is_told(kit: Path) -> None:
    facts = tls_of(kit, None)
    assert facts.entries == Unanswered("cannot be read: No such file or directory")
    nowhere = read_security_facts(parse(encryption="tls"), {}).tls
    assert nowhere is not None
    assert nowhere.path == "$INFORMIXDIR/etc/conssl.cfg"


def test_without_encryption_nothing_is_read_and_the_address_is_told() -> None:
    facts = read_security_facts(parse(host="db.example"), {})
    assert (facts.address, facts.tls, facts.stays_here) == ("db.example:9088", None, False)
    several = read_security_facts(parse(transport="sqli", host="127.0.0.1,b:9089"), {})
    assert (several.address, several.stays_here) == ("127.0.0.1:9088,b:9089", False)
    assert read_security_facts(parse(password="", authentication="trusted"), {}).is_trusted


@pytest.mark.parametrize(
    ("host", "stays_here"),
    [
        *(("127.0.0.1", True), ("127.9.0.1", True), ("::1", True), ("localhost", True)),
        *(("LOCALHOST", True), ("localhost.evil.example", False), ("127.evil.example", False)),
        *(("::10", False), ("localhost2", False), ("128.0.0.1", False)),
    ],
)
def test_only_a_loopback_address_stays_on_this_machine(host: str, stays_here: bool) -> None:
    assert read_security_facts(parse(host=host), {}).stays_here == stays_here


@pytest.mark.parametrize(("mode", "is_open"), [(0o600, False), (0o640, False), (0o644, True)])
def test_a_password_file_that_everyone_may_read_is_named(
    mode: int, is_open: bool, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    secret.chmod(mode)
    options = parse(password="", passwordFile=str(secret))
    assert read_security_facts(options, {}).open_files == ((str(secret), "the password"),) * is_open


def test_the_key_of_a_certificate_that_everyone_may_read_is_named(tmp_path: Path) -> None:
    own = tmp_path / "own.pem"
    own.touch(0o644)
    options = parse(transport="sqli", encryption="tls", tlsCertificateFile=str(own))
    (found,) = read_security_facts(options, {}).open_files
    assert found == (str(own), "the key of this client's certificate")
    own.chmod(0o640)
    assert read_security_facts(options, {}).open_files == ()


def test_without_a_driver_no_conssl_cfg_is_read_and_the_authorities_are_told() -> None:
    given = {"transport": "sqli", "encryption": "tls"}
    system = read_security_facts(parse(**given), {}).tls
    own = read_security_facts(parse(**given, tlsCaFile="/etc/own.pem"), {}).tls
    assert system is not None
    assert own is not None
    assert (system.authorities, own.authorities) == (
        "the system's certificate authorities",
        "/etc/own.pem",
    )


def test_without_a_driver_the_files_that_options_name_are_looked_for(tmp_path: Path) -> None:
    given = {"transport": "sqli", "encryption": "tls"}
    there, gone = tmp_path / "there.pem", str(tmp_path / "gone.pem")
    there.touch()
    for name in ("tlsCaFile", "tlsCertificateFile"):
        for path, missing in ((str(there), ()), (gone, (gone,))):
            found = read_security_facts(parse(**given, **{name: path}), {}).tls
            assert found is not None
            assert found.missing_files == missing
