"""How a run of the suite goes: waiting, examples, workers."""
