"""Read the key of masks from its file, on the host that captures."""

from __future__ import annotations

from pathlib import Path

from informix_capture_client.errors import BadOption
from informix_capture_client.masks import MaskKey

_LEAST_BYTES = 32  # the length of its hash: RFC 2104, section 3


def mask_key(path: str) -> MaskKey:
    """Return the key in a file: its bytes without white space at both ends.

    Raises:
        BadOption: the file cannot be read, or its key is too short.
    """
    try:
        key = Path(path).read_bytes().strip()
    except OSError as reason:
        raise _bad(
            f"the file of option maskKeyFile cannot be read: {reason.strerror}: {path}"
        ) from None
    if len(key) < _LEAST_BYTES:
        raise _bad(f"the key in {path} has {len(key)} bytes, which is fewer than {_LEAST_BYTES}")
    return MaskKey(key)


def _bad(what: str) -> BadOption:
    return BadOption(
        f"{what}.",
        "Write a key with `openssl rand -hex 32 > mask.key`, and set maskKeyFile to its path.",
        option="maskKeyFile",
    )
