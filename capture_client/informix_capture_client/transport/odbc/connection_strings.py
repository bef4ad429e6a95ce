"""Build the connection string for SQLDriverConnect, and determine the client's code set.

Rule: settings in, text out; values that cannot be represented are rejected before a driver is called.
"""

from __future__ import annotations

from informix_capture_client.errors import BadOption
from informix_capture_client.locales import codec_of
from informix_capture_client.transport.base import (
    NO_ENCRYPTION,
    TLS,
    TRUSTED,
    ConnectionSettings,
)
from informix_capture_client.transport.keywords import braced_if_needed, read_keywords, refuse_nul

# Informix names a code set by its name, its IBM CCSID or its hexadecimal file name (GLS guide).
_CODECS = {
    "utf8": "utf-8",
    "57372": "utf-8",
    "8859-1": "iso8859-1",
    "819": "iso8859-1",
    "8859-2": "iso8859-2",
    "912": "iso8859-2",
    "8859-5": "iso8859-5",
    "915": "iso8859-5",
    "8859-15": "iso8859-15",
    "57390": "gb18030",
    "gb18030-2000": "gb18030",
    "1250": "cp1250",
    "1251": "cp1251",
    "1252": "cp1252",
}
# NETTYPE of sqlhosts, for SQLI clients (HCL Informix 14.10, ids_ssl_003)
PROTOCOLS = {NO_ENCRYPTION: "onsoctcp", TLS: "onsocssl"}


def codec_of_client(client_locale: str) -> str:
    """Return the codec of a client locale such as en_us.utf8, which the driver uses."""
    code_set = client_locale.partition(".")[2].partition("@")[0].lower()
    try:
        return _CODECS.get(code_set) or codec_of(client_locale)
    except BadOption:
        raise BadOption(
            f"The code set of client locale {client_locale!r} is unknown.",
            "Set CLIENT_LOCALE=en_us.utf8 in connectionString: the driver converts from any database"
            " locale to it.",
        ) from None


def encode(text: str, codec: str, errors: str = "strict") -> bytes:
    """Encode a text for the driver; BadOption if its code set lacks a character."""
    try:
        return text.encode(codec, errors)
    except UnicodeEncodeError as reason:
        raise BadOption(
            f"The client locale ({codec}) has no character U+{ord(text[reason.start]):04X}.",
            "Set CLIENT_LOCALE=en_us.utf8 in option connectionString.",
        ) from None


def connection_string(settings: ConnectionSettings) -> str:
    """Return the connection string; keys in `extra` override the generated ones."""
    is_trusted = settings.authentication == TRUSTED
    pairs = {
        "SERVER": settings.server,
        "DATABASE": settings.database,
        "HOST": settings.host,
        "SERVICE": str(settings.port),
        "PROTOCOL": PROTOCOLS[settings.encryption],
        "UID": "" if is_trusted else settings.user,
        "PWD": "" if is_trusted else settings.password,
        "CLIENT_LOCALE": settings.client_locale,
        "DB_LOCALE": settings.db_locale,
        # off by default over ODBC (HCL, ids_odbc_216), and without it no quoted name is captured
        "DELIMIDENT": "y",
    }
    taken = {keyword.name.upper() for keyword in read_keywords(settings.extra)}
    ours = [f"{key}={_value(key, v)}" for key, v in pairs.items() if v and key not in taken]
    return ";".join([settings.extra.strip("; "), *ours] if settings.extra.strip("; ") else ours)


def _value(key: str, value: str) -> str:
    refuse_nul(key, value)
    return braced_if_needed(value)
