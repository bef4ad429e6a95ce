"""Which host this is."""

from __future__ import annotations

import functools
import platform
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@functools.cache
def kernel_id() -> str:
    """Return what processes have in common that share a kernel, and with it its cache of files.

    Containers of one host have this in common as well, and their host's cache of a shared mount.
    """
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return platform.node()
