"""Parse option connectionString: keywords for the ODBC driver that have no option.

Rule: a keyword that has its own option, or contains a secret, is refused by its name; no error quotes a
value.
"""

from __future__ import annotations

from informix_capture_client.errors import BadOption
from informix_capture_client.transport import PROTOCOLS, Keyword, read_keywords
from informix_cdc.options.declaring import PASSWORD_VARIABLE, locale

# With their short forms (HCL, ids_odbc_076, "Connection string keywords that make a connection").
_OPTIONS = {
    "host": "host",
    **dict.fromkeys(("service", "serv"), "port"),
    **dict.fromkeys(("server", "srvr"), "server"),
    **dict.fromkeys(("database", "db"), "database"),
    **dict.fromkeys(("uid", "user", "logonid"), "user"),
    **dict.fromkeys(("db_locale", "dloc"), "dbLocale"),
}
_CLIENT_LOCALE = ("client_locale", "cloc")
DEFAULT_LOCALE = "en_us.utf8"  # the driver converts from any database locale to it


def driver_keywords(text: str) -> str:
    """Parse a connection string; return its keywords for the driver.

    Raises:
        BadOption: it is not a connection string, contains a secret, or sets what has its own option.
    """
    keywords = read_keywords(text)
    for keyword in keywords:
        if keyword.is_secret:
            raise _secret(keyword.name)
    if misplaced := {each.name: option for each in keywords if (option := _option_of(each))}:
        options = list(dict.fromkeys(misplaced.values()))
        raise BadOption(
            f"option 'connectionString' contains {_listed(list(misplaced))}; it accepts only"
            " ODBC driver keywords that have no option of their own.",
            f"Set option{'s' if len(options) > 1 else ''} {_listed(options)} instead.",
            option="connectionString",
        )
    for keyword in keywords:
        if keyword.name.lower() in _CLIENT_LOCALE:
            _require_locale(keyword)
    return ";".join(f"{each.name}={each.written}" for each in keywords)


def client_locale(text: str) -> tuple[str, str]:
    """Return the CLIENT_LOCALE of parsed keywords, or its default; and the other keywords."""
    keywords = read_keywords(text)
    chosen = [each.value for each in keywords if each.name.lower() in _CLIENT_LOCALE]
    others = [each for each in keywords if each.name.lower() not in _CLIENT_LOCALE]
    rest = ";".join(f"{each.name}={each.written}" for each in others)
    return chosen[0] if chosen else DEFAULT_LOCALE, rest


def _require_locale(keyword: Keyword) -> None:
    try:
        locale(keyword.value)
    except ValueError as reason:
        raise BadOption(
            f"option 'connectionString': {keyword.name} {reason}.", option="connectionString"
        ) from None


def _option_of(keyword: Keyword) -> str:
    """Return the option for a keyword; empty if there is none."""
    name = keyword.name.lower()
    if name == "protocol":  # the protocols of shared memory and DRDA have no option
        is_of_encryption = keyword.value.strip().lower() in PROTOCOLS.values()
        return "encryption" if is_of_encryption else ""
    return _OPTIONS.get(name, "")


def _secret(name: str) -> BadOption:
    return BadOption(
        f"option 'connectionString' contains a secret ({name}), which query plans would show.",
        "Remove it. Provide the user's password by option passwordFile or passwordCommand, or"
        f" by the environment variable {PASSWORD_VARIABLE}; the password of a keystore is in its"
        " stash file.",
        option="connectionString",
    )


def _listed(words: list[str]) -> str:
    """Join words with commas and `and`.

    >>> _listed(["HOST"]), _listed(["HOST", "SERVER", "UID"])
    ('HOST', 'HOST, SERVER and UID')
    """
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
