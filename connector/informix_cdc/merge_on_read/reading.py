"""The data files of a version of a Delta table, and the rows that are deleted in them."""

from __future__ import annotations

from collections.abc import Iterator

from pyroaring import BitMap64

from informix_cdc.merge_on_read.log import TableLog
from informix_cdc.merge_on_read.places import TablePlace
from informix_cdc.merge_on_read.vectors import DamagedVector, Descriptor, file_of, rows_of

_FRAME_BYTES = 8  # of size and checksum


def files_at(place: TablePlace, version: int) -> Iterator[tuple[str, BitMap64]]:
    """Yield the path of each data file, as in the log, and its deleted rows.

    Raises:
        FileNotFoundError: the log no longer has the version.
        DamagedVector: a vector is not as its descriptor says.
    """
    for path, added in TableLog(place).at(version).files.items():
        vector = added.get("deletionVector")
        yield path, BitMap64() if vector is None else read_vector(place, vector)


def read_vector(place: TablePlace, descriptor: Descriptor) -> BitMap64:
    """Return the rows in a vector.

    Raises:
        DamagedVector: its bytes are not those of the descriptor.
    """
    content = b""
    if name := file_of(descriptor):
        first = int(descriptor.get("offset", 0))
        with place.files.open_input_file(name) as file:
            if first > file.size():
                raise DamagedVector(f"{name} is cut off")
            file.seek(first)
            content = bytes(file.read(int(descriptor["sizeInBytes"]) + _FRAME_BYTES))
    return rows_of(descriptor, content)
