"""The database: what is asked of an implementation.

Every module of this package is a family (`harnesses.calls`, `harnesses.linalg`, ...) and defines
its harnesses at import. A large family is a package: `harnesses.indexing`, `harnesses.functions`.
The other packages are none: `harnesses.harness` is the vocabulary that families are written in,
`harnesses.engine` runs the cells.
"""
