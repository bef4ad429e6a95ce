"""Rows of a loaded table in the form of the protocol, made once and sent without conversion.

    p<n>    images of rows of t<n>: rid, image

An image is valid until its row is changed. SQLite deletes it with the first change; from then on the
row is encoded whenever it is sent. So rows that a transaction is changing have no image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..answers import WireForm
from ..column_types.encoding import EmulatedType
from .language.packing import packer
from .storage import RowValues, Storage, Store

_ROWS_AT_ONCE = 1000

Pack = Callable[[Sequence[RowValues]], list[bytes]]


def packed_by(form: WireForm, kinds: Sequence[EmulatedType]) -> Pack:
    """Return what gives rows a form of the wire."""
    packers = [packer(kind) for kind in kinds]

    def pack(rows: Sequence[RowValues]) -> list[bytes]:
        columns = zip(*rows, strict=True)
        return form(kinds, [pack(column) for pack, column in zip(packers, columns, strict=False)])

    return pack


def keep_images(store: Store, storage: Storage, form: WireForm) -> None:
    """Make images of all rows of a table without changed ones."""
    rows, images = storage.rows, storage.images
    store.run(f"DROP TABLE IF EXISTS {images}")
    store.run(f"CREATE TABLE {images} (rid INTEGER PRIMARY KEY, image BLOB)")
    pack = packed_by(form, [column.type for column in storage.columns])
    for numbers, piece in _pieces(store, storage):
        store.run_many(f"INSERT INTO {images} VALUES (?, ?)", zip(numbers, pack(piece), strict=True))
    store.run(f"DELETE FROM {images} WHERE rid IN (SELECT rid FROM {storage.before})")
    for change in ("UPDATE", "DELETE"):  # one that is put back was changed or deleted before
        store.run(
            f"CREATE TRIGGER IF NOT EXISTS {images}_{change} AFTER {change} ON {rows}"
            f" BEGIN DELETE FROM {images} WHERE rid = old.rid; END"
        )
    storage.image_form = form


def _pieces(store: Store, storage: Storage) -> Iterator[tuple[list[int], list[RowValues]]]:
    last = 0
    while found := store.find(
        f"SELECT * FROM {storage.rows} WHERE rid > ? ORDER BY rid LIMIT {_ROWS_AT_ONCE}", (last,)
    ):
        numbers = [int(row[0] or 0) for row in found]
        yield numbers, [row[1:] for row in found]
        last = numbers[-1]
