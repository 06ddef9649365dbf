"""Where the judge stands: in a checkout of the repository, or installed as `jax2tf_judge`.

In a checkout the packages are `harnesses`, `limitations` and `reports`. The wheel holds the same
packages inside of `jax2tf_judge`: its build, judge/backend.py, writes that prefix into each import
and each `python -m`. The code therefore names no package by text, and asks this module for places.
"""

from pathlib import Path

# Beside `harnesses` stand `limitations` and `reports`.
ROOT = Path(__file__).parents[2]
# What stands before the names of the three packages: "jax2tf_judge." in the wheel.
PREFIX = __name__.removesuffix("harnesses.harness.place")
IS_CHECKOUT = not PREFIX
# Where runs put their rows: an installed package is no place for these.
RESULTS = ROOT / "reports" / "results" if IS_CHECKOUT else Path.cwd() / "judge_results"
# Where ledgers that the judge has not brought along stand, each in a folder of its own.
LEDGERS = ROOT / "limitations" if IS_CHECKOUT else Path.cwd() / "judge_ledgers"
# The version of the database, in a checkout that of the next release.
VERSION = "0.1.0"
