"""A proof, and what became of it.

Rule: a proof is a function that raises `Deviation` or `NotTried`; the decorator adds what it rests on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from informix_cdc.proving.prover import Prover


class ProofResult(StrEnum):
    """What became of a proof, or of an assumption."""

    HELD = "held"
    DEVIATED = "deviated"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class ServerProof:
    """One experiment.

    Attributes:
        name: what it is about.
        assumptions: numbers in docs/assumptions.md that it rests on; none if it rests on the CDC guide.
        does: what it does, in one sentence.
        body: raises `Deviation` or `NotTried`.
        transport: the only transport over which it can be tried; empty: any.
        reads: whether it reads a capture session.
        needs: assumptions without which it cannot be tried.
    """

    name: str
    assumptions: tuple[int, ...]
    does: str
    body: Callable[[Prover], None]
    transport: str = ""
    reads: bool = True
    needs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one proof.

    Attributes:
        contradicted: the assumptions that a deviation contradicts.
        expected, found: of a deviation.
        reason: why it was not tried.
        observed: how the server does what the assumptions leave open.
    """

    proof: ServerProof
    result: ProofResult
    seconds: float = 0.0
    contradicted: tuple[int, ...] = ()
    expected: str = ""
    found: str = ""
    reason: str = ""
    observed: tuple[str, ...] = ()


def proof(
    *assumptions: int, does: str, transport: str = "", reads: bool = True, needs: tuple[int, ...] = ()
) -> Callable[[Callable[[Prover], None]], ServerProof]:
    """Return a decorator that makes a proof of a function, named after it."""

    def made(body: Callable[[Prover], None]) -> ServerProof:
        name = body.__name__.replace("_", " ")
        return ServerProof(name, assumptions, does, body, transport, reads, needs)

    return made
