"""What is wrong with a server and this host, and the remedies.

Rule: facts in, findings out; a question that is not answered is a finding of its own.
"""

from __future__ import annotations

from informix_cdc.doctor.diagnosis import diagnose

__all__ = ["diagnose"]
