"""The settings that Spark reads on this host before those of a program: `spark-defaults.conf`.

Source: `Utils.getDefaultPropertiesFile` of Spark 4.3, and `find-spark-home`, which sets SPARK_HOME.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

_LINE = re.compile(r"^[ \t]*+([^\s=:#!]++)(?:[ \t]*+[=:]|[ \t])[ \t]*+(.*)", re.MULTILINE)


def defaults_file(environment: Mapping[str, str]) -> Path:
    """Return the path of the file, which need not exist."""
    found = find_spec("pyspark")
    pyspark = Path(found.origin).parent if found and found.origin else Path("pyspark")
    home = Path(environment.get("SPARK_HOME") or pyspark)
    return Path(environment.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf"


def spark_defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in the file; none if it cannot be read."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        found = _LINE.findall(defaults_file(environment).read_text(encoding="utf-8"))
        return {name: value.rstrip() for name, value in found}
    return {}
