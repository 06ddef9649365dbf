"""The database: what is asked of an implementation.

Every module of this package is a family (`harnesses.calls`, `harnesses.linalg`, ...) and defines
its harnesses at import. The package `harnesses.functions` is one too, with a module for each of
JAX's public ones. The other packages are not: `harnesses.harness` is the vocabulary that families
are written in, `harnesses.engine` runs the cells.
"""
