"""The rewriter's first customer: `tf_substrates.jax` is made of `tf_substrates.numpy`.

Its second is `tf_substrates.authors`, a library for TensorFlow, which both have rewritten.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import pathlib
import sys
from collections.abc import Sequence
from types import ModuleType

from tf_substrates.rewriter import known_libraries
from tf_substrates.rewriter.hook import RewritingFinder, RewritingLoader, put_first
from tf_substrates.rewriter.places import Substrate

SUBSTRATE = Substrate(
    "jax",
    modules={"tf_substrates.numpy": "tf_substrates.jax"},
    exact={
        ("numpy", "xp"): "jax.numpy",
        ("scipy.special", "special"): "jax.scipy.special",
        ("scipy.linalg", "sla"): "jax.scipy.linalg",
    },
    members=False,
)
_FROM = pathlib.Path(__file__).parent.parent / "numpy"


class OwnFinder:
    """Finds `tf_substrates.jax.math.bits` in `tf_substrates/numpy/math/bits.py`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("tf_substrates.jax."):
            return None
        original = fullname.replace("tf_substrates.jax.", "tf_substrates.numpy.", 1)
        below = _FROM.joinpath(*original.split(".")[2:])
        package = below / "__init__.py"
        file = package if package.is_file() else below.with_suffix(".py")
        if not file.is_file():
            return None
        return importlib.util.spec_from_file_location(
            fullname,
            file,
            loader=RewritingLoader(fullname, str(file), SUBSTRATE, original),
            submodule_search_locations=[str(below)] if file is package else None,
        )


def install(substrate: str) -> None:
    """Lets the modules of a substrate be imported that are made of others.

    Args:
      substrate: "numpy", which has `authors` so, or "jax", which has everything so.
    """
    if substrate == "jax" and not any(isinstance(finder, OwnFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, OwnFinder())
    prefix = f"tf_substrates.{substrate}"
    place = known_libraries.substrate(substrate, {})
    put_first(RewritingFinder(prefix, {"authors": known_libraries.AUTHORS}, place))
