"""Noise at every door: nothing but our own errors comes out, and it comes soon.

`make fuzz` feeds the same doors for longer, guided by what code the noise has reached.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from harness.runs.examples import examples
from lab.fuzz.instrumented import PACKAGES
from lab.fuzz.json_noise import with_another_value
from lab.fuzz.targets import TARGETS, Target

ROOT = Path(__file__).parents[3]
Damage = Callable[[bytes, int, bytes], bytes]


def _put(data: bytes, at: int, noise: bytes) -> bytes:
    return data[:at] + noise + data[at:]


def _replace(data: bytes, at: int, noise: bytes) -> bytes:
    return data[:at] + noise + data[at + len(noise) :]


def _cut(data: bytes, at: int, noise: bytes) -> bytes:
    return data[:at] + data[at + len(noise) :]


def _end(data: bytes, at: int, _noise: bytes) -> bytes:
    return data[:at]


def _repeat(data: bytes, at: int, noise: bytes) -> bytes:
    return data[:at] + data[max(at - 8 * len(noise), 0) :]


def _nest(data: bytes, at: int, _noise: bytes) -> bytes:
    return data[:at] + b"[" * 2000 + data[at:]


def _change(data: bytes, at: int, noise: bytes) -> bytes:
    return with_another_value(data, at, noise[0])


DAMAGES: list[Damage] = [_put, _replace, _cut, _end, _repeat, _nest, _change]


@st.composite
def damaged(draw: st.DrawFn, target: Target) -> bytes:
    data = draw(st.sampled_from(target.seeds))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        data = draw(st.sampled_from(DAMAGES))(data, at, draw(st.binary(min_size=1, max_size=8)))
    return data


@pytest.mark.fault(
    fault="noise or damage at every door: stream, values, spool, offset, options, files, calls, SQLI",
    outcome="only our own errors, in bounded time and memory",
    seeds="300 inputs a door; more with `make thorough` and `make fuzz`",
)
@pytest.mark.parametrize("name", TARGETS)
def test_noise_brings_out_nothing_but_our_own_errors(name: str) -> None:
    target = TARGETS[name]

    @examples(100, *HealthCheck)
    @given(damaged(target) | st.binary(max_size=300))
    def feed(data: bytes) -> None:
        target.run(data)

    feed()


@pytest.mark.parametrize("name", TARGETS)
def test_the_sound_inputs_are_sound(name: str) -> None:
    """Else the noise would knock at a door that is shut anyway."""
    for seed in TARGETS[name].seeds[:3]:
        TARGETS[name].take(seed)


def test_the_noise_is_guided_by_every_package_of_ours() -> None:
    roots = ("connector", "capture_client", "checkpoints")
    packages = {path.parent.name for root in roots for path in (ROOT / root).glob("*/__init__.py")}
    assert set(PACKAGES) == packages - {"pyspark_informix_cdc"}  # which has nothing but a name
