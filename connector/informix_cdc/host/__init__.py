"""What a stream needs of the host on which Spark's driver runs, and what is wrong with it.

Rule: light to import; nothing runs but `java -version` and an interpreter, and nothing is left.
"""

from __future__ import annotations

from informix_cdc.host.checks import check_host
from informix_cdc.host.java import Java, JavaUnfit, find_java

__all__ = ["Java", "JavaUnfit", "check_host", "find_java"]
