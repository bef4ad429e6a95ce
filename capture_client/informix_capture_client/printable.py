r"""What a server says must not steer the terminal that shows it: control characters are written out.

Rule: the one place that escapes. Errors go through here, whoever shows them, and what commands print:
tables by their console, which does the same to each piece. Spelt as JSON spells it, so that JSON stays
what it was.
"""

from __future__ import annotations

import json
import re
import unicodedata

# Control, format (direction of writing, zero width), lone surrogates, separators of lines; a newline
# is how lines end. Private use and unassigned characters are shown: they steer nothing.
_STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")
_UNUSUAL = re.compile(r"[^\n -~]")


def printable(text: str) -> str:
    r"""Return a text whose characters a terminal shows, and does not obey.

    >>> printable("a\x1b[2Jb\x9b1mc\u202ed é 漢")
    'a\\u001b[2Jb\\u009b1mc\\u202ed é 漢'
    """
    return text if text.isascii() and text.isprintable() else _UNUSUAL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    steers = unicodedata.category(character) in _STEERING
    return json.dumps(character)[1:-1] if steers else character
