"""How changes are delivered, as far as a user may choose.

Rule: one value that is made from the options once and handed down; light to import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """How changes are delivered.

    Attributes:
        shape: the form of a row.
        truncate: what a TRUNCATE does; in the raw shape it is a record like any other.
        before_image: whether an update shows the row before it.
        server: the server's name, which the envelope states.
    """

    shape: Literal["rows", "envelope", "raw"] = "rows"
    truncate: Literal["fail", "emit", "ignore"] = "fail"
    before_image: bool = True
    server: str = ""
