"""A store of rows in memory, which knows what it still holds."""

from __future__ import annotations

import weakref
from collections.abc import Sequence


class KeptBytes:
    def __init__(self, content: bytes, store: FakeStore) -> None:
        self._content = content
        self._store = store

    @property
    def size_bytes(self) -> int:
        return len(self._content)

    def load(self) -> bytes:
        self._store.loads += 1
        return self._content


class FakeStore:
    """Keeps what it is given for as long as somebody refers to it."""

    def __init__(self) -> None:
        self.held: weakref.WeakSet[KeptBytes] = weakref.WeakSet()
        self.keeps = self.loads = 0

    def keep(self, parts: Sequence[memoryview]) -> KeptBytes:
        kept = KeptBytes(b"".join(parts), self)
        self.held.add(kept)
        self.keeps += 1
        return kept

    @property
    def size_bytes(self) -> int:
        return sum(kept.size_bytes for kept in self.held)
