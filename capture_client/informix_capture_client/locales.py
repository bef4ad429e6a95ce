"""Code sets: which Python codec reads the bytes of an Informix locale.

Rule: an unknown code set is refused, never guessed. A locale is `language_territory.codeset`, and the
code set is a name or a number (Informix GLS user's guide); sysdbslocale shows numbers.
"""

from __future__ import annotations

import codecs
import contextlib
import functools

from informix_capture_client.errors import BadOption

# Numbers and names as the table of code sets in the JDBC driver's guide has them ("Unicode to Database
# Code Set"); those marked * are CCSIDs, on which the registry file says that the numbers are based.
# A name that is not here is looked up as Python's own, a number never is.
_CODE_SETS: dict[str, tuple[str, ...]] = {
    "ascii": ("364", "ascii"),
    "utf-8": ("57372", "utf8"),
    "iso8859-1": ("819", "8859-1"),
    "iso8859-2": ("912", "8859-2"),
    "iso8859-3": ("57346", "8859-3"),
    "iso8859-4": ("57347", "8859-4"),
    "iso8859-5": ("915", "8859-5"),
    "iso8859-6": ("1089", "8859-6"),
    "iso8859-7": ("813", "8859-7"),
    "iso8859-8": ("916", "8859-8"),
    "iso8859-9": ("920", "8859-9"),
    "iso8859-13": ("8859-13", "921"),  # *
    "iso8859-15": ("8859-15", "923"),  # *
    **{f"cp{number}": (f"{number}",) for number in range(1250, 1259)},  # 1258 is a CCSID's namesake
    **{f"cp{number}": (f"{number}",) for number in (437, 850, 852, 857, 858, 860, 863, 865, 866)},  # *
    "cp932": (
        "932",
        "sjis-s",
        "57350",
        "sjis",
    ),  # Shift JIS as it is used, with NEC's and IBM's additions
    "euc_jp": ("57351", "ujis"),
    "big5": ("57352", "big5"),
    "cp949": ("57356", "ksc", "ks5601", "cp949"),
    "gbk": ("57357", "gb", "gb2312-80", "cp936", "gbk"),  # GBK reads all of GB 2312
    "gb18030": ("5488", "gb18030", "gb18030-2000"),
}
_CODECS = {name: codec for codec, names in _CODE_SETS.items() for name in names}

# What must mean itself: ASCII, and what other kinds of encodings take for a sign of theirs.
_PLAIN = (bytes(range(128)), b"\x1b$B0!\x1b(B", b"xn--mnchen-3ya")


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
        f"the code set of locale {locale!r} is unknown.",
        "Set option dbLocale to the database's locale with the name of a code set, such as"
        " en_us.8859-1.",
        locale=locale,
    )


@functools.cache
def characters_of_two_forms(codec: str) -> frozenset[str]:
    """Return the characters that a code set has more than once, so that a text does not tell its bytes.

    Shift-JIS has those of NEC and IBM so, Big5 four; no code set of single bytes, and no Unicode one.

    >>> len(characters_of_two_forms("big5")), len(characters_of_two_forms("iso8859-1"))
    (4, 0)
    """
    sequences = [bytes([each]) for each in range(0x100)]
    sequences += [bytes([lead, trail]) for lead in range(0x80, 0x100) for trail in range(0x30, 0x100)]
    if codec == "euc_jp":  # has a third byte; others with more than two have all of Unicode, once
        sequences += [bytes([0x8F, a, b]) for a in range(0xA1, 0xFF) for b in range(0xA1, 0xFF)]
    seen, twice = set[str](), set[str]()
    for sequence in sequences:
        with contextlib.suppress(UnicodeDecodeError):
            text = sequence.decode(codec)
            if len(text) == 1:
                (twice if text in seen else seen).add(text)
    return frozenset(twice)


def _is_code_set(codec: str) -> bool:
    """Return whether Python knows it and it extends ASCII, as every Informix code set does.

    Python's registry also holds things that are not code sets (hex, utf-16, unicode_escape, idna), and
    encodings that switch by escape sequences, which no database stores.
    """
    if codec.endswith("escape"):
        return False
    try:
        return all(plain.decode(codec) == plain.decode("ascii") for plain in _PLAIN)
    except (LookupError, ValueError):
        return False
