"""The family indexing: what is read or written at places known only at run time.

`scatter` is a family of its own, over the same windows.
"""

from harnesses.harness import Family

family = Family("indexing")
