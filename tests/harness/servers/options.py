"""Options of a stream for tests, which may also change what the product decides by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from informix_cdc.options.source import SourceOptions


def parsed(given: Mapping[str, Any]) -> SourceOptions:
    """Return options as the product reads them; names such as `stream__stalled_seconds` are ours."""
    ours = {name: value for name, value in given.items() if "__" in name}
    return changed(SourceOptions.parse({k: v for k, v in given.items() if k not in ours}), **ours)


def changed(options: SourceOptions, **values: Any) -> SourceOptions:
    """Return options with other values, by group and field: `spool__path="/somewhere"`."""
    for name, value in values.items():
        group, field = name.split("__")
        options = replace(options, **{group: replace(getattr(options, group), **{field: value})})
    return options
