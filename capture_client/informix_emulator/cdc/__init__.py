"""The `cdc_*` functions: how a client calls them, and what they do."""
