"""SQL names as users write them and as the server wants them: plain, or delimited by double quotes.

Rule: a plain name means its lower-case form, as in Informix's SQL; a delimited one is as it is
written, and `""` in it is one quote.

    name := letter {letter | digit | _ | $}  |  " any characters "
    path := name {. name}
    list := path {, path}
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAME = r'"(?:[^"]|"")+"|[^\W\d][\w$]*'
_STEP = re.compile(rf"\s*({_NAME})\s*(\.|,|$)")
_PLAIN = re.compile(r"[^\W\d][\w$]*")
_SHOWN = 60  # how much of a text that makes no sense an error quotes

Path = tuple[str, ...]


def read_paths(text: str) -> Iterator[Path]:
    """Yield the paths of a list.

    Raises:
        ValueError: the text is no list of names.

    >>> list(read_paths('orders.id, orders."Ship, Date"'))
    [('orders', 'id'), ('orders', 'Ship, Date')]
    """
    at = 0
    path: Path = ()
    while at < len(text) or path:
        step = _STEP.match(text, at)
        if step is None:
            raise ValueError(f"{text[at : at + _SHOWN]!r} is no name")
        at, path = step.end(), (*path, unquoted(step[1]))
        if step[2] != ".":
            yield path
            path = ()


def unquoted(name: str) -> str:
    """Return what a name means."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def quoted(name: str) -> str:
    """Return a name as a statement must spell it: delimited only where it has to be.

    >>> quoted("order_num"), quoted("Ship Date")
    ('order_num', '"Ship Date"')
    """
    is_plain = _PLAIN.fullmatch(name) and name == name.lower()
    return name if is_plain else '"' + name.replace('"', '""') + '"'
