"""EXECUTE FUNCTION of a `cdc_*` function: the types of its arguments, and who may call it.

This module parses the statement; `functions.py` runs the function. The types are those of the
functions' declarations (CDC guide, chapter 2): a client converts its bound values to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..answers import (
    CheckStatement,
    Prepared,
    ResultColumn,
    SqlSession,
    SqlValue,
    StatementOutcome,
    StatementType,
)
from ..column_types.column_list import TypeText, split_at_commas
from ..column_types.encoding import EmulatedType, column_type

_EXECUTE = re.compile(
    r"execute function (?P<cdc>syscdcv1 ?: ?)?(?:\"?(?P<owner>\w+)\"?\.)?"
    r"(?P<name>cdc_\w+) ?\((?P<arguments>.*)\)",
    re.IGNORECASE,
)
_TEXT, _INTEGER, _BIGINT = "lvarchar", "integer", "bigint"
_ARGUMENTS = {
    "cdc_opensess": (_TEXT, _INTEGER, _INTEGER, _INTEGER, _INTEGER, _INTEGER),
    "cdc_set_fullrowlogging": (_TEXT, _INTEGER),
    "cdc_startcapture": (_INTEGER, _BIGINT, _TEXT, _TEXT, _INTEGER),
    "cdc_activatesess": (_INTEGER, _BIGINT),
    "cdc_deactivatesess": (_INTEGER,),
    "cdc_endcapture": (_INTEGER, _BIGINT, _TEXT),
    "cdc_closesess": (_INTEGER,),
    "cdc_recboundary": (_INTEGER,),
    "cdc_errortext": (_TEXT, _TEXT),
}
_LENGTHS = {_TEXT: (2048,)}


@dataclass(frozen=True, slots=True)
class Call:
    """A function's call as written: whether it names the CDC database, an owner, its arguments."""

    is_qualified: bool
    owner: str | None
    name: str
    arguments: tuple[str, ...]

    def given(self, values: Iterator[str | None]) -> list[str | None]:
        """Return the arguments as text, the question marks filled with values."""
        return [next(values) if item == "?" else _literal(item) for item in self.arguments]


def parse_call(text: str) -> Call | None:
    """Read a statement whose blanks are single ones, if it calls such a function."""
    match = _EXECUTE.fullmatch(text)
    if match is None:
        return None
    items = [item.strip() for item in split_at_commas(match["arguments"])]
    arguments = tuple(item for item in items if item)
    return Call(match["cdc"] is not None, match["owner"], match["name"].lower(), arguments)


def prepare_call(
    call: Call, codec: str, run: Callable[[Iterator[str | None], CheckStatement], int | str]
) -> Prepared:
    """Describe a call; `run` gets the values as text, NULL as None."""
    declared = _ARGUMENTS.get(call.name, ())
    kinds = [*declared, *(_TEXT for _ in call.arguments[len(declared) :])]
    asked = zip(call.arguments, kinds, strict=False)
    parameters = [_type(kind, codec) for item, kind in asked if item == "?"]
    answer = _type(_TEXT if call.name == "cdc_errortext" else _INTEGER, codec)

    def run_once(values: Sequence[SqlValue], check: CheckStatement) -> StatementOutcome:
        texts = (None if value is None else str(value) for value in values)
        return StatementOutcome([(run(texts, check),)])

    columns = [ResultColumn("(expression)", answer)]
    return Prepared(StatementType.EXECUTE, parameters, columns, run_once)


def _type(name: str, codec: str) -> EmulatedType:
    return column_type(TypeText(name, _LENGTHS.get(name, ())), codec)


def _literal(text: str) -> str | None:
    return None if text.lower() == "null" else text.strip("'\"")


class WithCalls:
    """The statements of a connection: calls of `cdc_*` functions, and all others in the engine."""

    def __init__(
        self,
        prepare_call: Callable[[Call], Prepared],
        may_use: Callable[[str], None],
        engine: SqlSession,
    ) -> None:
        self._prepare_call, self._may_use = prepare_call, may_use
        self._engine = engine

    def prepare(self, text: str) -> Prepared:
        """Understand a statement."""
        plain = " ".join(text.split()).rstrip("; ")
        call = parse_call(plain)
        if call:
            return self._prepare_call(call)
        self._may_use(text)
        return self._engine.prepare(text)

    def begin(self) -> None:
        """Begin a transaction."""
        self._engine.begin()

    def commit(self) -> None:
        """Commit."""
        self._engine.commit()

    def rollback(self) -> None:
        """Roll back."""
        self._engine.rollback()

    def savepoint(self, name: str, *, is_unique: bool = False) -> None:
        """Mark a place in the transaction."""
        self._engine.savepoint(name, is_unique=is_unique)

    def rollback_to(self, name: str) -> None:
        """Undo what was done since a savepoint."""
        self._engine.rollback_to(name)

    def release(self, name: str) -> None:
        """Forget a savepoint."""
        self._engine.release(name)

    def close(self) -> None:
        """End what is open."""
        self._engine.close()
