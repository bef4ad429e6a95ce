"""Try on a server what docs/assumptions.md assumes: `informix-cdc prove`, and the live tests' core.

    scratch.py             the scratch database, and taking everything back
    prover.py              what a proof works with: SQL, sessions, streams
    *_proofs.py            the proofs, by subject; all_proofs.py lists them
    run.py, report.py      their outcomes, the count of assumptions, and the file to send

Rule: refuse a database that is in use, leave nothing behind, and report no data: `outcomes.py`.
"""

from __future__ import annotations

from informix_cdc.proving.all_proofs import PROOFS
from informix_cdc.proving.proofs import Outcome, ProofResult
from informix_cdc.proving.prover import Prover
from informix_cdc.proving.report import place_to_send, report_of
from informix_cdc.proving.run import Standing, run_proofs, standing_of
from informix_cdc.proving.scratch import Leftovers, release_command, scratch_prover

__all__ = [
    "PROOFS",
    "Leftovers",
    "Outcome",
    "ProofResult",
    "Prover",
    "Standing",
    "place_to_send",
    "release_command",
    "report_of",
    "run_proofs",
    "scratch_prover",
    "standing_of",
]
