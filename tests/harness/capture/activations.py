"""Where sessions of the emulator were activated, and for which tables."""

from __future__ import annotations

import pytest

from informix_emulator.log.sessions import EmulatedSession

Activation = tuple[int, frozenset[str]]


def noted_activations(monkeypatch: pytest.MonkeyPatch) -> list[Activation]:
    """Return a list that grows with each activation: its place, and the tables of the session."""
    seen: list[Activation] = []
    activate = EmulatedSession.activate

    def noted(session: EmulatedSession, position: int) -> None:
        names = frozenset(str(capture.table.name) for capture in session.captures.values())
        seen.append((position, names))
        activate(session, position)

    monkeypatch.setattr(EmulatedSession, "activate", noted)
    return seen
