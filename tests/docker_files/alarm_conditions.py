"""Whether an alarm's condition holds, for the few forms of PromQL that our alarms use.

Rule: one series for each metric, so that labels match where both sides are there; a form that is not
known here is an error. What each form means: prometheus.io, "Querying: operators" and "functions".

A series is a list of samples (how many seconds ago, value), oldest first, or one value that it has
always had. A comparison keeps its left side where it holds, and is else empty: None.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import promql_parser

Samples = Sequence[tuple[float, float]]
Series = Mapping[str, float | Samples]
Value = float | None

STALE_SECONDS = 300.0  # an instant query looks no further back
_STEP_SECONDS = 15  # between two scrapes

_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "*": operator.mul,
    "/": operator.truediv,
}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}
_SETS: dict[str, Callable[[bool], bool]] = {
    "and": lambda has_right: has_right,
    "unless": lambda has_right: not has_right,
}


def holds(condition: str, series: Series) -> bool:
    """Tell whether a condition has a result, which is when its alarm fires."""
    return _value(promql_parser.parse(condition), series) is not None


def _value(tree: Any, series: Series) -> Value:
    return _FORMS[type(tree)](tree, series)


def _operation(tree: Any, series: Series) -> Value:
    left, right, sign = _value(tree.lhs, series), _value(tree.rhs, series), str(tree.op)
    if sign in _SETS:
        return left if _SETS[sign](right is not None) else None
    if left is None or right is None:
        return None
    if sign in _COMPARISONS:
        return left if _COMPARISONS[sign](left, right) else None
    return _ARITHMETIC[sign](left, right)


def _latest(tree: Any, series: Series) -> Value:
    found = _samples(tree.name, series, STALE_SECONDS)
    return found[-1][1] if found else None


def _samples(name: str, series: Series, seconds: float) -> Samples:
    known = series.get(name, ())
    if isinstance(known, float | int):
        known = [(ago, float(known)) for ago in range(3600, -1, -_STEP_SECONDS)]
    return [sample for sample in known if sample[0] <= seconds]


def _call(tree: Any, series: Series) -> Value:
    over, *others = tree.args
    found = _samples(over.vector_selector.name, series, over.range.total_seconds())
    given = [_value(other, series) for other in others]
    return _FUNCTIONS[tree.func.name](found, *given) if found else None


def _increase(samples: Samples) -> Value:
    """Return the growth from the first sample on: what it began with does not count."""
    return samples[-1][1] - samples[0][1] if len(samples) > 1 else None


def _predict(samples: Samples, seconds: float) -> Value:
    if len(samples) < 2:
        return None
    slope, now = np.polyfit([-ago for ago, _ in samples], [value for _, value in samples], 1)
    return float(now + slope * seconds)


def _changes(samples: Samples) -> Value:
    """Return how often a value differs from the one before, also over a time without any."""
    values = [value for _, value in samples]
    return float(sum(before != after for before, after in itertools.pairwise(values)))


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "changes": _changes,
    "increase": _increase,
    "max_over_time": lambda samples: max(value for _, value in samples),
    "min_over_time": lambda samples: min(value for _, value in samples),
    "predict_linear": _predict,
}
_FORMS: dict[type, Callable[[Any, Series], Value]] = {
    promql_parser.BinaryExpr: _operation,
    promql_parser.ParenExpr: lambda tree, series: _value(tree.expr, series),
    promql_parser.VectorSelector: _latest,
    promql_parser.NumberLiteral: lambda tree, _: float(tree.val),
    promql_parser.Call: _call,
}
