"""Refuse a password in a plan of Spark Connect.

Rule: a Connect server writes the text of a plan, including all options, to its event log and its UI
before the source is called. A password there is refused so that it is noticed. Spark redacts options by
name (`spark.redaction.regex`) only in its own plans: with Spark 4.3 the password was in
SparkListenerConnectOperationStarted and SparkListenerSQLExecutionStart.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from informix_capture_client.errors import BadOption
from informix_cdc.options import PASSWORD_VARIABLE, ConnectionOptions

# Spark tells its Python workers which artifacts they use: those of a client's session or, in a classic
# session, "default" (seen with Spark 4.3). A classic session with its own artifacts looks like a
# client's; a password may be refused there although it would not be shown.
_SESSION_OF_WORKER = "SPARK_JOB_ARTIFACT_UUID"
_CLASSIC = "default"


def is_of_connect(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process works for a client of Spark Connect."""
    return environment.get(_SESSION_OF_WORKER, _CLASSIC) != _CLASSIC


def refuse_password_in_plan(
    connection: ConnectionOptions, environment: Mapping[str, str] = os.environ
) -> None:
    """Refuse a password that came in a plan of Spark Connect.

    Raises:
        BadOption: names the reason and the alternatives.
    """
    if connection.password and is_of_connect(environment):
        raise BadOption(
            "option 'password' was sent over Spark Connect, whose event log and UI show it.",
            "If others can read these, change the password: a query that was started has"
            " already exposed it. Configure the password on the Connect server with"
            f" passwordFile, passwordCommand or the environment variable {PASSWORD_VARIABLE}.",
            option="password",
        )
