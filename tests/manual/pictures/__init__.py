"""The pictures of the manual, drawn by code: `make docs`."""
