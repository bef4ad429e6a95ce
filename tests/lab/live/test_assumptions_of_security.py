"""What docs/assumptions.md assumes of TLS, of trusted connections and of passwords in braces.

A server for these needs a listener with protocol onsocssl, and trust in this host: the environment says
which there are, as docs/evidence/README.md tells. The emulator has the second and third only.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace

import pytest

from harness.servers.capture_server import CaptureServer
from harness.servers.emulated import emulated_world
from informix_capture_client.catalog import Catalog
from informix_capture_client.errors import AccessRefused, ConnectionLost
from informix_capture_client.statements import SYSTEM_DATABASE
from informix_capture_client.transport.base import ConnectionSettings
from informix_capture_client.transport.odbc.transport import OdbcTransport
from informix_cdc.server.connections import DatabaseLocales
from lab.live.server_dsn import DSN_VARIABLE, named_server
from odbc_driver.build import build_drivers

TLS_DSN_VARIABLE = "INFORMIX_CDC_TEST_TLS_DSN"
TRUSTED_VARIABLE = "INFORMIX_CDC_TEST_TRUSTED"


def server_name_over(settings: ConnectionSettings) -> str:
    """Connect as the product does, and ask the server for its name."""
    locales = DatabaseLocales()

    def connect(database: str, locale: str) -> OdbcTransport:
        return OdbcTransport(replace(settings, database=database, db_locale=locale))

    with closing(locales.open(SYSTEM_DATABASE, connect)) as transport:
        return Catalog(transport, SYSTEM_DATABASE).server_name()


@pytest.mark.informix
@pytest.mark.assumption(44)
def test_a_listener_of_protocol_onsocssl_takes_encrypted_connections_and_no_others() -> None:
    named = named_server({**os.environ, DSN_VARIABLE: os.environ.get(TLS_DSN_VARIABLE, "")})
    if named is None:
        pytest.skip(f"{TLS_DSN_VARIABLE} names no listener with protocol onsocssl")
    assert server_name_over(replace(named.settings, encryption="tls"))
    with pytest.raises((AccessRefused, ConnectionLost)):
        server_name_over(named.settings)


@pytest.mark.parametrize("kind", ["rehearsal", pytest.param("live", marks=pytest.mark.informix)])
@pytest.mark.assumption(45)
def test_a_connection_without_user_and_password_is_the_system_s_user_if_the_host_is_trusted(
    kind: str,
) -> None:
    if kind == "live":
        named = named_server(os.environ)
        if named is None or not os.environ.get(TRUSTED_VARIABLE):
            pytest.skip(f"{TRUSTED_VARIABLE} does not say that the server of {DSN_VARIABLE} trusts us")
        assert server_name_over(replace(named.settings, authentication="trusted", password=""))
        return
    with emulated_world(str(build_drivers().narrow)) as world:
        settings = replace(world.settings("sysmaster"), authentication="trusted", password="")
        with pytest.raises(AccessRefused, match="does not trust this host"):
            server_name_over(settings)
        world.server.trusted_user = "informix"
        assert server_name_over(settings) == "informix"


@pytest.mark.assumption(48)
def test_a_password_with_a_semicolon_or_a_brace_reaches_the_server_in_braces(
    server: CaptureServer,
) -> None:
    if server.add_user is None:
        pytest.skip("users can be made in a container only")
    for number, password in enumerate(("a;b", "a}b;c", "{a", "a=b c", "plain}")):
        login = (f"ifxpw{number}", password)
        server.add_user(*login)
        with closing(server.connect(SYSTEM_DATABASE, login=login)) as transport:
            assert Catalog(transport, SYSTEM_DATABASE).server_name()
