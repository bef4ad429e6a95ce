# PyArrow makes most of its functions at import, so that a type checker does not see them: all is Any.
from typing import Any

def __getattr__(name: str) -> Any: ...
