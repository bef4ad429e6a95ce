"""Which licences the dependencies of a release may have.

Rule: pure, and strict: each licence that a package names must be in the list, also the second one of a
choice. A person reviews a package with another one, and adds it to `REVIEWED` with what was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# Names of SPDX, and those of PyPI's classifiers for the same.
ALLOWED = {
    *(
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "MPL-2.0",
    ),
    *("PSF-2.0", "Python-2.0", "Unlicense", "Zlib", "Unicode-3.0"),
    *("Apache License 2.0", "Apache Software License", "BSD", "BSD License", "ISC License (ISCL)"),
    *("MIT License", "Mozilla Public License 2.0 (MPL 2.0)", "Python Software Foundation License"),
}
# Packages whose metadata names no licence of the list, with the licence that their files have.
REVIEWED: Mapping[str, str] = {}
_BETWEEN = re.compile(r"\s+(?:AND|OR)\s+|;")


def named_licences(expression: str) -> set[str]:
    """Return the licences in an SPDX expression, or in classifiers joined by semicolons.

    >>> sorted(named_licences("(MIT OR Apache-2.0) AND BSD-3-Clause"))
    ['Apache-2.0', 'BSD-3-Clause', 'MIT']
    >>> named_licences("ISC License (ISCL)")
    {'ISC License (ISCL)'}
    """
    names = (each.strip() for each in _BETWEEN.split(expression))
    return {each if each in ALLOWED else each.strip("() ") for each in names}


def refused(packages: Iterable[tuple[str, str]]) -> list[str]:
    """Return the packages that may not be a dependency, with their licences.

    Args:
        packages: names and licences.
    """
    return [
        f"{name}: {licence}"
        for name, licence in packages
        if not named_licences(REVIEWED.get(name, licence)) <= ALLOWED
    ]
