"""Informix in a container, with change data capture set up.

Image, environment and log line: the image's own description and Debezium's test set-up for it. Not yet
run by us with that image: no registry is at hand. `make containers` starts one of ours in its place.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from informix_capture_client.errors import InformixCdcError

IMAGE = "icr.io/informix/informix-developer-database:15.0.1.0.3"
READY = r"SCHAPI: Started \d+ dbWorker threads"
START_SECONDS = 600
LICENCE_VARIABLE = "LICENSE"  # the image reads it; the person who runs the tests sets it
PASSWORD = "in4mix"  # the image's documented login of user informix
_PORT, _DRDA_PORT = 9088, 9089
# As Debezium's images run it, without a locale; whether it is there is judged by who comes next.
_SET_UP = "cd $INFORMIXDIR/etc; dbaccess - syscdcv1.sql || true"


@dataclass(frozen=True)
class InformixContainer:
    """A server that is up: where its SQLI and DRDA listeners are, and a shell as user informix."""

    container: Any
    host: str
    port: int
    drda_port: int

    def run(self, command: str) -> None:
        """Run a command; InformixCdcError with its output if it fails."""
        code, output = self.container.exec(["bash", "-lc", command])
        if code:
            raise InformixCdcError(f"a command failed in the container: {output!r}.")

    def add_user(self, name: str, password: str) -> None:
        """Make an operating-system user; user informix may use sudo there."""
        entry = shlex.quote(f"{name}:{password}")
        self.run(f"id {name} || sudo useradd {name}; echo {entry} | sudo chpasswd")


def docker_container(image: str) -> Any:
    """Return the container as it will be started."""
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.wait_strategies import LogMessageWaitStrategy

    ready = LogMessageWaitStrategy(re.compile(READY)).with_startup_timeout(START_SECONDS)
    container = DockerContainer(image).with_env("LICENSE", os.environ[LICENCE_VARIABLE])
    container = container.with_env("SIZE", "small")
    return (
        container.with_exposed_ports(_PORT, _DRDA_PORT).with_kwargs(privileged=True).waiting_for(ready)
    )


@contextlib.contextmanager
def informix_container(
    image: str, make: Callable[[str], Any] = docker_container
) -> Iterator[InformixContainer]:
    """Start Informix, set change data capture up, and stop it at the end.

    Raises:
        InformixCdcError: it does not come up, or the set-up fails; one line.
    """
    from docker.errors import DockerException

    with contextlib.ExitStack() as stack:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # testcontainers' own
            try:
                container = stack.enter_context(make(image))
            except (OSError, RuntimeError, DockerException) as reason:
                first = (str(reason).splitlines() or [type(reason).__name__])[0]
                raise InformixCdcError(f"the image {image} does not come up: {first}") from None
            started = InformixContainer(
                container,
                container.get_container_host_ip(),
                *(int(container.get_exposed_port(port)) for port in (_PORT, _DRDA_PORT)),
            )
        started.run(_SET_UP)
        yield started
