"""The server side of Informix's client/server protocol (SQLI).

Bytes become values, and values bytes; `answers` knows the meaning of statements. Written from public
descriptions and from observed requests of real clients; comments name which.
"""

from __future__ import annotations

from .login import Greeting
from .pam import Prompt
from .replies import TupleForm
from .serving import converse
from .stream import ClientStream

__all__ = ["ClientStream", "Greeting", "Prompt", "TupleForm", "converse"]
