"""Rewrites packages while they are imported.

`install` puts one finder in front of Python's own. `tf_substrates.on_jax.some_package.a` is loaded
from some_package's own file `a.py`, rewritten. Its bytecode is cached beside Python's, under a name
that holds the substrate, the rewriter's version and what the source is.
"""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import marshal
import os
import pathlib
import sys
import tempfile
from collections.abc import Sequence
from types import CodeType, ModuleType

from tf_substrates.rewriter.edits import as_tree
from tf_substrates.rewriter.rules import Substrate, edits_of


class RewritingFinder(importlib.abc.MetaPathFinder):
    """Finds the modules below `prefix` in the files of the packages they are rewritten from."""

    def __init__(self, prefix: str, sources: dict[str, str], substrate: Substrate):
        """
        Args:
          prefix: the module under which rewritten ones appear.
          sources: {name below the prefix: the package that it is rewritten from}.
        """
        self.prefix = prefix
        self.sources = sources
        self.substrate = substrate

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(self.prefix + "."):
            return None
        rest = fullname[len(self.prefix) + 1 :]
        head, _, below = rest.partition(".")
        package = self.sources.get(head)
        if package is None:
            return None
        original = ".".join(filter(None, [package, below]))
        if self.substrate.omits(original):
            return None
        found = _file_of(original)
        if found is None:
            return None
        file, is_package = found
        loader = RewritingLoader(fullname, str(file), self.substrate, original)
        spec = importlib.util.spec_from_file_location(
            fullname,
            file,
            loader=loader,
            submodule_search_locations=[str(file.parent)] if is_package else None,
        )
        return spec


class RewritingLoader(importlib.machinery.SourceFileLoader):
    """Loads a file rewritten, with the author's lines and columns."""

    def __init__(self, fullname: str, path: str, substrate: Substrate, original: str):
        super().__init__(fullname, path)
        self.substrate = substrate
        self.original = original

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        data = self.get_data(path)
        cache = _cache_file(path, data, self.substrate, self.original)
        if cache is not None and cache.exists():
            try:
                return marshal.loads(cache.read_bytes())
            except (ValueError, EOFError, TypeError):
                pass  # a cache that another process has cut short: it is written anew
        source = importlib.util.decode_source(data)
        is_package = pathlib.Path(path).name == "__init__.py"
        package = self.original if is_package else self.original.rpartition(".")[0]
        edits = edits_of(source, self.substrate, package, path, self.original)
        code = compile(as_tree(source, edits, path), path, "exec", dont_inherit=True)
        if cache is not None and not sys.dont_write_bytecode:
            _write(cache, marshal.dumps(code))
        return code


def _file_of(module: str) -> tuple[pathlib.Path, bool] | None:
    """The source file of a module, found without importing it, and whether it is a package."""
    head, *below = module.split(".")
    spec = importlib.machinery.PathFinder.find_spec(head)
    if spec is None or spec.origin is None:
        return None
    file = pathlib.Path(spec.origin)
    for name in below:
        folder = file.parent / name
        if (folder / "__init__.py").is_file():
            file = folder / "__init__.py"
        else:
            file = file.parent / f"{name}.py"
            if not file.is_file():
                return None
    return (file, file.name == "__init__.py") if file.suffix == ".py" else None


def _cache_file(path: str, data: bytes, substrate: Substrate, original: str) -> pathlib.Path | None:
    key = hashlib.sha256(data)
    key.update(_rules_key())
    key.update(repr((*substrate.identity(), original, path)).encode())
    try:
        name = importlib.util.cache_from_source(
            path, optimization=f"{substrate.name}{key.hexdigest()[:16]}"
        )
    except NotImplementedError:
        return None
    return pathlib.Path(name)


def _rules_key() -> bytes:
    """What the rewriter itself is, so that its changes make every cache stale."""
    global _KEY
    if _KEY is None:
        here = pathlib.Path(__file__).parent
        _KEY = b"".join((here / name).read_bytes() for name in ("edits.py", "rules.py", "hook.py"))
    return _KEY


_KEY: bytes | None = None


def _write(file: pathlib.Path, data: bytes) -> None:
    """Writes beside, then renames; a folder that may not be written to costs the cache alone."""
    try:
        file.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as beside:
            beside.write(data)
        os.replace(beside.name, file)
    except OSError:
        pass


def put_first(finder: RewritingFinder) -> None:
    """Puts a finder first, in the place of an older one for the same prefix."""
    sys.meta_path[:] = [
        known
        for known in sys.meta_path
        if not (isinstance(known, RewritingFinder) and known.prefix == finder.prefix)
    ]
    sys.meta_path.insert(0, finder)
