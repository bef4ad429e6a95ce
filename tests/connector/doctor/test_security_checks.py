"""What the doctor says of encryption and of the place of the password."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.doctor.set_ups import SOUND, TLS, examine
from informix_capture_client.findings import Finding, Unanswered
from informix_cdc.doctor.security import SecurityFacts, TlsFacts

PLAIN = SecurityFacts(address="db:9088")
UNREADABLE = Unanswered("cannot be read: No such file or directory")

CASES = {
    "not encrypted": (PLAIN, "encryption", "warning", "is not encrypted", "Use --encryption=tls"),
    "on this machine": (
        replace(PLAIN, stays_here=True),
        "encryption",
        "ok",
        "does not leave this host",
        "",
    ),
    "TLS without a driver": (
        replace(PLAIN, tls=TlsFacts(path="", entries={}, authorities="/etc/ca.pem")),
        "encryption",
        "ok",
        "verified with /etc/ca.pem",
        "",
    ),
    "tls": (replace(PLAIN, tls=TLS), "encryption", "ok", "the certificates in /opt/client.p12", ""),
    "tls without conssl.cfg": (
        replace(PLAIN, tls=replace(TLS, entries=UNREADABLE)),
        *("encryption", "warning", "conssl.cfg cannot be read", "Add this line to /opt/etc/conssl.cfg"),
    ),
    "tls without a keystore": (
        replace(PLAIN, tls=replace(TLS, entries={"OTHER": "x"})),
        *(
            "encryption",
            "warning",
            "has no entry SSL_KEYSTORE_FILE",
            "Add this line to /opt/etc/conssl.cfg",
        ),
    ),
    "tls with a keystore that is not there": (
        replace(PLAIN, tls=replace(TLS, missing_files=("/opt/client.p12",))),
        *("encryption", "warning", ": /opt/client.p12", "Create the file"),
    ),
    "TLS without a driver, its file not there": (
        replace(
            PLAIN,
            tls=TlsFacts(
                path="", entries={}, authorities="/etc/ca.pem", missing_files=("/etc/ca.pem",)
            ),
        ),
        *("encryption", "warning", "cannot read: /etc/ca.pem", "Create the file"),
    ),
    "password file for all": (
        replace(PLAIN, open_files=(("/run/s", "the password"),)),
        *("password", "warning", "every user of this host can read /run/s", "chmod o= /run/s"),
    ),
    "password file for all, with a name for a shell": (
        replace(PLAIN, open_files=(("/run/$(x) y", "the password"),)),
        *("password", "warning", "read /run/$(x) y, which", "chmod o= '/run/$(x) y'"),
    ),
    "TLS key for all, of a trusted user": (
        replace(PLAIN, open_files=(("/run/key.pem", "the key of a certificate"),)),
        *("password", "warning", "/run/key.pem, which contains the key of a", "chmod o= /run/key.pem"),
    ),
    "password out of sight": (PLAIN, "password", "ok", "", ""),
    "trusted": (replace(PLAIN, is_trusted=True), "password", "ok", "no password is sent", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_of_a_connection(name: str) -> None:
    facts, check, state, says, remedy = CASES[name]
    (found,) = judged(facts, check)
    assert (found.state.value, found.table) == (state, "")
    assert says in found.found
    assert found.remedy.startswith(remedy)
    assert bool(found.remedy) == (state == "warning")


def judged(facts: SecurityFacts, check: str) -> list[Finding]:
    return [each for each in examine(replace(SOUND, security=facts)) if each.check == check]
