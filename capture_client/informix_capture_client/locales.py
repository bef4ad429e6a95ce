"""Code sets: which Python codec reads the bytes of an Informix locale.

Rule: an unknown code set is refused, never guessed. A locale is `language_territory.codeset`, and the
code set is a name or a number (Informix GLS user's guide); sysdbslocale shows numbers.
"""

from __future__ import annotations

import codecs
import contextlib
import functools

from informix_capture_client.errors import BadOption

# Names and numbers of Informix's registry of code sets (gls/cm3/registry). Its table is published in
# liaosnet/GBase8s_Docs, 091_CodeSet.md, and in part in HCL's ids_ils_06 and in the JDBC driver's guide
# ("Unicode to Database Code Set"). Those marked * are CCSIDs without a name there. A name that is not
# here is looked up as Python's own, a number never is. No codec of Python reads Mazovia, CSK, MIK,
# CCDC, EUC-TW and Shift-Big-5.
CODE_SETS: dict[str, tuple[str, ...]] = {
    "ascii": ("ascii", "364"),
    "utf-8": ("utf8", "57372"),
    "iso8859-1": ("8859-1", "819", "latin-1", "c", "posix"),
    "iso8859-2": ("8859-2", "912", "latin-2"),
    "iso8859-3": ("8859-3", "57346", "latin-3"),
    "iso8859-4": ("8859-4", "57347", "latin-4"),
    "iso8859-5": ("8859-5", "915", "latin-cyrillic", "cyrillic-8bit"),
    "iso8859-6": ("8859-6", "1089", "latin-arabic", "iso-ir-127", "asmo-708"),
    "iso8859-7": ("8859-7", "813", "latin-greek"),
    "iso8859-8": ("8859-8", "916", "latin-hebrew"),
    "iso8859-9": ("8859-9", "920", "latin-5"),
    "iso8859-13": ("8859-13", "57390", "921", "latin-baltic"),  # 921: *
    "iso8859-15": ("8859-15", "57391", "923", "latin-9"),  # 923: *
    "iso8859-16": ("8859-16", "1173", "latin-10"),
    "cp437": ("cp437", "437", "unitedstates"),
    "cp737": ("greek", "737"),
    "cp775": ("baltic", "775"),
    "cp850": ("pc-latin-1", "850"),
    "cp852": ("pc-latin-2", "852"),
    "cp856": ("pc-data-hebrew", "856", "pc-hebrew-saa"),
    "cp857": ("pc857", "857", "ccsid857"),
    "cp858": ("pc-latin-1-we", "858"),
    **{f"cp{number}": (f"cp{number}", f"{number}") for number in (860, 863, 865)},  # *
    "cp866": ("pc866", "866", "pc-cyrillic", "cis-1"),
    "cp874": ("thai620", "57373", "thai"),  # reads all of TIS 620
    "cp932": (
        "sjis-s",
        "932",
        "pc-sjis",
        "ccsid932",
        "sjis",
        "57350",
        "shift-jis",
    ),  # with NEC's and IBM's
    "cp949": ("ksc", "57356", "ks5601", "cp949", "cp_949", "949"),
    "cp1250": ("cp1250", "1250", "east-europe"),
    "cp1251": ("cp1251", "1251", "pc-slavic"),
    "cp1252": ("cp1252", "1252", "west-europe"),
    "cp1253": ("cp1253", "1253", "pc-greek"),
    "cp1254": ("cp1254", "1254", "pc-turkish", "pc-latin5"),
    "cp1255": ("cp1255", "1255", "pc-hebrew"),
    "cp1256": ("cp1256", "1256", "pc-arabic"),
    "cp1257": ("cp1257", "1257", "pc-baltic"),
    "cp1258": ("cp1258", "1258"),
    "koi8-r": ("koi-8", "57382"),  # the same Russian letters (RFC 1489)
    "hp-roman8": ("roman8", "57385"),
    "euc_jp": ("ujis", "57351", "eucjp", "5050"),
    "big5": ("big5", "57352", "big-5"),
    "big5hkscs": ("big5hkscs", "1375", "big5-hkscs", "big-5hkscs", "big-5-hkscs"),
    "gbk": ("gb", "57357", "gb2312-80", "guobiao2312", "cp936", "gbk"),  # GBK reads all of GB 2312
    "gb18030": ("gb18030-2000", "5488", "gb18030", "gb18030-2005", "5493", "gb18030-2022", "5510"),
}
_CODECS = {name: codec for codec, names in CODE_SETS.items() for name in names}

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
        f"the code set of locale {locale!r} is not supported.",
        "A database of this code set cannot be captured. If option dbLocale names it, remove the"
        " option, or name the database's locale. Supported, also by number (docs/types.md#code-sets):"
        f" {', '.join(names[0] for names in CODE_SETS.values())}.",
        locale=locale,
    )


@functools.cache
def characters_of_two_forms(codec: str) -> frozenset[str]:
    """Return the characters that a code set has more than once, so that a text does not tell its bytes.

    Shift-JIS has those of NEC and IBM so, Big5 four, its extension of Hong Kong twelve; no code set of
    single bytes, and no Unicode one.

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
