"""Tell a refusal that ends by itself, since others have locked what was to be read.

Rule: by its numbers, whichever of the two a server names first.
"""

from __future__ import annotations

from informix_capture_client.errors import ServerRefused

# Of Informix, and of its access method: a row or a table is locked, the wait has run out, deadlock
# (finderr); which of them a server names first is an assumption.
_LOCKED = {-107, -113, -143, -154, -233, -243, -244, -245, -246, -289}


def is_locked(reason: BaseException) -> bool:
    """Tell whether an error says that others have locked what was to be read."""
    answer = getattr(reason, "answer", None)
    if not isinstance(reason, ServerRefused) or answer is None:
        return False
    natives = {answer.native, *(native for _, native, _ in answer.diagnostics)}
    return bool(natives & _LOCKED)
