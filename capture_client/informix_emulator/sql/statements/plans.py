"""A parsed statement, before it runs.

A plan has no rows and no locks. The session it was made for may run it again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...answers import ResultColumn, StatementOutcome, StatementType
from ...column_types.encoding import EmulatedType
from ..language.values import Stored
from ..sources import SourceTable
from ..work import Work

BoundValues = Sequence[Stored]
RunChange = Callable[[Work, BoundValues], StatementOutcome]
RunQuery = Callable[[BoundValues], StatementOutcome]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a statement takes, what it answers with, how it is run."""

    kind: StatementType
    parameters: Sequence[EmulatedType] = ()
    columns: Sequence[ResultColumn] = ()
    tables: Sequence[SourceTable] = ()
    change: RunChange | None = None  # in a transaction, its own if none is open
    is_volatile: bool = False  # it must be understood anew for each run
    query: RunQuery | None = None  # changes nothing that a transaction knows
    ends_transaction: bool = False
    declare: Callable[[bool], None] | None = None  # of SELECT FOR UPDATE
