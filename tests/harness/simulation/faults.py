"""What goes wrong around a capture: connections, sessions, the server, its log.

Rule: each fault says in the schedule's log what it did; none of them touches the product.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.simulation.setup import LOG_FILES
from informix_emulator import LongTransactionError

if TYPE_CHECKING:
    from harness.simulation.world import World


def switch_log(world: World) -> None:
    if world.decide.one_in(world.setup.overwrite_one_in):
        overwrite(world)
        return
    log = world.server.log
    needed = [file for file in log.files if file.number >= _needed_log(world)]
    log.count = max(len(needed) + 1, 2)
    with contextlib.suppress(LongTransactionError):
        world.server.switch_log()
        world.log(f"log {world.server.log.current.number} begins, {world.server.oldest_log()} is kept")
    log.count = LOG_FILES


def _needed_log(world: World) -> int:
    """Return the oldest log that somebody may ask for: Spark's restart, or the capture's own."""
    last_done, capture = world.checkpoint.last_done, world.process.capture
    if last_done is None and world.setup.starting_position == "earliest":
        return 1
    restart = last_done["restart"] if last_done else world.process.begins_at
    if capture is not None and capture.state.spool is not None:
        restart = min(restart, capture.state.spool.manifest.high_watermark.restart)
        if capture.state.gauges.reached < restart:  # a session begins below, to know its log again
            restart = min(restart, world.process.activated_at)
    return restart >> 32


def overwrite(world: World, switches: int = 2) -> None:
    """Let the log come round, whatever is still needed, until this log and the one before are left."""
    log = world.server.log
    log.count, world.has_overwritten = 2, True
    with contextlib.suppress(LongTransactionError):
        for _ in range(switches):
            world.server.switch_log()
    log.count = LOG_FILES
    world.log(f"OVERWRITTEN: the oldest log is {world.server.oldest_log()} now")


def lose_connections(world: World) -> None:
    world.log("connections break")
    for transport in world.transports:
        transport.hang_up()
    world.transports.clear()


def kill_sessions(world: World) -> None:
    world.log("sessions are killed")
    for number in world.server.sessions():
        world.server.kill_session(number)


def restart_server(world: World) -> None:
    world.log("the server restarts")
    world.server.recover()
    world.account.server_rolled_back()
    lose_connections(world)
    world.down_turns = world.decide.below(4)


def toggle_silence(world: World) -> None:
    if world.setup.starting_position != "latest" or world.setup.overwrite_one_in:
        return  # a start in the past takes the first TIMEOUT for the end of the log
    if not world.may_fall_silent():
        return
    world.is_silent = not world.is_silent
    world.process.met_silence = True
    world.log(f"TIMEOUT records only: {world.is_silent}")
    world.server.silence(world.is_silent)


def go_mute(world: World) -> None:
    world.mute_reads = world.decide.below(6)
    world.log(f"{world.mute_reads} reads bring nothing")


def stop_by_user(world: World) -> None:
    world.log("the user stops the query")
    world.stop_query()


FAULTS: list[Callable[[World], None]] = [
    lose_connections,
    kill_sessions,
    restart_server,
    toggle_silence,
    go_mute,
    stop_by_user,
]
