"""What is delivered of changes that have one image where others have two, and of tables named alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from db2.test_q_messages import decoder
from informix_db2 import Decoder
from informix_db2.changes import Db2Changes, Image, nothing

T, OTHER = {"TEST.T": "a INT"}, {"TEST.U": "b INT"}


def delivered(decode: Decoder, kinds: list[str], befores: Any, afters: Any) -> list[dict[str, Any]]:
    """Deliver changes; `befores` and `afters` have for each table the values by change."""
    count = len(kinds)
    nulls = {field.name: pa.nulls(count, field.type) for field in decoder().schema}
    about = {name: nulls[name] for name in nulls if name.startswith("_")}
    about["_change_ordinal"] = pa.array(range(count), pa.int64())
    sides = [
        [_image(table.type, each) for table, each in zip(decode.delivery.tables, side, strict=True)]
        for side in (befores, afters)
    ]
    changes = Db2Changes(pa.array(kinds), sides[0], sides[1], about, np.zeros(count, np.int64))
    batch, _ = decode.delivery.rows(changes)
    batch.validate(full=True)
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def _image(kind: pa.StructType, values: dict[int, int]) -> Image:
    if not values:
        return nothing(kind)
    rows = pa.array([{kind[0].name: value} for value in values.values()], kind)
    return Image(np.array(list(values)), rows)


def test_an_update_with_one_image_has_no_values_in_the_row_of_the_other() -> None:
    for befores, afters in (({0: 1}, {}), ({}, {0: 2})):
        rows = delivered(decoder(T), ["update"], [befores], [afters])
        told = [(row["_change_type"], row["a"]) for row in rows]
        assert told == [
            ("update_preimage", befores.get(0)),
            ("update_postimage", afters.get(0)),
        ]


def test_an_envelope_of_two_tables_has_the_row_of_the_one_and_null_for_no_row() -> None:
    rows = delivered(
        decoder({**T, **OTHER}, "envelope"), ["insert", "delete"], [{}, {1: 7}], [{0: 5}, {}]
    )
    assert [(row["op"], row["before"], row["after"]) for row in rows] == [
        ("c", None, {"T": {"a": 5}, "U": None}),
        ("d", {"T": None, "U": {"b": 7}}, None),
    ]


def test_tables_of_one_name_have_their_owners_in_front() -> None:
    schema = decoder({"A.T": "a INT", "B.t": "a INT", "B.U": "a INT"}).schema
    assert schema.names[:3] == ["A_T", "B_t", "U"]
