"""How a publishing queue map writes its messages.

Rule: IBM's own restrictions are kept: four delimiters of one byte each, all different, none a letter or
a digit (IBM, "Structure of delimited messages for Event Publishing").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from informix_capture_client.errors import BadOption
from informix_db2.code_pages import CodePage, code_page
from informix_db2.declared_tables import CHARACTERS, GRAPHIC
from informix_db2.decoding import MOST_BYTES
from informix_db2.q_messages.tokens import Delimiters
from informix_db2.refused_bytes import BadDb2Value

OtherTables = Literal["fail", "skip"]
OTHER_TABLES = ("fail", "skip")
_HEX = re.compile(r"0x([0-9a-fA-F]{2})\Z")


@dataclass(frozen=True)
class QMessageSettings:
    """What messages look like.

    Attributes:
        column_delimiter, record_delimiter, string_delimiter: a character, or a byte such as 0x25.
        decimal_point: the character in front of a number's fraction.
        encoding: the code page that messages are published in: a name, or a CCSID.
        source_encoding: the code page of characters that came as hexadecimal digits; without it the
            digits are delivered.
        source_graphic_encoding: the same for GRAPHIC columns and their like.
        other_tables: what a record of a table is that is not declared: bad, or skipped.
        max_value_bytes: a value with more bytes is refused.
    """

    column_delimiter: str = ","
    record_delimiter: str = "\n"
    string_delimiter: str = '"'
    decimal_point: str = "."
    encoding: str | int = "utf-8"
    source_encoding: str | int | None = None
    source_graphic_encoding: str | int | None = None
    other_tables: OtherTables = "fail"
    max_value_bytes: int = MOST_BYTES

    def __post_init__(self) -> None:
        if self.other_tables not in OTHER_TABLES:
            raise BadOption(
                f"other_tables is {self.other_tables!r}.", f"Use {' or '.join(OTHER_TABLES)}."
            )
        found = self.delimiters
        point = self._byte("decimal_point", self.decimal_point)
        if len({found.column, found.record, found.string, point}) != 4:
            raise BadOption(
                "Two of column_delimiter, record_delimiter, string_delimiter, decimal_point are equal.",
                "Set them to the four different values of the publishing queue map.",
            )

    @cached_property
    def delimiters(self) -> Delimiters:
        """The delimiters' bytes where messages are cut."""
        return Delimiters(
            self._byte("column_delimiter", self.column_delimiter),
            self._byte("record_delimiter", self.record_delimiter),
            self._byte("string_delimiter", self.string_delimiter),
        )

    @cached_property
    def code_page(self) -> CodePage:
        """The code page that messages come in."""
        return code_page(self.encoding)

    @cached_property
    def encoding_of_tokens(self) -> CodePage:
        """The code page in which messages are cut: theirs, or UTF-8 where a byte is not a character.

        In UTF-8 no byte of a longer character is one of ASCII; in Shift-JIS or UTF-16 it may be.
        """
        page = self.code_page
        return page if page.is_single_byte or page.is_utf8 else code_page("utf-8")

    @property
    def is_cut_as_text(self) -> bool:
        """Whether messages are made UTF-8 before they are cut."""
        return self.encoding_of_tokens is not self.code_page

    @cached_property
    def code_pages_of_digits(self) -> dict[str, CodePage]:
        """By type, the code page of characters that came as hexadecimal digits.

        GRAPHIC columns have one of their own: in a UTF-8 database, for one, they are UTF-16.
        """
        given = ((CHARACTERS, self.source_encoding), (GRAPHIC, self.source_graphic_encoding))
        return {kind: code_page(name) for kinds, name in given if name is not None for kind in kinds}

    @cached_property
    def point(self) -> str:
        """The character in front of a number's fraction, however it was given."""
        return self.encoding_of_tokens.decode(bytes([self._byte("decimal_point", self.decimal_point)]))

    def _byte(self, name: str, given: str) -> int:
        page = self.encoding_of_tokens
        try:
            found = _HEX.match(given)
            byte = bytes.fromhex(found[1]) if found else page.encode(given)
            # A byte of a longer character is none here, and what is a letter depends on the code page.
            character = page.decode(byte)
        except (BadDb2Value, UnicodeEncodeError):
            byte, character = b"", ""
        if len(byte) != 1 or (character.isalnum() and character.isascii()):
            raise BadOption(
                f"{name}: {given!r} is not a valid delimiter.",
                "Use a single-byte character that is not a letter or digit, or its byte, such as 0x25.",
            )
        return byte[0]
