"""A file of JAX 0.4.30, which JAX itself refuses for its age: LAPACK as it was called then."""

from __future__ import annotations

import tarfile

import jax
import numpy as np
import pytest

import jax2tf
from tests.impl.stablehlo.old_files import write


@pytest.mark.parametrize("name", write.FUNCTIONS)
def test_lapack_as_jax_0_4_called_it(name: str):
    with tarfile.open(write.PATH) as archive:
        file = archive.extractfile(name)
        assert file is not None
        loaded = jax2tf.load(file.read())
    random = np.random.RandomState(0)
    arguments = []
    for spec in write.specs(name):
        x = random.normal(size=(*spec.shape, 2)) @ [1, 1j]
        arguments.append(np.asarray(x if spec.dtype.kind == "c" else x.real, spec.dtype))
    got, want = loaded(*arguments), jax.jit(write.FUNCTIONS[name][0])(*arguments)
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
