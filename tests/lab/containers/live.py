"""The live tests' own way to a container: testcontainers starts our image in place of Informix's."""

from __future__ import annotations

import re
import sys

from lab.containers.engine import ROOT, Engine, output_of
from lab.containers.images import SERVER
from lab.containers.runs import require
from lab.live.servers import IMAGE_VARIABLE

# A few that the emulator answers; what they conclude about a server is nothing here.
_TESTS = "tests/lab/live/test_assumptions.py", "live-sqli and (two_code_sets or says_when)"
_SECONDS = 600


def live_tests(engine: Engine) -> str:
    """Run some of the tests marked `informix` over the native protocol, without a named server."""
    variables = {**engine.variables, IMAGE_VARIABLE: SERVER}
    variables["TESTCONTAINERS_RYUK_DISABLED"] = "true"  # an image of its own, from a registry
    file, chosen = _TESTS
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "informix", file]
    words += ["-k", chosen]
    shown = output_of("env", f"--chdir={ROOT}", *words, variables=variables, seconds=_SECONDS)
    last = shown.strip().splitlines()[-1]
    require(re.match(r"\d+ passed", last) is not None, shown[-3000:])
    return last
