"""What several folders of tests use; the places of the tree, which no test works out from its own."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
GOLDEN = TESTS / "golden"
