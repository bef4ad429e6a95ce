"""Export names of a package without loading the files that define them before somebody asks.

Rule: for packages that are light to import although some of what they offer is not: NumPy, Arrow and
Spark are loaded by whoever uses them, so that options and the command line start at once, and start
where Spark is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package (PEP 562).

    Args:
        package: its `__name__`.
        homes: the module below the package that defines each name; "" for a name that is a module.
    """

    def attribute(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not homes[name]:
            return import_module(f"{package}.{name}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return attribute
