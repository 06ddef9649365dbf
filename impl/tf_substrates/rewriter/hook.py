"""Rewrites packages while they are imported.

`install` puts one finder in front of Python's own. `tf_substrates.on_jax.some_package.a` is loaded
from some_package's own file `a.py`, rewritten. Its bytecode is cached beside Python's, under a name
that holds the substrate, the rewriter's version and what the source is.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import marshal
import os
import sys

from tf_substrates.rewriter import known_libraries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import CodeType, ModuleType

    from tf_substrates.rewriter.places import Substrate


def install(substrate: str, packages: Iterable[str], omit: Iterable[str] = ()) -> None:
    """Lets packages written against TensorFlow be imported on a substrate.

    After `install("jax", ["some_package"])`, `from tf_substrates.on_jax import some_package` is
    some_package on JAX, rewritten while it is imported; `tf_substrates.on_numpy` holds NumPy's.
    TensorFlow is not imported. Packages that use each other are given together.

    Args:
      substrate: "numpy" or "jax".
      packages: names of installed top-level packages.
      omit: modules of theirs to leave out, with what `__init__` files import of them.

    Raises:
      ValueError: there is no such substrate.
      ModuleNotFoundError: a package is not installed.
    """
    names = _names(packages)
    for name in names:
        first_file_of(name)
    prefix = f"tf_substrates.on_{substrate}"
    place = known_libraries.substrate(substrate, {name: f"{prefix}.{name}" for name in names}, omit)
    put_first(RewritingFinder(prefix, {name: name for name in names}, place))


def _names(packages: Iterable[str]) -> list[str]:
    if isinstance(packages, str):
        raise TypeError(
            f"install: `packages` is a list of names, e.g. [{packages!r}], not a string."
        )
    return list(packages)


def first_file_of(package: str) -> str:
    """The first file of an installed package, found without importing it.

    Raises:
      ModuleNotFoundError: there is none, or it has no Python source.
    """
    # Of a name with dots or slashes the finder would look for the last part.
    finder = importlib.machinery.PathFinder
    spec = finder.find_spec(package) if package.isidentifier() else None
    if spec is not None and spec.origin is None:
        raise ModuleNotFoundError(
            f"tf_substrates: {package!r} is a folder without an __init__.py: only folders in a"
            " package may be so. What to do: give it one, which may be empty.",
            name=package,
        )
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise ModuleNotFoundError(
            f"tf_substrates: there is no package {package!r} with Python source on the path."
            " What to do: install it, or run from the folder that holds it.",
            name=package,
        )
    return spec.origin


class RewritingFinder:
    """Finds the modules below `prefix` in the files of the packages they are rewritten from."""

    def __init__(self, prefix: str, sources: dict[str, str], substrate: Substrate):
        """
        Args:
          prefix: the module under which rewritten ones appear.
          sources: {name below the prefix: the package or module that it is rewritten from}.
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
            # Python's own finder would load it as it is, with TensorFlow.
            raise ModuleNotFoundError(
                f"tf_substrates: {original} is left out on {self.substrate.name}.", name=fullname
            )
        found = _file_of(original)
        if found is None:
            return None
        file, is_package = found
        if os.path.isdir(file):
            namespace = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            namespace.submodule_search_locations = [file]
            return namespace
        loader = RewritingLoader(fullname, file, self.substrate, original)
        spec = importlib.util.spec_from_file_location(
            fullname,
            file,
            loader=loader,
            submodule_search_locations=[os.path.dirname(file)] if is_package else None,
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
        if cache is not None and os.path.exists(cache):
            try:
                return marshal.loads(self.get_data(cache))
            except (ValueError, EOFError, TypeError):
                pass  # a cache that another process has cut short: it is written anew
        code = self._rewritten(path, data)
        if cache is not None and not sys.dont_write_bytecode:
            # Where it may not be written this costs the cache alone.
            self.set_data(cache, marshal.dumps(code))
        return code

    def _rewritten(self, path: str, data: bytes) -> CodeType:
        # The rules take longer to import than most files, and bytecode that is kept needs none.
        from tf_substrates.rewriter.edits import as_tree
        from tf_substrates.rewriter.rules import edits_of

        source = importlib.util.decode_source(data)
        package = self.original
        if os.path.basename(path) != "__init__.py":
            package = self.original.rpartition(".")[0]
        edits = edits_of(source, self.substrate, package, path, self.original)
        return compile(as_tree(source, edits, path), path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        try:
            super().exec_module(module)
        except ModuleNotFoundError as error:
            package = _importer_of_tensorflow(error)
            if package is None:
                raise
            raise ModuleNotFoundError(
                f"tf_substrates: {self.original} imports {package}, which imports TensorFlow and is"
                f" not rewritten. What to do: give both together, as"
                f" install({self.substrate.name!r}, [{self.original.partition('.')[0]!r},"
                f" {package!r}]).",
                name=package,
            ) from error


def _importer_of_tensorflow(error: ModuleNotFoundError) -> str | None:
    """The package, rewritten by nobody, that failed to import TensorFlow."""
    if (error.name or "").partition(".")[0] != "tensorflow":
        return None
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    # The innermost frames are Python's own import system.
    name = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    package = str(name).partition(".")[0]
    return None if package in ("", "tf_substrates") else package


def _file_of(module: str) -> tuple[str, bool] | None:
    """The source file of a module, found without importing it, and whether it is a package.

    Of a folder without an `__init__.py` it is the folder.
    """
    head, *below = module.split(".")
    spec = importlib.machinery.PathFinder.find_spec(head)
    if spec is None or spec.origin is None:
        return None
    file = spec.origin
    for name in below:
        beside = os.path.join(os.path.dirname(file), name)
        places = (os.path.join(beside, "__init__.py"), f"{beside}.py", os.path.join(beside, ""))
        file = next(filter(os.path.exists, places), "")
        if not file:
            return None
    if file.endswith(os.sep):
        return file, True
    return (file, os.path.basename(file) == "__init__.py") if file.endswith(".py") else None


def _cache_file(path: str, data: bytes, substrate: Substrate, original: str) -> str | None:
    key = _hash([data, _rules_key(), repr((*substrate.identity(), original, path)).encode()])
    try:
        return importlib.util.cache_from_source(path, optimization=f"{substrate.name}{key.hex()}")
    except NotImplementedError:
        return None


def _hash(parts: Iterable[bytes]) -> bytes:
    """By the hash of Python's own bytecode, which is there without an import."""
    return importlib.util.source_hash(b"".join(map(importlib.util.source_hash, parts)))


def _rules_key() -> bytes:
    """What the rewriter itself is, so that its changes make every cache stale."""
    global _KEY
    if _KEY is None:
        _KEY = _hash(map(_bytes_of, ("edits.py", "rules.py", "places.py", "hook.py")))
    return _KEY


_KEY: bytes | None = None


def _bytes_of(name: str) -> bytes:
    with open(os.path.join(os.path.dirname(__file__), name), "rb") as file:
        return file.read()


def put_first(finder: RewritingFinder) -> None:
    """Puts a finder first, in the place of an older one for the same prefix."""
    sys.meta_path[:] = [
        known
        for known in sys.meta_path
        if not (isinstance(known, RewritingFinder) and known.prefix == finder.prefix)
    ]
    sys.meta_path.insert(0, finder)
