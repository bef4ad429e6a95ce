"""What a plan of Spark Connect must not hold: a password.

Rule: a Connect server writes the text of a plan, options and all, into its event log and its UI, before
the source is asked for anything. So a password there is refused, lest it stay unnoticed. Spark redacts
options by their names (`spark.redaction.regex`) in plans of its own only: with Spark 4.3 the password
stood in SparkListenerConnectOperationStarted and SparkListenerSQLExecutionStart.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from informix_capture_client.errors import BadOption
from informix_cdc.options import PASSWORD_VARIABLE, SourceOptions

# Spark tells its Python workers whose files they use: of a client's session, or, in a classic session,
# "default" (as seen with Spark 4.3). A classic session with artifacts of its own looks like a client's:
# there the refusal may be one too many.
_SESSION_OF_WORKER = "SPARK_JOB_ARTIFACT_UUID"
_CLASSIC = "default"


def is_of_connect(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether a client of Spark Connect asked for what this process does."""
    return environment.get(_SESSION_OF_WORKER, _CLASSIC) != _CLASSIC


def refuse_password_in_plan(
    options: SourceOptions, environment: Mapping[str, str] = os.environ
) -> None:
    """Refuse a password that came in a plan of Spark Connect, unless the user has allowed it.

    Raises:
        BadOption: says why, and what to use instead.
    """
    if options.password and not options.allow_password_option and is_of_connect(environment):
        raise BadOption(
            "option 'password' came over Spark Connect, whose event log and UI show it.",
            "Change it if others can read these: a query that was started at once has shown it. Give it"
            " to the Connect server by passwordFile, passwordCommand or its environment's"
            f" {PASSWORD_VARIABLE}; or, knowing who can read them, set allowPasswordOption=true.",
            option="password",
        )
