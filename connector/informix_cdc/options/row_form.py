"""The form of a delivered row, as the options together say it.

Rule: what a shape has no room for is refused, never left out without a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from informix_capture_client.choices import RowForm
from informix_capture_client.errors import BadOption

if TYPE_CHECKING:
    from informix_cdc.options.source import SourceOptions

_OF_THEIR_OWN = ("envelope", "raw")  # shapes whose columns about a change are others


def row_form(options: SourceOptions) -> RowForm:
    """Return the form of a delivered row."""
    return RowForm(
        shape=cast("Any", options.shape),
        truncate=cast("Any", options.truncate),
        before_image=options.before_image,
        server=options.server,
        metadata=cast("Any", options.metadata),
    )


def require_metadata_of_shape(options: SourceOptions) -> None:
    """Refuse to choose metadata columns of a shape that has none of them.

    Raises:
        BadOption: the shape is such a one.
    """
    if options.metadata != "full" and options.shape in _OF_THEIR_OWN:
        raise BadOption(
            f"option 'metadata' has no meaning with shape={options.shape}, whose columns are its own.",
            "Leave it out, or set shape to rows or json.",
            option="metadata",
        )
