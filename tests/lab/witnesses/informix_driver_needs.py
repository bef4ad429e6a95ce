"""Integration tests of informix-driver that cannot pass on the emulator, and what each of them needs.

Rule: a test by name, with all of its cases, or one case by name and brackets. One that has begun to
pass fails the run until its name is taken out here.
"""

from __future__ import annotations

_FILES_OF_THE_CLIENT = (
    "test_batch_scroll_lob::test_blob_round_trip_sizes",
    "test_fastpath::test_fast_path_close_real_lofd_returns_zero",
    "test_fastpath::test_fast_path_open_and_close_cycle",
    "test_row_reconciliation::test_lob_in_non_final_position[True]",
    "test_smart_lob::test_blob_column_description_metadata",
    "test_smart_lob::test_blob_column_returns_blob_locator",
    "test_smart_lob::test_blob_locator_is_immutable",
    "test_smart_lob::test_blob_locator_repr_is_safe",
    "test_smart_lob_read::test_lotofile_low_level",
    "test_smart_lob_read::test_lotofile_multichunk",
    "test_smart_lob_read::test_read_blob_column_big",
    "test_smart_lob_read::test_read_blob_column_no_match",
    "test_smart_lob_read::test_read_blob_column_simple",
    "test_smart_lob_read::test_read_blob_column_validates_select",
    "test_smart_lob_write::test_virtual_files_cleared_after_call",
    "test_smart_lob_write::test_write_blob_binary_safe",
    "test_smart_lob_write::test_write_blob_empty",
    "test_smart_lob_write::test_write_blob_multiple_rows",
    "test_smart_lob_write::test_write_blob_round_trip_multichunk",
    "test_smart_lob_write::test_write_blob_round_trip_short",
    "test_smart_lob_write::test_write_blob_update",
    "test_smart_lob_write::test_write_clob_round_trip",
    "test_unicode::test_clob_round_trip_8859_1",
)
_SYSTEM_TABLES = (
    "test_params::test_parameterized_select_multiple_params",
    "test_scroll_cursor_server::test_scrollable_random_access",
    "test_select::test_select_multi_row_int",
)
_SELECT_LIST = (
    "test_recovery_and_concurrency::test_async_pool_concurrent_tasks_get_their_own_data",
    "test_recovery_and_concurrency::test_async_pool_survives_cancelled_acquires",
    "test_recovery_and_concurrency::test_pool_hands_out_clean_connections_under_load",
    "test_recovery_and_concurrency::test_threads_sharing_one_connection_do_not_interleave",
    "test_tls_traffic::test_concurrent_tls_connections",
)
_COMPLEX_TYPES = (
    "test_composite_types::test_collection_null",
    "test_composite_types::test_list_recognized",
    "test_composite_types::test_multiset_recognized",
    "test_composite_types::test_row_long_value",
    "test_composite_types::test_row_null",
    "test_composite_types::test_row_subfield_projection",
    "test_composite_types::test_row_value_recognized",
    "test_composite_types::test_set_recognized",
    "test_row_reconciliation::test_null_composite_does_not_shift_next_column",
    "test_rows::test_rows_are_value_identical_to_tuples",
)

NEEDS: dict[str, tuple[str, ...]] = {
    "files of the client, by FILETOBLOB(..., 'client') and message 98": _FILES_OF_THE_CLIENT,
    "rows of the system tables in systables": _SYSTEM_TABLES,
    "a parameter in a select list, ?::INT": _SELECT_LIST,
    "columns of ROW, SET, MULTISET and LIST": _COMPLEX_TYPES,
    "CREATE FUNCTION": ("test_statement_classification::test_execute_function_returns_its_value",),
}

# It counts all threads of its process, those of asyncio's own pool too, of which Python 3.11 has two.
NOT_RUN = ("tests/test_async_threads.py::test_closing_a_connection_stops_its_thread",)
