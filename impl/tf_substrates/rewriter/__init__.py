"""Makes of a package written against TensorFlow the same package on a substrate.

- `edits`: a source file, what is replaced in it, and the text or tree that results.
- `rules`: which statements and strings are replaced, by what.
- `places`: where modules are on a substrate, and which are left out.
- `hook`: rewrites while importing, with a cache of bytecode.
- `packages`: rewrites a package into a folder.
- `project`: the table of a project's pyproject.toml.
- `check`: what of TensorFlow a package uses that is not there.
"""

from __future__ import annotations
