"""Programs beside the suite: benchmarks, witnesses, matrix of versions, fuzzing, live servers.

A few tests here check the programs themselves, or rehearse on the emulator what a live server is asked:
those run in the suite.
"""
