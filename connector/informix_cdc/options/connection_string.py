"""Option connectionString: it stands in for other options, and the driver is given the rest.

Rule: what it says twice or holds in secret is refused; no error quotes a value of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from informix_capture_client.errors import BadOption
from informix_capture_client.transport import PROTOCOLS, TLS, Keyword, read_keywords
from informix_cdc.options.authentication import PASSWORD_VARIABLE

_OPTIONS = {
    "host": "host",
    "service": "port",
    "server": "server",
    "database": "database",
    "uid": "user",
    "db_locale": "dbLocale",
    "client_locale": "clientLocale",
}
_PROTOCOL = "protocol"
_ENCRYPTIONS = {protocol: encryption for encryption, protocol in PROTOCOLS.items()}


def with_connection_string(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options with those that the connection string names.

    Raises:
        BadOption: it is none, holds a secret, or contradicts another option.
    """
    merged = dict(given)
    for keyword in read_keywords(given.get("connectionstring", "")):
        _refuse_secret(keyword)
        name, value = _option_of(keyword)
        if name and merged.setdefault(name.lower(), value) != value:
            raise BadOption(
                f"option 'connectionString' has another {keyword.name} than option {name!r} says.",
                "Keep one of them.",
                option="connectionString",
            )
        if keyword.name.lower() == _PROTOCOL and not name and merged.get("encryption") == TLS:
            raise BadOption(
                f"option 'connectionString' has a {keyword.name} other than {PROTOCOLS[TLS]}, which"
                " encryption=tls means.",
                "Keep one of them.",
                option="connectionString",
            )
    return merged


def for_the_driver(connection_string: str) -> str:
    """Return the keywords that no option stands for, as they were written."""
    kept = [each for each in read_keywords(connection_string) if not _option_of(each)[0]]
    return ";".join(f"{each.name}={each.written}" for each in kept)


def _option_of(keyword: Keyword) -> tuple[str, str]:
    """Return the option that a keyword stands for, and its value; no name where there is none."""
    name = keyword.name.lower()
    if name == _PROTOCOL:
        encryption = _ENCRYPTIONS.get(keyword.value.lower(), "")
        return ("encryption" if encryption else "", encryption)
    return _OPTIONS.get(name, ""), keyword.value


def _refuse_secret(keyword: Keyword) -> None:
    if keyword.is_secret:
        raise BadOption(
            f"option 'connectionString' holds a secret ({keyword.name}), which query plans would show.",
            "Take it out. The user's password comes by option passwordFile or passwordCommand, or the"
            f" environment variable {PASSWORD_VARIABLE}; that of a keystore is in its stash file.",
            option="connectionString",
        )
