"""Writes `special.tar.xz` beside it: special functions as JAX 0.10 writes them, as many ops each.

Run it in an environment with JAX 0.10:

    python write_special.py
"""

from __future__ import annotations

import io
import pathlib
import tarfile
from collections.abc import Callable
from typing import Any

import jax
from jax import export, lax

PATH = pathlib.Path(__file__).with_name("special.tar.xz")


def twice(x: Any) -> Any:
    """Two calls side by side, and one behind the other."""
    return lax.erfc(x) + lax.erfc(lax.erfc(x * 0.5))


def in_a_loop(x: Any) -> Any:
    """Calls in a step: their constants stand before the loop."""
    return lax.fori_loop(0, 3, lambda _, x: lax.erfc(x) * 0.5, x)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "bessel_i1e": lax.bessel_i1e,
    "digamma": lax.digamma,
    "erf_inv": lax.erf_inv,
    "erfc": lax.erfc,
    "in_a_loop": in_a_loop,
    "twice": twice,
}
DTYPES = ("float32", "bfloat16")


def main() -> None:
    """Writes a file of jax.export for each function, dtype, and kind of shape."""
    # The files name no folders of the machine that writes them.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    shapes = {"static": (5,), "open": export.symbolic_shape("b")}
    with tarfile.open(PATH, "w:xz") as archive:
        for name, function in FUNCTIONS.items():
            for dtype in DTYPES:
                for kind, shape in shapes.items():
                    spec = jax.ShapeDtypeStruct(shape, dtype)
                    data = bytes(export.export(jax.jit(function))(spec).serialize())
                    member = tarfile.TarInfo(f"{name}_{dtype}_{kind}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))


if __name__ == "__main__":
    main()
