"""Check a server and this host, and report problems with remedies.

Rule: facts in, findings out; a question without an answer is a finding of its own.
"""

from __future__ import annotations

from informix_cdc.doctor.diagnosis import diagnose

__all__ = ["diagnose"]
