"""The family elementwise: arithmetic, comparison and logic, and the identities.

A primitive of real numbers is asked at every edge of its dtype and at random numbers in one
harness; of float8 at every number there is. Complex numbers have a harness each for ordinary
numbers, for zeros, infinities and branch cuts ("edge"), and for numbers with a NaN part ("nan"),
because the latter two are where libraries differ.
"""

from harnesses.harness import Family

family = Family("elementwise")
