"""Run the proofs one after another, and count which assumptions held.

Rule: a failed proof never ends the run; Ctrl-C does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from informix_capture_client.errors import AccessRefused, ConnectionLost, InformixCdcError
from informix_cdc.proving.all_proofs import PROOFS, UNTRIED
from informix_cdc.proving.outcomes import Deviation, NotTried, error_text
from informix_cdc.proving.proofs import Outcome, ProofResult, ServerProof
from informix_cdc.proving.prover import Prover
from informix_cdc.proving.reading import Missing

_NOTHING_IS_READ = "no capture session can be read: see the first proof"


def run_proofs(prover: Prover, proofs: Sequence[ServerProof] = PROOFS) -> Iterator[Outcome]:
    """Yield the outcome of each proof as soon as it is known."""
    reads, contradicted = True, set[int]()
    for proof in proofs:
        missing = contradicted.intersection(proof.needs)
        if missing:
            yield _not_tried(proof, f"assumption {min(missing)}, which it needs, does not hold")
        elif proof.transport not in ("", prover.options.connection.transport):
            yield _not_tried(proof, f"needs --transport {proof.transport}")
        elif proof.reads and not reads:
            yield _not_tried(proof, _NOTHING_IS_READ)
        else:
            outcome = _outcome(prover, proof)
            is_first = proof.name.startswith("a session over")
            contradicted |= {*outcome.contradicted}
            reads &= not (is_first and outcome.result is not ProofResult.HELD)
            yield outcome


def _not_tried(proof: ServerProof, reason: str) -> Outcome:
    return Outcome(proof, ProofResult.NOT_TRIED, reason=reason)


def _outcome(prover: Prover, proof: ServerProof) -> Outcome:
    prover.observed.clear()
    begun = time.monotonic()
    found = _tried(prover, proof)
    seconds = round(time.monotonic() - begun, 1)
    return replace(found, seconds=seconds, observed=tuple(prover.observed))


def _tried(prover: Prover, proof: ServerProof) -> Outcome:
    try:
        proof.body(prover)
    except Exception as reason:  # noqa: BLE001 - an answer that nothing of ours expects is a finding
        found = _finding(reason)
    else:
        return Outcome(proof, ProofResult.HELD)
    if isinstance(found, NotTried):
        return _not_tried(proof, str(found))
    numbers = found.numbers or proof.assumptions
    return Outcome(
        proof, ProofResult.DEVIATED, contradicted=numbers, expected=found.expected, found=found.found
    )


def _finding(reason: Exception) -> Deviation | NotTried:
    """Return what an error says of the server; a lost connection says nothing of it."""
    if isinstance(reason, Deviation | NotTried):
        return reason
    if isinstance(reason, Missing):
        return Deviation("the awaited records arrive", str(reason))
    if isinstance(reason, AccessRefused):
        return NotTried(f"a privilege is missing: {error_text(reason)}")
    if isinstance(reason, ConnectionLost):
        is_silent = reason.is_silence
        silence = Deviation("each read returns", "a read did not return")
        return silence if is_silent else NotTried("the connection was lost")
    if isinstance(reason, InformixCdcError):
        return Deviation("no error", error_text(reason))
    return Deviation("an answer that we expect", f"{type(reason).__name__} in our code")


@dataclass(frozen=True, slots=True)
class Standing:
    """The assumptions by what became of them.

    Attributes:
        held, deviated: their numbers.
        not_tried: why, by number.
    """

    held: tuple[int, ...]
    deviated: tuple[int, ...]
    not_tried: dict[int, str]

    def __str__(self) -> str:
        held = f"{len(self.held)} {'assumption' if len(self.held) == 1 else 'assumptions'} held"
        return f"{held}, {len(self.deviated)} did not, {len(self.not_tried)} not tried"


def standing_of(outcomes: Iterable[Outcome]) -> Standing:
    """Count the assumptions: one contradiction outweighs any number of proofs that held."""
    held: set[int] = set()
    deviated: set[int] = set()
    reasons = dict(UNTRIED)
    for outcome in outcomes:
        deviated |= {*outcome.contradicted}
        for number in outcome.proof.assumptions:
            if outcome.result is ProofResult.HELD:
                held.add(number)
            else:
                reasons.setdefault(number, outcome.reason or "its proof ended before")
    for proof in PROOFS:
        for number in proof.assumptions:
            reasons.setdefault(number, "the run was interrupted")
    known = held | deviated
    return Standing(
        tuple(sorted(held - deviated)),
        tuple(sorted(deviated)),
        {number: reasons[number] for number in sorted(reasons) if number not in known},
    )
