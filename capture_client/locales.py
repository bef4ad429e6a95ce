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
    "8859-15": "iso8859-15",
    "858": "iso8859-15",
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


def codec_of(locale: str) -> str:
    """Return the Python codec for a locale such as `en_US.57372` or `de_de.8859-1`.

    Raises:
        BadOption: the locale's code set is not known.

    >>> codec_of("en_US.819")
    'iso8859-1'
    """
    code_set = locale.partition(".")[2].partition("@")[0].lower().strip()
    for candidate in (_CODECS.get(code_set), code_set if not code_set.isdigit() else None):
        if candidate:
            try:
                return codecs.lookup(candidate).name
            except LookupError:
                continue
    raise BadOption(
        f"the code set of locale {locale!r} is not known.",
        "Set option dbLocale to the database's locale with a code set name, such as en_us.8859-1.",
        locale=locale,
    )
