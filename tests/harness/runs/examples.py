"""How many examples hypothesis tries: one choice for all tests, made by the environment.

HYPOTHESIS_PROFILE=quick      a tenth of what each test asks for: make quick
HYPOTHESIS_PROFILE=ci         a fifth of it, the same ones each time: make test
HYPOTHESIS_PROFILE=all        half of it, the same ones each time: make test-all
HYPOTHESIS_PROFILE=thorough   ten times as many, other ones each time: make thorough
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import HealthCheck, settings

T = TypeVar("T")
VARIABLE = "HYPOTHESIS_PROFILE"
SHARES = {"quick": 0.1, "ci": 0.2, "all": 0.5, "thorough": 10.0}
_STEPS = {"quick": 10, "ci": 3}  # through what is tried one by one
PROFILE = os.environ.get(VARIABLE, "ci")
_USUAL_EXAMPLES = 100  # of a test that asks for no number: hypothesis' own default


def in_this_run(count: float) -> int:
    """Return how many of so many things, examples or seeds, this run tries; at least one."""
    return max(1, round(count * SHARES[PROFILE]))


def some_of(places: Sequence[T]) -> Sequence[T]:
    """Return the places of a long loop that this run tries: every third in `ci`, a tenth in `quick`."""
    return places[:: _STEPS.get(PROFILE, 1)]


def examples(count: int, *accepted: HealthCheck) -> settings:
    """Let a test try its profile's share of so many examples.

    Args:
        accepted: what hypothesis would complain of, and is meant.
    """
    suppressed = [HealthCheck.too_slow, *accepted]
    return settings(max_examples=in_this_run(count), suppress_health_check=suppressed)


def load_profile() -> None:
    """Make the profile of this run the default of every test.

    No deadlines: a busy machine must not fail a property, and pytest's timeout ends a hang.
    """
    if PROFILE not in SHARES:
        raise SystemExit(f"{VARIABLE}={PROFILE}: choose one of {', '.join(SHARES)}")
    for name in SHARES:
        settings.register_profile(
            name,
            deadline=None,
            max_examples=round(_USUAL_EXAMPLES * SHARES[name]),
            derandomize=name != "thorough",
            suppress_health_check=[HealthCheck.too_slow],
            print_blob=True,
        )
    settings.load_profile(PROFILE)
