"""Code sets: which Python codec reads the bytes of an Informix locale.

Rule: an unknown code set is refused, never guessed. A locale is `language_territory.codeset`, and the
code set is a name or a number (Informix GLS user's guide); sysdbslocale shows numbers.
"""

from __future__ import annotations

import codecs

from informix_cdc.capture_client.errors import BadOption

_CODECS = {
    "utf8": "utf-8",
    "57372": "utf-8",
    "819": "iso8859-1",
    "8859-1": "iso8859-1",
    "912": "iso8859-2",
    "8859-2": "iso8859-2",
    "8859-3": "iso8859-3",
    "8859-4": "iso8859-4",
    "8859-5": "iso8859-5",
    "8859-6": "iso8859-6",
    "8859-7": "iso8859-7",
    "8859-8": "iso8859-8",
    "8859-9": "iso8859-9",
    "8859-13": "iso8859-13",
    "8859-15": "iso8859-15",
    "858": "cp858",
    "813": "iso8859-7",
    "915": "iso8859-5",
    "920": "iso8859-9",
    "923": "iso8859-15",
    "1250": "cp1250",
    "1251": "cp1251",
    "1252": "cp1252",
    "cp1252": "cp1252",
    "ascii": "ascii",
    "364": "ascii",
    "57372s": "utf-8",
    "gb18030-2000": "gb18030",
    "gb18030": "gb18030",
    "5488": "gb18030",
    "gb": "gb2312",
    "gbk": "gbk",
    "sjis": "cp932",
    "57350": "cp932",
    "ujis": "euc_jp",
    "57351": "euc_jp",
    "ksc": "euc_kr",
    "57356": "euc_kr",
    "big5": "big5",
}

_ASCII = bytes(range(128))


def codec_of(locale: str) -> str:
    """Return the Python codec for a locale such as `en_US.57372` or `de_de.8859-1`.

    Raises:
        BadOption: the locale's code set is not known.

    >>> codec_of("en_US.819")
    'iso8859-1'
    """
    code_set = locale.partition(".")[2].partition("@")[0].lower().strip()
    candidate = _CODECS.get(code_set, "" if code_set.isdigit() else code_set)
    if _is_code_set(candidate):
        return codecs.lookup(candidate).name
    raise BadOption(
        f"the code set of locale {locale!r} is not known.",
        "Set option dbLocale to the database's locale with a code set name, such as en_us.8859-1.",
        locale=locale,
    )


def _is_code_set(codec: str) -> bool:
    """Tell whether Python knows it, and ASCII means itself in it: every Informix code set does so.

    Python's registry also holds things that are no code sets (hex, utf-16, unicode_escape).
    """
    if codec.endswith("escape"):
        return False
    try:
        return _ASCII.decode(codec) == _ASCII.decode("ascii")
    except (LookupError, ValueError):
        return False
