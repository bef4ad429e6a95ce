"""Decode the payload of rows into Arrow columns, compiled once per table.

Rule: every value is decoded exactly, or rejected with the name of its column; no per-row Python.
"""

from __future__ import annotations

from informix_capture_client.values.arrow_arrays import (
    BadValue,
    booleans,
    byte_strings,
    fixed_width,
    pick,
    refuse,
    strings,
)
from informix_capture_client.values.column_list import Column, parse_columns
from informix_capture_client.values.column_types import (
    FixedType,
    VariableType,
    capturable,
    compile_type,
    is_collection,
    is_large_object,
    is_simple_object,
)
from informix_capture_client.values.field_text import TWO_DIGITS
from informix_capture_client.values.masked import masked, masked_contents
from informix_capture_client.values.mixed_rows import MixedRows, MixedRowsDecoder, TypedCells, payloads
from informix_capture_client.values.table_decoder import (
    TableDecoder,
    bad_value,
    decode_payloads,
)
from informix_capture_client.values.text import text_of_code_set

__all__ = [
    "TWO_DIGITS",
    "BadValue",
    "Column",
    "FixedType",
    "MixedRows",
    "MixedRowsDecoder",
    "TableDecoder",
    "TypedCells",
    "VariableType",
    "bad_value",
    "booleans",
    "byte_strings",
    "capturable",
    "compile_type",
    "decode_payloads",
    "fixed_width",
    "is_collection",
    "is_large_object",
    "is_simple_object",
    "masked",
    "masked_contents",
    "parse_columns",
    "payloads",
    "pick",
    "refuse",
    "strings",
    "text_of_code_set",
]
