"""What a stream needs of the host on which Spark's driver runs, and what is wrong with it.

Rule: light to import; nothing runs but `java -version` and an interpreter, and nothing is left, but
for the jar of the reader in the JVM, which is made when somebody asks for it.
"""

from __future__ import annotations

from informix_cdc.host.checks import check_host
from informix_cdc.host.jar import compile_jar, jar_path
from informix_cdc.host.java import Java, JavaUnfit, find_java

__all__ = ["Java", "JavaUnfit", "check_host", "compile_jar", "find_java", "jar_path"]
