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
from harness.simulation.oracle import Oracle, Stream
from harness.simulation_of_snapshots.writers import KEYS, Writers, apply
from informix_emulator.locks import NO_SESSION

if TYPE_CHECKING:
    from harness.simulation.spark import Checkpoint, Offset

NAME = "informix.changes"
_COLUMNS = ("_commit_version", "_change_ordinal", "_snapshot", "_change_type", "id", "value")


class SnapshotOracle(Oracle):
    """Judges a stream with a snapshot.

    Attributes:
        left_out_count: of transactions that pass for older than the stream.
    """

    left_out_count = 0

    def check(self, checkpoint: Checkpoint) -> None:
        """Judge the whole schedule."""
        self._check_pairs()
        waits = [wait for wait in self.world.server.lock_waits.seen if wait.waiter == NO_SESSION]
        ours = [wait for wait in waits if wait.owners - {NO_SESSION}]
        assert not ours, f"a writer met locks of ours: {ours}"
        try:
            self._judge(checkpoint, [])
        except AssertionError:
            if not (left_out := self._left_out(checkpoint)):
                raise
            self._judge(checkpoint, left_out)
            self.left_out_count = len(left_out)

    def _judge(self, checkpoint: Checkpoint, left_out: list[Noted]) -> None:
        """Judge what a consumer has, some transactions aside."""
        places, rows = list[tuple[int, int]](), dict[int, int]()
        self._anchor: int | None = None
        committed = sorted(self.world.account.committed, key=lambda noted: noted.commit or 0)
        self._unapplied = [noted for noted in committed if noted not in left_out]
        self._unsure = {key for noted in left_out for key in touched(noted)}
        for batch, end in enumerate(checkpoint.ends):
            if batch not in checkpoint.sink:
                break
            if self._anchor is None and (since := self._since(end)) is not None:
                self._anchor = since
                self._apply_upto(since, {})
            found = list(self._rows(checkpoint.sink[batch]))
            if self._anchor is None:
                assert not found, f"rows before the table is in the stream: {found}"
                continue
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

    def _since(self, end: Offset) -> int | None:
        """Return the commit behind which changes come; None: they do not yet."""
        return int(end["commit"])

    def _rows(self, table: pa.Table | None) -> list[tuple[Any, ...]]:
        if table is None:
            return []
        return list(zip(*(table[name].to_pylist() for name in _COLUMNS), strict=True))

    def _left_out(self, checkpoint: Checkpoint) -> list[Noted]:
        """Return what may pass for older than the stream, and nothing of it has come.

        It began within two pages of where the stream does, the last of which was still being written,
        on an id that was listed as open. It may be left out, whole: of the stream, and of the chunks
        that were read before it committed (decision 0082).
        """
        if not checkpoint.ends:
            return []
        stream = self.streams[checkpoint.ends[0]["stream"]]
        came = {
            row[0]
            for table in checkpoint.sink.values()
            for row in self._rows(table)
            if not row[2]  # of a chunk
        }
        return [
            noted
            for noted in self.world.account.committed
            if self._may_be_left_out(noted, stream)
            if (noted.commit or 0) > stream.anchor["commit"] and noted.commit not in came
        ]

    def _may_be_left_out(self, noted: Noted, stream: Stream) -> bool:
        """Its BEGINTX may come late, after the COMMTX of the transaction that had its id before."""
        return stream.may_be_older(noted) and noted.begin >= stream.anchor["restart"]

    def _apply_upto(self, commit: int, rows: dict[int, int]) -> None:
        while self._unapplied and (self._unapplied[0].commit or 0) <= commit:
            apply(rows, self._unapplied.pop(0))

    def _check_changes(self, batch: int, end: Offset, found: list[tuple[Any, ...]]) -> None:
        """Compare what came of the log with what committed: all of it, once, in order."""
        expected = [
            (noted.commit, *change)
            for noted in self._unapplied
            if (self._anchor or 0) < (noted.commit or 0) <= end["commit"]
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
        judged = {key for key in range(KEYS) if whole or key <= upto} - self._unsure
        found = {key: value for key, value in rows.items() if key in judged}
        state = account.state(end["commit"])
        expected = {key: value for key, value in state.items() if key in judged}
        assert found == expected, (
            f"state after batch {batch}, up to {'the end' if whole else upto}, {end}:\n"
            f" found {sorted(found.items())}\n not   {sorted(expected.items())}"
        )


def touched(noted: Noted) -> set[int]:
    """Return the keys that a transaction has changed; whoever empties the table has changed all."""
    is_truncate = any(kind == "truncate" for kind, _, _ in noted.changes)
    return set(range(KEYS)) if is_truncate else {key for _, key, _ in noted.changes}
