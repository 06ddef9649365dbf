"""The family arrays: what makes, moves, repeats, cuts and chooses elements and computes none.

Each primitive runs once on every dtype (`every_dtype`); what its params do is shown on float32, and
where a dtype could make a difference on a few more.
"""

from harnesses.harness import Family

family = Family("arrays")
