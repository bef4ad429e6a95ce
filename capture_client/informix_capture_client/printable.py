r"""What a server says must not steer the terminal that shows it: control characters are written out.

Rule: the one place that escapes. Errors go through here, whoever shows them, and what commands print:
tables by their console, which does the same to each piece. Spelt as JSON spells it, so that JSON stays
what it was.
"""

from __future__ import annotations

import json
import math
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


_SHOWN_IN_HOURS = 72
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def shown_bytes(count: float) -> str:
    """Print a size with about three digits.

    >>> shown_bytes(5 * 1024**3 / 2)
    '2.5 GiB'
    """
    unit = min(int(math.log(count, 1024)), len(_UNITS) - 1) if count >= 1 else 0
    number = f"{count / 1024**unit:.1f}".removesuffix(".0")
    return f"{number} {_UNITS[unit]}"


def shown_hours(hours: float) -> str:
    """Print an approximate time.

    >>> shown_hours(0.25), shown_hours(30.2), shown_hours(24 * 90)
    ('15 minutes', '30.2 hours', '90 days')
    """
    if hours < 2:
        return f"{hours * 60:.0f} minutes"
    if hours < _SHOWN_IN_HOURS:
        return f"{hours:.1f} hours".replace(".0 ", " ")
    return f"{hours / 24:.0f} days"
