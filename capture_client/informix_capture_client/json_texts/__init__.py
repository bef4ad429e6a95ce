"""Values as JSON texts, whole columns at a time, and texts end to end.

Rule: what is read back as the column's type is the same value; nothing here knows tables or changes.
"""

from __future__ import annotations

from informix_capture_client.json_texts.joined_texts import JsonTexts, joined, laid
from informix_capture_client.json_texts.value_texts import json_kind

__all__ = ["JsonTexts", "joined", "json_kind", "laid"]
