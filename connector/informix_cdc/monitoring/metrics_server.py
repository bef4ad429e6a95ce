"""Show Prometheus the figures of one query, on a port of the driver.

Rule: the figures are read when Prometheus asks, in a thread of the server's own; nothing is kept. The
port is the query's alone: it opens before the capture and closes with the query.
"""

from __future__ import annotations

from collections.abc import Callable
from errno import EACCES, EADDRINUSE

from prometheus_client import CollectorRegistry, start_http_server
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from informix_capture_client.errors import BadOption
from informix_cdc.capture.state import CaptureState
from informix_cdc.monitoring.figures import read_figures
from informix_cdc.monitoring.prometheus import FigureCollector, Labels, Sample

# The process of the query before may need as long to end: Spark does not wait for it.
PORT_WAIT_SECONDS = 5.0
_OF_THE_PORT = (
    "metricsPort",
    "Give each query on this host a port of its own, above 1023; or leave metricsPort out.",
)
_OF_THE_HOST = ("metricsHost", "Name an address of this host, 0.0.0.0 for all of them.")


class MetricsServer:
    """Serves `/metrics` from when it is made until `close`.

    Args:
        host, port: where to listen.
        labels: of every metric.
        state: returns the capture whose figures are shown, if there is one.

    Raises:
        BadOption: the port is taken, which is waited for; or the address is not one of this host.
    """

    def __init__(
        self, host: str, port: int, labels: Labels, state: Callable[[], CaptureState | None]
    ) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(FigureCollector(lambda: _samples(labels, state())))
        try:
            self._server, self._thread = _patiently()(start_http_server, port, host, registry)
        except (OSError, OverflowError) as reason:
            raise _refused(host, port, reason) from None

    def close(self) -> None:
        """Close the port; safe to call twice."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _samples(labels: Labels, state: CaptureState | None) -> list[Sample]:
    return [] if state is None else [(labels, read_figures(state))]


def _refused(host: str, port: int, reason: OSError | OverflowError) -> BadOption:
    is_port = isinstance(reason, OverflowError) or reason.errno in (EADDRINUSE, EACCES)
    option, remedy = _OF_THE_PORT if is_port else _OF_THE_HOST
    text = f"option '{option}': nothing can listen on {host}:{port}: {reason}."
    return BadOption(text, remedy, option=option)


def _is_taken(reason: BaseException) -> bool:
    return isinstance(reason, OSError) and reason.errno == EADDRINUSE


def _patiently() -> Retrying:
    return Retrying(
        retry=retry_if_exception(_is_taken),
        stop=stop_after_delay(PORT_WAIT_SECONDS),
        wait=wait_fixed(0.2),
        reraise=True,
    )
