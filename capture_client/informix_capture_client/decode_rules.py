"""How values are read where a user may choose.

Rule: one value that is made from the options once and handed down; whoever decodes asks nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeRules:
    """What a column becomes where there is a choice.

    Attributes:
        codec: the Python codec of the database's code set.
        keep_blanks: whether CHAR and NCHAR keep their trailing blanks.
        bad_characters: what happens to bytes that are not valid in the code set.
        floating_decimal: what DECIMAL(p) without a scale becomes: exact text, a double, or a
            DECIMAL(38, n), given as n.
        intervals: whether intervals are typed or as Informix prints them.
    """

    codec: str = "utf-8"
    keep_blanks: bool = False
    bad_characters: Literal["fail", "replace"] = "fail"
    floating_decimal: Literal["string", "double"] | int = "string"
    intervals: Literal["typed", "string"] = "typed"
