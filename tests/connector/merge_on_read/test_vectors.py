"""Deletion vectors: the protocol's examples, any bitmap, and bytes that are not what they should be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from informix_cdc.merge_on_read.vectors import DamagedVector, file_of, id_of, packed, rows_of

# The examples of PROTOCOL.md, "Deletion Vector Descriptor Schema".
RELATIVE = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
ABSOLUTE = {**RELATIVE, "storageType": "p", "pathOrInlineDv": "s3://mytable/deletion_vector.bin"}
# The same rows in the format that the protocol describes; its own example of them has an older one.
INLINE = {
    "storageType": "i",
    "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    "sizeInBytes": 44,
    "cardinality": 6,
}
OLDER = {
    **INLINE,
    "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    "sizeInBytes": 40,
}

ROWS = st.sets(
    st.one_of(st.integers(0, 300), st.integers(0, 1 << 20), st.integers(1 << 32, (1 << 32) + 9)),
    min_size=1,
    max_size=60,
)


def test_the_examples_of_the_protocol() -> None:
    assert file_of(RELATIVE) == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert id_of(RELATIVE) == "uab^-aqEH.-t@S}K{vb[*k^@4"
    assert file_of(ABSOLUTE) == "s3://mytable/deletion_vector.bin"
    assert (file_of(INLINE), id_of(INLINE)) == ("", f"i{INLINE['pathOrInlineDv']}")
    assert list(rows_of(INLINE, b"")) == [3, 4, 7, 11, 18, 29]
    with pytest.raises(DamagedVector, match="another format"):
        rows_of(OLDER, b"")


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_any_vectors_of_a_file_come_back(rows: list[set[int]]) -> None:
    name, content, descriptors = packed([BitMap64(each) for each in rows])
    for each, descriptor in zip(rows, descriptors, strict=True):
        assert file_of(descriptor) == name
        found = rows_of(descriptor, content[descriptor["offset"] :])
        assert set(found) == each
    assert len({id_of(each) for each in descriptors}) == len(rows)


@given(ROWS, st.data())
def test_a_vector_with_another_byte_is_refused(rows: set[int], data: st.DataObject) -> None:
    _, content, (descriptor,) = packed([BitMap64(rows)])
    place = data.draw(st.integers(1, len(content) - 1))
    damaged = bytearray(content)
    damaged[place] ^= data.draw(st.integers(1, 255))
    for wrong in (bytes(damaged), content[:place]):
        with pytest.raises(DamagedVector):
            rows_of(descriptor, wrong[1:])


def test_another_number_of_rows_and_an_unknown_kind_are_refused() -> None:
    with pytest.raises(DamagedVector, match="another number of rows"):
        rows_of({**INLINE, "cardinality": 5}, b"")
    with pytest.raises(DamagedVector, match="storage type 'x'"):
        file_of({**RELATIVE, "storageType": "x"})
    with pytest.raises(DamagedVector, match="Z85"):
        rows_of({**INLINE, "pathOrInlineDv": "~" * 55}, b"")
