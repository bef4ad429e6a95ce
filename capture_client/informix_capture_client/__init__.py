"""Speaks to Informix: transport, session, framing, records, transactions, decoding.

No Spark, no files. `decode_payloads` is public: it decodes recorded rows without any session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from informix_capture_client.values.table_decoder import decode_payloads

__all__ = ["decode_payloads"]


def __getattr__(name: str) -> object:
    # NumPy and Arrow are loaded only when rows are decoded: option checks and --help stay quick.
    if name == "decode_payloads":
        from informix_capture_client.values.table_decoder import decode_payloads

        return decode_payloads
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
