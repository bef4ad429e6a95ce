"""Number the records of transactions across batches.

Rule: columns in, columns out; only the last transaction of the previous batch is kept.
"""

from __future__ import annotations

import numpy as np

from informix_capture_client.records import Bits, Integers
from informix_capture_client.shapes.change_columns import Changes


class Numbering:
    """Numbers the counted records of each transaction from 0, across batches."""

    def __init__(self) -> None:
        self._last_commit = -1
        self._counted = 0

    def number(self, changes: Changes, counts: Bits) -> Integers:
        """Return for each record the number of earlier counted records of its transaction."""
        before = np.concatenate([[0], np.cumsum(counts)])
        begins = np.flatnonzero(np.diff(changes.transactions, prepend=-1))
        bases = before[begins]
        commits = changes.of.commit_sequence_numbers
        if int(commits[changes.transactions[0]]) == self._last_commit:
            bases[0] -= self._counted
        self._last_commit = int(commits[changes.transactions[-1]])
        self._counted = int(before[-1] - bases[-1])
        lengths = np.diff(begins, append=len(changes))
        numbers: Integers = before[:-1] - np.repeat(bases, lengths)
        return numbers


class OrdersInTable:
    """Numbers the counted records of each transaction and table from 0, across batches."""

    def __init__(self, tables: int) -> None:
        self._tables = tables
        self._last_commit = -1
        self._counted = np.zeros(tables, np.int64)  # of the last transaction, by table

    def number(self, changes: Changes, counts: Bits) -> Integers:
        """Return for each record the number of earlier counted records of its transaction and table."""
        keys = changes.transactions * self._tables + changes.table_ids
        order = np.argsort(keys, kind="stable")
        before = np.append(0, np.cumsum(counts[order]))
        begins = np.flatnonzero(np.diff(keys[order], prepend=-1))
        lengths = np.diff(begins, append=len(keys))
        numbers = np.empty(len(keys), np.int64)
        numbers[order] = before[:-1] - np.repeat(before[begins], lengths)
        commits = changes.of.commit_sequence_numbers
        first = changes.transactions == changes.transactions[0]
        if int(commits[changes.transactions[0]]) == self._last_commit:
            numbers[first] += self._counted[changes.table_ids[first]]
        else:
            self._counted[:] = 0
        self._remember(changes, counts, int(commits[changes.transactions[-1]]))
        return numbers

    def _remember(self, changes: Changes, counts: Bits, last_commit: int) -> None:
        if changes.transactions[0] != changes.transactions[-1]:
            self._counted[:] = 0
        last = counts & (changes.transactions == changes.transactions[-1])
        self._counted += np.bincount(changes.table_ids[last], minlength=self._tables)
        self._last_commit = last_commit
