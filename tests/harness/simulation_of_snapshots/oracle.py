"""What must be true of a stream that begins with a snapshot, judged from the writers' own account.

Rule: no code of the product decides anything here. Whoever upserts inserts and post-images, and deletes
deletes and pre-images, has at the end of every batch exactly the rows that the log leaves, in the range
of keys that the offset says to have been read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from harness.simulation.account import Change, Noted
from harness.simulation.oracle import Oracle
from harness.simulation_of_snapshots.writers import Writers, apply
from informix_capture_client.emulator.locks import NO_SESSION

if TYPE_CHECKING:
    from harness.simulation.spark import Checkpoint, Offset

NAME = "informix.changes"
_COLUMNS = ("_commit_version", "_change_ordinal", "_snapshot", "_change_type", "id", "value")


class SnapshotOracle(Oracle):
    """Judges a stream with a snapshot."""

    def check(self, checkpoint: Checkpoint) -> None:
        """Judge the whole schedule."""
        self._check_pairs()
        waits = [wait for wait in self.world.server.lock_waits.seen if wait.waiter == NO_SESSION]
        ours = [wait for wait in waits if wait.owners - {NO_SESSION}]
        assert not ours, f"a writer met locks of ours: {ours}"
        if self._is_ambiguous(checkpoint):
            return
        places, rows = list[tuple[int, int]](), dict[int, int]()
        self._unapplied = sorted(self.world.account.committed, key=lambda noted: noted.commit or 0)
        for batch, end in enumerate(checkpoint.ends):
            if batch not in checkpoint.sink:
                break
            if batch == 0:
                self._anchor = int(end["commit"])
                self._apply_upto(self._anchor, {})
            found = list(_rows(checkpoint.sink[batch]))
            places += [(row[0], row[1]) for row in found]
            self._check_changes(batch, end, found)
            for version, _, is_snapshot, _, key, value in found:
                if is_snapshot:
                    self._apply_upto(version - 1, rows)
                    rows[key] = value
            self._apply_upto(end["commit"], rows)
            if batch not in self.world.batches_without_chunks:  # type: ignore[attr-defined]
                self._check_state(batch, end, rows)
        assert places == sorted(set(places)), f"places are not unique and rising: {places}"

    def _is_ambiguous(self, checkpoint: Checkpoint) -> bool:
        """Tell whether a transaction may pass for one that was open when the stream began.

        It began within a page of where the stream does, and is left out, of this stream and of the
        chunks that were read before it committed: not mended yet.
        """
        if not checkpoint.ends:
            return False
        stream = self.streams[checkpoint.ends[0]["stream"]]
        return any(
            stream.may_be_older(noted) and noted.begin >= stream.begins_at
            for noted in self.world.account.committed
            if (noted.commit or 0) > stream.anchor["commit"]
        )

    def _apply_upto(self, commit: int, rows: dict[int, int]) -> None:
        while self._unapplied and (self._unapplied[0].commit or 0) <= commit:
            apply(rows, self._unapplied.pop(0))

    def _check_changes(self, batch: int, end: Offset, found: list[tuple[Any, ...]]) -> None:
        """Compare what came of the log with what committed: all of it, once, in order."""
        expected = [
            (noted.commit, *change)
            for noted in self._unapplied
            if self._anchor < (noted.commit or 0) <= end["commit"]
            for change in self._shown(noted)
        ]
        came = [(row[0], *row[3:]) for row in found if not row[2]]
        assert came == expected, f"batch {batch} up to {end}:\n found {came}\n not   {expected}"

    def _shown(self, noted: Noted) -> Iterator[Change | tuple[str, None, None]]:
        setup = self.world.setup
        for change in noted.changes:
            if change[0] == "truncate":
                if setup.shows_truncates:  # type: ignore[attr-defined]
                    yield "truncate", None, None
            elif change[0] != "update_preimage" or setup.before_images:  # type: ignore[attr-defined]
                yield change

    def _check_state(self, batch: int, end: Offset, rows: dict[int, int]) -> None:
        account = self.world.account
        assert isinstance(account, Writers)
        snapshot = end["tables"][NAME]["snapshot"]
        upto = int(snapshot["after"][0]) if snapshot.get("after") else -1
        whole = snapshot.get("done", False)
        found = {key: value for key, value in rows.items() if whole or key <= upto}
        state = account.state(end["commit"])
        expected = {key: value for key, value in state.items() if whole or key <= upto}
        assert found == expected, (
            f"state after batch {batch}, up to {'the end' if whole else upto}, {end}:\n"
            f" found {sorted(found.items())}\n not   {sorted(expected.items())}"
        )


def _rows(table: pa.Table | None) -> list[tuple[Any, ...]]:
    if table is None:
        return []
    return list(zip(*(table[name].to_pylist() for name in _COLUMNS), strict=True))
