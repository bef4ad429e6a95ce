"""Cut a statement into words, names, texts, numbers, parameters and signs.

Rule: nothing of SQL's grammar is known here but how its smallest pieces look; what does not look like
one is a syntax error. Sources: Guide to SQL: Syntax, "Identifier", "Quoted String", "How to Enter
SQL Comments".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ...sql_errors import sql_error

WORD, NAME, TEXT, NUMBER, PARAMETER, SIGN, END = (
    "word",
    "name",
    "text",
    "number",
    "parameter",
    "sign",
    "end",
)

_PIECE = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<open>/\*)
    |(?P<braced>\{)
    |(?P<quoted>'(?:[^']++|'')*+')
    |(?P<doubled>"(?:[^"]++|"")*+")
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<word>[^\W\d]\w*\$?)
    |(?P<parameter>\?)
    |(?P<sign>::|<>|!=|<=|>=|\|\||[-+*/(),.:;=<>@\[\]}])""",
    re.DOTALL | re.VERBOSE,
)
# Parentheses and CASE are read by recursion; a server's own limit is not known
_DEEPER = {"(": 1, ")": -1, "case": 1, "end": -1}
_DEEPEST = 100
_MOST_DIGITS = 400  # no type holds as many
_LARGEST = (1 << 63) - 1
_MOST_PIECES = 100_000  # a second's work; a server's own limit is not known
_LONGEST_KEPT = 1 << 16  # of a statement whose pieces are kept
_COLLECTIONS = ("set", "multiset", "list")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a statement; `text` of a word is in lower case, of a name or text without quotes."""

    kind: str
    text: str
    number: int = 0  # of a parameter, from 1
    word: str = ""  # the text of a word or sign, which grammar asks for again and again


class StatementTokens:
    """The pieces of a statement, and how far they are read."""

    def __init__(self, text: str, *, delimits_names: bool) -> None:
        cut = _cut if len(text) <= _LONGEST_KEPT else _cut.__wrapped__
        self._items = cut(text, delimits_names)
        self.place = 0
        self.no_conditions: set[int] = set()  # places of parentheses that hold expressions
        self.parameter_count = sum(item.kind == PARAMETER for item in self._items)

    @property
    def next(self) -> Token:
        """The piece that is read next."""
        return self._items[self.place]

    def after_next(self, distance: int = 1) -> Token:
        """The piece behind the next one."""
        return self._items[min(self.place + distance, len(self._items) - 1)]

    def take(self) -> Token:
        """Read a piece."""
        token = self.next
        if token.kind != END:
            self.place += 1
        return token

    def sees(self, *words: str) -> bool:
        """Whether these words or signs come next, in this order."""
        place = self.place
        for word in words:
            if self._items[place].word != word:  # there is one: the last, END, is not a word
                return False
            place += 1
        return True

    def accept(self, *words: str) -> bool:
        """Read these words if they come next."""
        if not self.sees(*words):
            return False
        self.place += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Read these words; a syntax error if others come."""
        if not self.accept(*words):
            raise sql_error(-201)

    def one_of(self, *words: str) -> str:
        """Read one of these words if it comes next, else return an empty text."""
        word = self.next.word
        if word not in words:
            return ""
        self.place += 1
        return word

    def name(self) -> str:
        """Read a name, delimited or not."""
        if self.next.kind not in (WORD, NAME):
            raise sql_error(-201)
        return self.take().text

    def whole_number(self) -> int:
        """Read a number without sign and point."""
        if self.next.kind != NUMBER or not self.next.text.isdigit():
            raise sql_error(-201)
        if (number := int(self.take().text)) > _LARGEST:
            raise sql_error(-201)
        return number

    def text(self) -> str:
        """Read a quoted text."""
        if self.next.kind != TEXT:
            raise sql_error(-201)
        return self.take().text

    def is_at_end(self) -> bool:
        """Whether everything is read, but for a semicolon."""
        self.accept(";")
        return self.next.kind == END

    def expect_end(self) -> None:
        """A syntax error if there is something left."""
        if not self.is_at_end():
            raise sql_error(-201)

    def slice(self, start: int, end: int) -> list[Token]:
        """Return the pieces between two places."""
        return list(self._items[start:end])

    def skip_balanced(self) -> None:
        """Read a parenthesis and everything up to the one that closes it."""
        depth = 0
        while True:
            token = self.take()
            if token.kind == END:
                raise sql_error(-201)
            depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == SIGN else 0
            if depth == 0:
                return

    def skip_to(self, *words: str) -> None:
        """Read up to one of these words outside of parentheses, or up to where those close."""
        while self.next.kind != END and not self.sees(")"):
            if self.next.kind == WORD and self.next.text in words:
                return
            if self.sees("("):
                self.skip_balanced()
            else:
                self.take()


@lru_cache(maxsize=64)  # drivers send the same statements again and again
def _cut(text: str, delimits_names: bool) -> tuple[Token, ...]:
    tokens: list[Token] = []
    place, parameters, depth = 0, 0, 0
    while place < len(text):
        match = _PIECE.match(text, place)
        if match is None or match.lastgroup == "open" or len(match["number"] or "") > _MOST_DIGITS:
            raise sql_error(-201)
        if len(tokens) > _MOST_PIECES:
            raise sql_error(-201)
        place = match.end()
        kind = str(match.lastgroup)
        if kind == "braced" and not _begins_collection(tokens):
            place = _end_of_comment(text, place)
        elif kind == "parameter":
            parameters += 1
            tokens.append(Token(PARAMETER, "?", parameters))
        elif kind != "blank":
            tokens.append(_token(kind, match.group(), delimits_names))
            depth += _DEEPER.get(tokens[-1].word, 0)
            if depth > _DEEPEST:
                raise sql_error(-201)
    return (*tokens, Token(END, ""))


def _token(kind: str, text: str, delimits_names: bool) -> Token:
    if kind == "quoted":
        return Token(TEXT, text[1:-1].replace("''", "'"))
    if kind == "doubled":  # without DELIMIDENT another way to quote a text
        return Token(NAME if delimits_names else TEXT, text[1:-1].replace('""', '"'))
    if kind == "word":
        return Token(WORD, text.lower(), word=text.lower())
    return Token(NUMBER, text) if kind == "number" else Token(SIGN, text, word=text)


def _begins_collection(tokens: list[Token]) -> bool:
    """Whether a brace belongs to SET{1}, as IBM's JDBC driver 15 sends it, and not to a comment."""
    return (
        len(tokens) > 1
        and tokens[-1].text in _COLLECTIONS
        and tokens[-1].kind == WORD
        and tokens[-2].text == "("
    )


def _end_of_comment(text: str, place: int) -> int:
    end = text.find("}", place)
    if end < 0:
        raise sql_error(-201)
    return end + 1
