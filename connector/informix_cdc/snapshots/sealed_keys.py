"""Encrypt the values of masked key columns with which a snapshot continues.

Rule: a checkpoint has to remember the last key that was read, as the server printed it, and a masked
column must not be readable there. AES-256-GCM, with a key derived from that of the mask.
"""

from __future__ import annotations

import base64
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from informix_capture_client.errors import BadOption
from informix_capture_client.incremental_snapshot import Bounds, SnapshotKey
from informix_capture_client.masks import MaskKey

_NONCE_BYTES = 12  # NIST SP 800-38D, 5.2.1.1


def sealed(values: Bounds, key: SnapshotKey | None) -> Bounds:
    """Return values of a key, or of a prefix of it, with those of masked columns encrypted."""
    if key is None:
        return values
    return tuple(
        _encrypted(text, column.mask.key) if column.mask and column.mask.key else text
        for text, column in zip(values, key.columns, strict=False)
    )


def unsealed(values: Bounds, key: SnapshotKey) -> Bounds:
    """Return what `sealed` was given.

    Raises:
        BadOption: the key of the masks is another one.
    """
    return tuple(
        _decrypted(text, column.mask.key) if column.mask and column.mask.key else text
        for text, column in zip(values, key.columns, strict=False)
    )


def _cipher(key: MaskKey) -> AESGCM:
    return AESGCM(key.derived("keys of snapshots"))


def _encrypted(text: str, key: MaskKey) -> str:
    nonce = os.urandom(_NONCE_BYTES)
    content = _cipher(key).encrypt(nonce, text.encode("utf-8", "surrogateescape"), None)
    return base64.b64encode(nonce + content).decode("ascii")


def _decrypted(text: str, key: MaskKey) -> str:
    content = base64.b64decode(text)
    try:
        value = _cipher(key).decrypt(content[:_NONCE_BYTES], content[_NONCE_BYTES:], None)
    except InvalidTag:
        raise BadOption(
            "the snapshot cannot continue: the key in the file of option maskKeyFile has changed.",
            "Restore the previous key file.",
            option="maskKeyFile",
        ) from None
    return value.decode("utf-8", "surrogateescape")
