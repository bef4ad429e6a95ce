"""A TCP proxy that is far away: it hands on every byte later, and limits no rate.

python -m lab.benchmarks.delay_line PORT MILLISECONDS      prints its own port; ends with its input

Rule: each direction is a line in which bytes travel for half of the round trip, any number at a time.
"""

from __future__ import annotations

import asyncio
import sys

_PIECE_BYTES = 1 << 18


async def carry(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, delay_seconds: float
) -> None:
    """Hand on everything, each piece so much later than it came."""
    travelling: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    clock = asyncio.get_running_loop().time

    async def arrive() -> None:
        while True:
            due, piece = await travelling.get()
            await asyncio.sleep(due - clock())
            if not piece:
                break
            target.write(piece)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()

    arriving = asyncio.create_task(arrive())
    piece = b"-"
    while piece:
        piece = await source.read(_PIECE_BYTES)
        travelling.put_nowait((clock() + delay_seconds, piece))
    await arriving


async def serve(port: int, delay_seconds: float) -> None:
    """Serve until the standard input ends."""

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port, limit=_PIECE_BYTES)
        await asyncio.gather(
            carry(reader, back, delay_seconds),
            carry(there, writer, delay_seconds),
            return_exceptions=True,
        )
        back.close()
        writer.close()

    server = await asyncio.start_server(connect, "127.0.0.1", 0, limit=_PIECE_BYTES)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2]) / 2000))
