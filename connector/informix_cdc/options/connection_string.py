"""Option connectionString: it stands in for other options, and the driver is given the rest.

Rule: what it says twice or holds in secret is refused; no error quotes a value of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from informix_capture_client.errors import BadOption
from informix_capture_client.transport import PROTOCOLS, TLS, Keyword, read_keywords
from informix_cdc.options.authentication import PASSWORD_VARIABLE
from informix_cdc.options.declaring import whole_number

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
# How values are compared where two ways of writing mean the same; the others as they are written.
_SAME: dict[str, Callable[[str], object]] = {
    "port": whole_number(1, 65535),
    **dict.fromkeys(("host", "encryption", "dbLocale", "clientLocale"), str.lower),
}


def with_connection_string(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options with those that the connection string names.

    Raises:
        BadOption: it is none, holds a secret, or contradicts another option.
    """
    merged = dict(given)
    for keyword in read_keywords(given.get("connectionstring", "")):
        _refuse_secret(keyword)
        name, value = _option_of(keyword)
        if not name:
            continue
        stands = merged.get(name.lower()) or value
        if _read(name, stands) != _read(name, value):
            raise BadOption(
                f"option 'connectionString' has another {keyword.name} than option {name!r} says.",
                "Keep one of them.",
                option="connectionString",
            )
        merged[name.lower()] = stands
    _refuse_plain_protocol(merged)
    return merged


def _refuse_plain_protocol(merged: Mapping[str, str]) -> None:
    """Hold the protocol that the driver would be given to option encryption, wherever that stands."""
    if _read("encryption", merged.get("encryption", "")) != TLS:
        return
    for keyword in read_keywords(for_the_driver(merged.get("connectionstring", ""))):
        if keyword.name.lower() == _PROTOCOL:
            raise BadOption(
                f"option 'connectionString' has a {keyword.name} other than {PROTOCOLS[TLS]}, which"
                " encryption=tls means.",
                "Keep one of them.",
                option="connectionString",
            )


def _read(name: str, text: str) -> object:
    """Return what a value says; one that is wrong is its own text here, and refused elsewhere."""
    try:
        return _SAME.get(name, str)(text.strip())
    except ValueError:
        return text.strip()


def for_the_driver(connection_string: str) -> str:
    """Return the keywords that no option stands for, as they were written."""
    kept = [each for each in read_keywords(connection_string) if not _option_of(each)[0]]
    return ";".join(f"{each.name}={each.written}" for each in kept)


def _option_of(keyword: Keyword) -> tuple[str, str]:
    """Return the option that a keyword stands for, and its value; no name where there is none."""
    name = keyword.name.lower()
    if name == _PROTOCOL:
        encryption = _ENCRYPTIONS.get(keyword.value.strip().lower(), "")
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
