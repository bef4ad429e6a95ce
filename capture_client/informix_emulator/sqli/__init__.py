"""Informix's client/server protocol (SQLI), the server's side of it.

Rule: bytes become values and values bytes here; what a statement means is the business of `answers`.
Written from public descriptions and from what real clients were seen to send; a comment names which.
"""

from __future__ import annotations

from .login import Greeting
from .pam import Prompt
from .replies import TupleForm
from .serving import converse
from .stream import ClientStream

__all__ = ["ClientStream", "Greeting", "Prompt", "TupleForm", "converse"]
