"""Whose code guides the noise: what is not named here, a fuzzer does not see itself reach."""

from __future__ import annotations

PACKAGES = [
    "informix_cdc",
    "informix_capture_client",
    "informix_checkpoints",
    "informix_db2",
    "informix_emulator",
]
