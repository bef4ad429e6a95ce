"""All proofs in the order in which they run, and the assumptions that none of them tries.

Rule: every number of docs/assumptions.md is in a proof or in `UNTRIED`, and in no proof and `UNTRIED`
at once; a test compares them with the page.
"""

from __future__ import annotations

from types import ModuleType

from informix_cdc.proving import (
    catalog_proofs,
    lock_proofs,
    session_proofs,
    stream_proofs,
    table_proofs,
    transaction_proofs,
    type_proofs,
    wire_proofs,
)
from informix_cdc.proving.proofs import ServerProof

_OTHER_USER = "needs a second user of the server"
_OTHER_SERVER = "needs a server with another set-up"
_OTHER_CLIENT = "needs another vendor's client"
_DISTURBS = "would switch or overwrite the server's log files"
_LIVE_TESTS_ONLY = "needs more than SQL; the live tests try it"


def _of(module: ModuleType) -> tuple[ServerProof, ...]:
    return tuple(each for each in vars(module).values() if isinstance(each, ServerProof))


PROOFS: tuple[ServerProof, ...] = tuple(
    proof
    for module in (
        session_proofs,
        type_proofs,
        transaction_proofs,
        table_proofs,
        catalog_proofs,
        lock_proofs,
        stream_proofs,
        wire_proofs,
    )
    for proof in _of(module)
)

UNTRIED: dict[int, str] = {
    **dict.fromkeys((19, 36, 43, 75, 106), _OTHER_USER),
    **dict.fromkeys((44, 45, 48, 74), _OTHER_SERVER),
    **dict.fromkeys((53, 56, 68), _OTHER_CLIENT),
    **dict.fromkeys((23, 34), _DISTURBS),
    **dict.fromkeys((13, 20, 59, 60, 115), _LIVE_TESTS_ONLY),
}
