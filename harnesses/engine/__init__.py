"""The judge: runs cells and says what came of each.

A cell is a harness on a device through a lowering in a mode (`cells`). `judge` runs one and makes
a row of results of it; `plugin` is the pytest engine that runs them all.
"""
