"""Locale names: which are equal, and which Python codec encodes their characters.

Rule: a locale is language, territory and code set (`en_US.utf8`); the code set may be a name or a
number, and case does not matter.
"""

from __future__ import annotations

import re

_LOCALE = re.compile(r"([a-z]{2})_([a-z]{2})\.([\w.-]+?)(?:@\w+)?", re.IGNORECASE)

_CODE_SET_NUMBERS = {
    "utf8": 57372,
    "utf-8": 57372,
    "8859-1": 819,
    "8859-2": 912,
    "8859-5": 915,
    "8859-7": 813,
    "8859-9": 920,
    "8859-15": 923,
    "cp1250": 1250,
    "cp1251": 1251,
    "cp1252": 1252,
    "gb18030-2000": 5488,
}

_CODECS = {
    57372: "utf-8",
    819: "iso8859-1",
    912: "iso8859-2",
    915: "iso8859-5",
    813: "iso8859-7",
    920: "iso8859-9",
    923: "iso8859-15",
    1250: "cp1250",
    1251: "cp1251",
    1252: "cp1252",
    5488: "gb18030",
    33: "ascii",
}


def canonical_locale(name: str) -> str:
    """Return the one spelling of a locale, as in `en_US.57372`; ValueError if it is none."""
    match = _LOCALE.fullmatch(name.strip())
    if match is None:
        raise ValueError(f"{name!r} is not a locale such as en_US.utf8")
    language, territory, code_set = match.groups()
    return f"{language.lower()}_{territory.upper()}.{_code_set_number(code_set)}"


def code_set_of(name: str) -> str:
    """Return the number of a locale's code set; ValueError if it is not a locale."""
    return canonical_locale(name).rpartition(".")[2]


def codec_of(locale: str) -> str:
    """Return the Python codec for a locale's code set."""
    return _CODECS[int(code_set_of(locale))]


def _code_set_number(code_set: str) -> int:
    text = code_set.lower()
    number = int(text) if text.isdigit() else _CODE_SET_NUMBERS.get(text, 0)
    if number not in _CODECS:
        raise ValueError(f"the code set {code_set!r} is not known to the emulator")
    return number
