"""Which tests `make test` leaves to `make test-all`: those that cost much for what they alone notice.

Tests have the mark `only_in_all` where they stand (docs/decisions/0125); here are those that only some
parameters or whole files are left out of.

Rule: known defects guard the choice (`make mutants`): what only `make test-all` notices brings the test
back that does. Names are beginnings of test ids; one that fits no test is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")

_KILLED_IN_REAL_TIME = (
    "tests/crashes/test_killed_real_time.py"
    "::test_a_killed_driver_repeats_only_the_batch_that_was_not_committed"
)
_LOSS_IN_A_MODE = (
    "tests/end_to_end/test_real_time_after_a_loss.py"
    "::test_a_loss_that_one_mode_has_reported_is_not_forgotten_by_the_other"
)
_WRAPPED = (
    "tests/connector/capture/test_resync_after_a_loss.py"
    "::test_tables_equal_informix_after_the_log_has_wrapped"
)
_VERIFIED = (
    "tests/connector/lake/test_verified_tables.py"
    "::test_a_verification_finds_what_was_tampered_with_and_nothing_else"
)
# Each starts Sparks of its own, ten to forty seconds of the processor. `make test` keeps the session's
# Spark, a driver that is killed, a killed runner and the demo.
_SPARKS = (
    "tests/connector/capture/test_large_transactions.py::test_a_transaction_of_three_tables",
    "tests/crashes/test_crash_matrix.py::test_a_spilled_transaction",
    "tests/crashes/test_crash_matrix.py::test_death",
    "tests/crashes/test_killed_drivers.py",
    "tests/crashes/test_killed_mirrors.py",
    f"{_KILLED_IN_REAL_TIME}[private-8]",
    f"{_KILLED_IN_REAL_TIME}[kept-10]",
    "tests/crashes/test_secrets.py::test_a_run_with_crashes",
    "tests/crashes/test_secrets_over_connect.py",
    "tests/docker_files/test_client_scripts.py::test_the_client_service_shows_changes",
    "tests/end_to_end/test_altered_tables.py",
    "tests/end_to_end/test_db2.py::test_a_stream_over_a_folder_killed",
    "tests/end_to_end/test_local_cluster.py",
    "tests/end_to_end/test_merged_tables.py::test_a_truncate",
    "tests/end_to_end/test_mistakes.py::test_the_password_is_in_no_log",
    "tests/end_to_end/test_pipeline_over_a_snapshot.py",
    "tests/end_to_end/test_reader_in_the_jvm.py::test_an_executor_without",
    "tests/end_to_end/test_real_time_on_a_cluster.py",
    "tests/crashes/test_killed_captures_reading_rows.py::test_a_capture_that_dies_in_a_snapshot",
    "tests/end_to_end/test_real_time_over_a_snapshot.py::test_tables_equal_the_server_s_over_modes",
    f"{_LOSS_IN_A_MODE}[real-time mode]",
    "tests/end_to_end/test_wheel.py::test_a_zipped_wheel",
    "tests/end_to_end/test_wheel.py::test_the_command_line",
    "tests/end_to_end/test_wheel.py::test_the_format_is_found",
    "tests/manual/test_examples.py::test_an_example_of_spark_connect",
    "tests/manual/test_examples.py::test_an_example_prints",
)
# Simulations of known defects: they judge the oracle of the simulation, which changes seldom.
_DEFECTS = (
    "tests/simulation/test_request_schedules.py::test_a_fault_of_requests_is_found",
    "tests/simulation/test_hidden_beginnings.py::test_a_bound_that_is_wrong_is_found",
    "tests/simulation/test_snapshot_schedules.py::test_a_fault_of_the_product_is_found",
)
# Slow lines, large amounts and two compilations, each beside a smaller test of the same.
_LONG = (
    "tests/capture_client/transport/test_sanitised_driver.py",
    "tests/connector/object_contents/test_contents_in_memory.py",
    "tests/connector/object_contents/test_faults_of_contents.py::test_a_long_value_over_a_slow_line",
    "tests/connector/object_contents/test_memory_of_contents.py",
    "tests/faults/test_every_byte.py::test_a_cut_after_any_byte",
    "tests/manual/test_release.py::test_two_builds",
)
# More seeds of tests of which `make test` runs the first.
_SEEDS = (*(f"{_VERIFIED}[{seed}]" for seed in range(1, 4)),)
ONLY_IN_ALL = (*_SPARKS, *_DEFECTS, *_LONG, *_SEEDS)


def rest_in_all(values: Iterable[T]) -> list[T | ParameterSet]:
    """Return parameters of which `make test` runs the first, and `make test-all` the others too."""
    first, *rest = values
    return [first, *(_in_all(value) for value in rest)]


def _in_all(value: object) -> ParameterSet:
    if isinstance(value, ParameterSet):
        return pytest.param(*value.values, marks=[*value.marks, pytest.mark.only_in_all], id=value.id)
    values = value if isinstance(value, tuple) else (value,)  # of several names, or of one
    return pytest.param(*values, marks=pytest.mark.only_in_all)


def mark_tiers(items: Iterable[pytest.Item], *, is_whole_suite: bool) -> None:
    """Mark what `make test` leaves out.

    Raises:
        UsageError: a name fits no test, though all tests were found.
    """
    fitting = set[str]()
    for item in items:
        found = [name for name in ONLY_IN_ALL if item.nodeid.startswith(name)]
        fitting.update(found)
        if found:
            item.add_marker(pytest.mark.only_in_all)
    if is_whole_suite and (stale := set(ONLY_IN_ALL) - fitting):
        raise pytest.UsageError(
            f"{__name__} names tests that are not there: {', '.join(sorted(stale))}"
        )
