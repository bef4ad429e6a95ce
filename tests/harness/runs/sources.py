"""Tests in a clone where the product is not installed.

Rule: pytest finds the sources by `pythonpath` of pyproject.toml; processes that tests start find them
by PYTHONPATH, and only where there is no install that they should find instead.
"""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]
_SOURCE_ROOTS = ("connector", "capture_client", "checkpoints")


def show_sources_to_children() -> None:
    """Name the source roots in PYTHONPATH, unless the product is installed."""
    try:
        distribution("informix-cdc")
    except PackageNotFoundError:
        known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        roots = [str(_ROOT / root) for root in _SOURCE_ROOTS]
        os.environ["PYTHONPATH"] = os.pathsep.join([*roots, *known])
