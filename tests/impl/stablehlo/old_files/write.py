"""Writes `lapack.tar.xz` beside it: LAPACK calls as JAX 0.4.30 writes them for the CPU.

Sizes and modes are leading operands there, and workspaces are among the results. Run it in an
environment with JAX 0.4.30:

    python write.py
"""

from __future__ import annotations

import io
import pathlib
import tarfile
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

PATH = pathlib.Path(__file__).with_name("lapack.tar.xz")


def _adjoint(x: Any) -> Any:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def factors(tall: Any, square: Any) -> dict[str, Any]:
    """Every factorization that a file of JAX 0.4.30 may hold."""
    linalg = lax.linalg
    return {
        "lu": linalg.lu(tall),
        "qr": linalg.qr(tall, full_matrices=False),
        "full qr": linalg.qr(tall, full_matrices=True),
        "cholesky": linalg.cholesky(square @ _adjoint(square) + jnp.eye(3, dtype=square.dtype)),
        "eigh": linalg.eigh(square + _adjoint(square)),
        "eigh of upper": linalg.eigh(square, lower=False, symmetrize_input=False),
        "svd": linalg.svd(tall, full_matrices=False),
        "full svd": linalg.svd(tall, full_matrices=True),
        "singular values": linalg.svd(tall, compute_uv=False),
        "eig": linalg.eig(square),
        "right eig": linalg.eig(square, compute_left_eigenvectors=False),
        "eigenvalues": jnp.linalg.eigvals(square),
        "schur": linalg.schur(square),
        "solve": linalg.triangular_solve(
            square[0], tall[0], left_side=False, lower=False, transpose_a=True, conjugate_a=True
        ),
        "unit solve": linalg.triangular_solve(
            square[0], square[1], left_side=True, lower=True, unit_diagonal=True
        ),
    }


def hidden(square: Any) -> Any:
    """Calls that JAX 0.4.30 writes into a file only if it is told to."""
    hermitian = square + _adjoint(square)
    return lax.linalg.hessenberg(square), lax.linalg.tridiagonal(hermitian, lower=False)


FUNCTIONS = {
    "real": (factors, np.float32),
    "complex": (factors, np.complex64),
    "hidden": (hidden, np.float32),
}


def specs(name: str) -> list[jax.ShapeDtypeStruct]:
    function, dtype = FUNCTIONS[name]
    shapes = [(2, 4, 3), (2, 3, 3)] if function is factors else [(2, 3, 3)]
    return [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]


def main() -> None:
    """Writes a file of jax.export for each function."""
    unchecked = [
        export.DisabledSafetyCheck.custom_call(f"lapack_{name}") for name in ("sgehrd", "ssytrd")
    ]
    with tarfile.open(PATH, "w:xz") as archive:
        for name, (function, _) in FUNCTIONS.items():
            exported = export.export(jax.jit(function), disabled_checks=unchecked)(*specs(name))
            data = bytes(exported.serialize())
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


if __name__ == "__main__":
    main()
