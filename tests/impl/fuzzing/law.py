"""What JAX gives for a program: its results, derivatives and the derivatives of those."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.impl.fuzzing.combinations import Program

Flat = Callable[..., list[jax.Array]]


class Called:
    """A program with values for its leaves.

    Attributes:
      values: of all leaves.
      given: which leaves have gradients: the inexact ones that are passed.
      differentiated: whether the gradients will be asked for: JAX then compiles one program for
        them and the results.
    """

    def __init__(self, program: Program, rows: int = 0, differentiated: bool = False):
        self.program, self.differentiated = program, differentiated
        self._cache: dict[Hashable, Any] = {}
        self.values = [leaf.value(rows) for leaf in program.leaves]
        self.given = [i for i in program.passed if program.leaves[i].is_inexact]

    def cached(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What was made under this key before, or else now."""
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    @property
    def results(self) -> Any:
        """The tree of results, of NumPy arrays, keys as their data."""
        if self.differentiated and self.given:
            return self._together[0]
        return self._alone

    @functools.cached_property
    def _alone(self) -> Any:
        fun = self.program.function
        fun = fun if self.program.statics else jax.jit(fun)
        return jax.tree.map(_as_array, self.program.call(fun, self.values))

    @functools.cached_property
    def _together(self) -> tuple[Any, list[np.ndarray]]:
        """Results and gradients."""

        def run(values: Sequence[Any]) -> Any:
            def of_given(*given: Any) -> Any:
                results = self.program.call(self.program.function, self._with_given(values, given))
                return inexact(results), results

            given = [values[i] for i in self.given]
            inexact_results, pullback, results = jax.vjp(of_given, *given, has_aux=True)
            return results, pullback(_cotangents(inexact_results))

        results, gradients = jax.jit(run)(self.values)
        return jax.tree.map(_as_array, results), _arrays(gradients)

    @functools.cached_property
    def inexact(self) -> list[np.ndarray]:
        """The results that have cotangents."""
        return inexact(self.results)

    @property
    def given_values(self) -> list[np.ndarray]:
        return [self.values[i] for i in self.given]

    @property
    def cotangents(self) -> list[np.ndarray]:
        """One for each inexact result."""
        return _arrays(_cotangents(self.inexact))

    def of_given(self, *given: Any) -> list[jax.Array]:
        """The inexact results as a function of the inexact leaves."""
        values = self._with_given(self.values, given)
        return inexact(self.program.call(self.program.function, values))

    def _with_given(self, values: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        replaced = dict(zip(self.given, given, strict=True))
        return [replaced.get(i, value) for i, value in enumerate(values)]

    def vjp(self, given: Sequence[Any], cotangents: Sequence[Any]) -> tuple[jax.Array, ...]:
        return jax.vjp(self.of_given, *given)[1](list(cotangents))

    @functools.cached_property
    def gradients(self) -> list[np.ndarray]:
        """With respect to the inexact leaves, for the cotangents."""
        if self.differentiated:
            return self._together[1]
        return _arrays(jax.jit(self.vjp)(self.given_values, self.cotangents))

    @property
    def is_not_differentiable(self) -> bool:
        """Whether JAX has no gradients: of the loop in a custom rule's backward pass."""
        try:
            self.gradients  # noqa: B018
            return False
        except ValueError as error:
            return "Reverse-mode differentiation does not work" in str(error)

    @functools.cached_property
    def each_gradient(self) -> list[list[np.ndarray]]:
        """The same for each result alone."""
        vjp, zeros = jax.jit(self.vjp), [np.zeros_like(y) for y in self.inexact]
        alone = ([*zeros[:i], ct, *zeros[i + 1 :]] for i, ct in enumerate(self.cotangents))
        return [_arrays(vjp(self.given_values, cts)) for cts in alone]

    @functools.cached_property
    def pushed_forward(self) -> list[np.ndarray]:
        """Tangents of the results, for the inexact leaves themselves as tangents.

        By the vjp of the vjp: custom derivatives may have no forward mode.
        """

        def forward(given: Any, cotangents: Any) -> Any:
            _, pullback = jax.vjp(functools.partial(self.vjp, given), cotangents)
            return pullback(tuple(given))[0]

        return _arrays(jax.jit(forward)(self.given_values, self.cotangents))

    @functools.cached_property
    def second(self) -> list[np.ndarray]:
        """The gradients of the squared norm of the gradients."""

        def norm(*given: Any) -> Any:
            gradients = self.vjp(given, self.cotangents)
            return sum(jnp.sum(jnp.square(jnp.abs(g)), dtype=np.float32) for g in gradients)

        return _arrays(jax.jit(jax.grad(norm, range(len(self.given))))(*self.given_values))

    def jacobian(self, result: int) -> list[np.ndarray]:
        """Of one result with respect to the inexact leaves."""
        of_one = jax.jacrev(lambda *g: self.of_given(*g)[result], range(len(self.given)))
        return _arrays(jax.jit(of_one)(*self.given_values))


def inexact(results: Any) -> list[Any]:
    """The leaves of results that have cotangents."""
    leaves = jax.tree.leaves(results)
    return [leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, np.inexact)]


def _cotangents(results: Sequence[Any]) -> list[np.ndarray]:
    return [np.full(y.shape, (1 + i % 3) / 2, y.dtype) for i, y in enumerate(results)]


def _arrays(values: Sequence[Any]) -> list[np.ndarray]:
    return [np.asarray(v) for v in values]


def _as_array(value: Any) -> np.ndarray:
    is_key = jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(value) if is_key else value)
