"""Random numbers: bit for bit, for every generator and every function of jax.random.

Keys come in as their raw data, so that both sides start from the same bits.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from harnesses.harness import FLOATS, INTS, UINTS, Arg, Family, Fill, Normal, Values, define

family = Family("random")

_THREEFRY = Values([0xDEADBEEF, 42], np.uint32)
_RBG = Values([0xDEADBEEF, 42, 7, 0xFFFFFFF0], np.uint32)
_KEYS: dict[str, Arg] = {"threefry2x32": _THREEFRY, "rbg": _RBG, "unsafe_rbg": _RBG}


def _with_key(fun: Callable[..., Any], impl: str) -> Callable[..., Any]:
    def from_data(data: Any, *args: Any) -> Any:
        return fun(jax.random.wrap_key_data(data, impl=impl), *args)

    return from_data


def _define(
    primitive: str,
    case: str,
    fun: Callable[..., Any],
    *args: Arg,
    dtype: Any = np.uint32,
    impl: str = "threefry2x32",
    **rest: Any,
) -> None:
    define(primitive, case, _with_key(fun, impl), [_KEYS[impl], *args], dtype=dtype, **rest)


_key_data = jax.random.key_data


def _data_of(x: Any) -> Any:
    return _key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x


_KEY_FUNCTIONS = {
    "random_split": lambda k: _key_data(jax.random.split(k, 3)),
    "random_fold_in": lambda k: _key_data(jax.random.fold_in(k, 7)),
    "random_clone": lambda k: _key_data(jax.random.clone(k)),
    "random_unwrap": _key_data,
}
_BATCHES = {
    "random_bits": lambda k: jax.vmap(lambda k: jax.random.bits(k, (2,)))(jax.random.split(k, 3)),
    "random_split": lambda k: _key_data(jax.vmap(jax.random.split)(jax.random.split(k, 3))),
    "random_fold_in": lambda k: _key_data(
        jax.vmap(lambda i: jax.random.fold_in(k, i))(jnp.arange(3))
    ),
    "random_seed": lambda k: _key_data(jax.vmap(jax.random.key)(jnp.arange(3))),
}
_FOLDED_IN = {
    "pairs": lambda keys: jax.vmap(jax.random.fold_in)(keys, jnp.arange(3)),
    "keys": lambda keys: jax.vmap(lambda k: jax.random.fold_in(k, 7))(keys),
    "product": lambda keys: jax.vmap(
        lambda k: jax.vmap(lambda i: jax.random.fold_in(k, i))(jnp.arange(4))
    )(keys),
}


@family.builder
def each_generator() -> None:
    """Bits, and keys made of keys and of seeds, by each generator; alone and under vmap."""
    for impl in _KEYS:
        _bits(impl)
        _keys_of_keys(impl)
        _seeds(impl)
        _keys_under_vmap(impl)


def _bits(impl: str) -> None:
    for dtype in UINTS:
        _define(
            "random_bits",
            impl,
            lambda k, d=dtype: jax.random.bits(k, (3, 5), d),
            dtype=dtype,
            impl=impl,
            params={"impl": impl},
        )
    for case, shape in {"scalar": (), "empty": (0, 3), "odd": (7,), "large": (2, 33, 5)}.items():
        _define(
            "random_bits",
            f"{impl}_{case}",
            lambda k, s=shape: jax.random.bits(k, s),
            impl=impl,
            params={"impl": impl, "shape": shape},
        )


def _keys_of_keys(impl: str) -> None:
    for primitive, fun in _KEY_FUNCTIONS.items():
        _define(primitive, impl, fun, impl=impl, params={"impl": impl})
    _define(
        "random_split",
        f"{impl}_shape",
        lambda k: _key_data(jax.random.split(k, (2, 3))),
        impl=impl,
        params={"impl": impl, "shape": (2, 3)},
    )


def _seeds(impl: str) -> None:
    for dtype in (*INTS, *UINTS):
        define(
            "random_seed",
            impl,
            lambda s: _key_data(jax.random.key(s, impl=impl)),
            [Fill((), dtype, np.iinfo(dtype).max - 5)],
            dtype=dtype,
            params={"impl": impl},
        )


def _keys_under_vmap(impl: str) -> None:
    for primitive, fun in _BATCHES.items():
        _define(primitive, f"{impl}_vmap", fun, impl=impl, params={"impl": impl})
    for case, fun in _FOLDED_IN.items():
        _define(
            "random_fold_in",
            f"{impl}_{case}",
            lambda k, f=fun: _key_data(f(jax.random.split(k, 3))),
            impl=impl,
            params={"impl": impl, "mapped": case},
        )


_KEY_MOVEMENTS = {
    "slice": lambda ks: ks[1:3],
    "index": lambda ks: ks[2],
    "gather": lambda ks: ks[jnp.array([3, 0, 0])],
    "reshape": lambda ks: ks.reshape(2, 2),
    "transpose": lambda ks: ks.reshape(2, 2).T,
    "concatenate": lambda ks: jnp.concatenate([ks, ks[:1]]),
    "stack": lambda ks: jnp.stack([ks[0], ks[3]]),
    "where": lambda ks: jnp.where(jnp.array([True, False, True, False]), ks, ks[::-1]),
    "broadcast": lambda ks: jnp.broadcast_to(ks, (3, 4)),
    "squeeze": lambda ks: jnp.squeeze(ks[:1]),
    "dynamic_slice": lambda ks: jax.lax.dynamic_slice(ks, (jnp.int32(9),), (2,)),
    "update": lambda ks: ks.at[1].set(ks[3]),
    "scan_carry": lambda ks: jax.lax.scan(lambda k, _: (jax.random.split(k)[0], k), ks[0], None, 3)[
        1
    ],
    "scan_xs": lambda ks: jax.lax.scan(lambda c, k: (c, k), 0, ks)[1],
    "while": lambda ks: jax.lax.fori_loop(0, 3, lambda i, k: jax.random.fold_in(k, i), ks[0]),
    "cond": lambda ks: jax.lax.cond(True, lambda: ks[0], lambda: ks[1]),
    "jit": lambda ks: jax.jit(lambda k: jax.random.split(k)[1])(ks[0]),
}


@family.builder
def movements_of_keys() -> None:
    """Arrays of keys that are cut, joined, moved, carried and chosen."""
    for case, fun in _KEY_MOVEMENTS.items():
        # A key of rbg has another shape: that changes what moves, not how.
        for impl in (
            ("threefry2x32", "rbg") if case in ("slice", "gather", "scan_xs") else ("threefry2x32",)
        ):
            _define(
                "random_wrap",
                f"{impl}_{case}",
                lambda k, f=fun: _key_data(f(jax.random.split(k, 4))),
                impl=impl,
                params={"impl": impl, "movement": case},
            )


def _scanned(keys: Any, length: int, reverse: bool) -> Any:
    def step(carry: Any, key: Any) -> Any:
        return jax.random.fold_in(key, 1), (carry, key, jax.random.split(key))

    return jax.lax.scan(step, keys[0], keys[:length], reverse=reverse)


def _until(key: Any, n: Any) -> Any:
    return jax.lax.while_loop(
        lambda c: c[1] < n, lambda c: (jax.random.fold_in(c[0], 5), c[1] + 1), (key, 0)
    )[0]


def _either(key: Any, first: Any) -> Any:
    return jax.lax.cond(first, lambda k: k, lambda k: jax.random.fold_in(k, 2), key)


_PLACES = np.array([2, 0, 1, 1])
_KEY_CONTROL: dict[str, Callable[[Any], Any]] = {
    f"scan_{length}{'_reverse' * reverse}": lambda ks, n=length, r=reverse: _scanned(ks, n, r)
    for length in (0, 1, 3)
    for reverse in (False, True)
}
_KEY_CONTROL |= {
    **{
        f"scan_{length}_vmap": lambda ks, n=length: jax.vmap(lambda ks: _scanned(ks, n, False))(
            ks.reshape(2, 2)
        )
        for length in (0, 1, 2)
    },
    "scan_0_of_arrays": lambda ks: jax.lax.scan(lambda c, _: (c, ks), ks, None, length=0),
    "while_vmap": lambda ks: jax.vmap(_until)(ks, jnp.arange(4)),
    "cond_vmap": lambda ks: jax.vmap(_either)(ks, jnp.arange(4) % 2 == 0),
    "switch": lambda ks: jax.lax.switch(
        2, [lambda k: k[::-1], lambda k: k, lambda k: k[_PLACES]], ks
    ),
    "custom_linear_solve": lambda ks: jax.vmap(
        lambda k: jax.lax.custom_linear_solve(
            lambda x: x * 2, jax.random.bits(k, ()) * 1.0, lambda _, b: b / 2, symmetric=True
        )
    )(ks),
}


@family.builder
def keys_in_control_flow() -> None:
    """Keys in each role, for no step and more; members of a batch that go different ways."""
    for case, fun in _KEY_CONTROL.items():
        for impl in ("threefry2x32", "rbg") if case.startswith("scan_0") else ("threefry2x32",):
            _define(
                "random_wrap",
                f"{impl}_{case}",
                lambda k, f=fun: jax.tree.map(_data_of, f(jax.random.split(k, 4))),
                impl=impl,
                params={"impl": impl, "movement": case},
            )


@family.builder
def raw_keys_of_threefry() -> None:
    """Keys that are arrays of uint32, and bits that are drawn in order."""
    define(
        "threefry2x32",
        "old_style_key",
        lambda k: jax.random.split(k, 2),
        [_THREEFRY],
        dtype=np.uint32,
    )
    define(
        "threefry2x32", "prng_key", jax.random.PRNGKey, [Fill((), np.int32, -1)], dtype=np.uint32
    )
    define("threefry2x32", "not_partitionable", _bits_in_order, [_THREEFRY], dtype=np.uint32)


def _bits_in_order(key: Any) -> Any:
    with jax.threefry_partitionable(False):
        return jax.random.bits(key, (7,)), jax.random.split(key, 3)


_ALGORITHMS = {"default": 0, "three_fry": 1, "philox": 2}


@family.builder
def algorithms_of_rng_bit_generator() -> None:
    """`rng_bit_generator` with each algorithm, for each unsigned dtype."""
    for name, algorithm in _ALGORITHMS.items():
        for dtype in UINTS:
            define(
                "rng_bit_generator",
                name,
                lambda k, a=algorithm, d=dtype: jax.lax.rng_bit_generator(k, (5,), d, a),
                [_RBG],
                dtype=dtype,
                params={"algorithm": name},
            )


@family.builder
def shapes_of_rng_bit_generator() -> None:
    """Bits of each shape: which dimension a block of threefry fills depends on the shape."""
    for shape in [(), (1,), (4,), (2, 3), (5, 3), (3, 5), (3, 3), (3, 4, 2), (3, 0)]:
        for dtype in (np.uint8, np.uint32, np.uint64):
            define(
                "rng_bit_generator",
                f"three_fry_{'x'.join(map(str, shape)) or 'scalar'}",
                lambda k, s=shape, d=dtype: jax.lax.rng_bit_generator(k, s, d, 1),
                [_RBG],
                dtype=dtype,
                params={"shape": shape},
            )


@family.builder
def states_of_rng_bit_generator() -> None:
    """The state that a first call leaves, taken by a second; and a state of uint64."""
    define(
        "rng_bit_generator",
        "twice",
        lambda k: jax.lax.rng_bit_generator(jax.lax.rng_bit_generator(k, (3, 3))[0], (2,)),
        [_RBG],
        dtype=np.uint32,
    )
    define(
        "rng_bit_generator",
        "wide_key",
        lambda k: jax.lax.rng_bit_generator(k, (4,), np.uint64),
        [Values([5, 2**63], np.uint64)],
        dtype=np.uint64,
    )


r = jax.random
_SAMPLERS: dict[str, Callable[..., Any]] = {
    "ball": lambda k, d: r.ball(k, 3, shape=(2,), dtype=d),
    "beta": lambda k, d: r.beta(k, 2.0, 0.5, (3,), d),
    "cauchy": lambda k, d: r.cauchy(k, (3,), d),
    "chisquare": lambda k, d: r.chisquare(k, 3.0, shape=(3,), dtype=d),
    "dirichlet": lambda k, d: r.dirichlet(k, jnp.ones(3, d), (2,), d),
    "double_sided_maxwell": lambda k, d: r.double_sided_maxwell(k, 1.0, 2.0, (3,), d),
    "exponential": lambda k, d: r.exponential(k, (3,), d),
    "f": lambda k, d: r.f(k, 3.0, 4.0, shape=(3,), dtype=d),
    "generalized_normal": lambda k, d: r.generalized_normal(k, 1.5, (3,), d),
    "gumbel": lambda k, d: r.gumbel(k, (3,), d),
    "laplace": lambda k, d: r.laplace(k, (3,), d),
    "loggamma": lambda k, d: r.loggamma(k, 0.5, (3,), d),
    "logistic": lambda k, d: r.logistic(k, (3,), d),
    "lognormal": lambda k, d: r.lognormal(k, 0.5, (3,), d),
    "maxwell": lambda k, d: r.maxwell(k, (3,), d),
    "normal": lambda k, d: r.normal(k, (3, 4), d),
    "pareto": lambda k, d: r.pareto(k, 2.0, (3,), d),
    "rademacher": lambda k, d: r.rademacher(k, (3,), d),
    "rayleigh": lambda k, d: r.rayleigh(k, 2.0, (3,), d),
    "t": lambda k, d: r.t(k, 3.0, (3,), d),
    "triangular": lambda k, d: r.triangular(k, 0.0, 0.3, 1.0, (3,), d),
    "truncated_normal": lambda k, d: r.truncated_normal(k, -1.0, 2.0, (3,), d),
    "uniform": lambda k, d: r.uniform(k, (3, 4), d, -2, 3),
    "wald": lambda k, d: r.wald(k, 1.5, (3,), d),
    "weibull_min": lambda k, d: r.weibull_min(k, 1.5, 2.0, (3,), d),
}
# A sampler takes as long to compile as fifty other harnesses: the common ones in every dtype, the
# others in float32.
_IN_EVERY_DTYPE = ("gumbel", "laplace", "normal", "truncated_normal", "uniform")


@family.builder
def continuous_distributions() -> None:
    """Samples of continuous distributions."""
    for case, fun in _SAMPLERS.items():
        for dtype in FLOATS if case in _IN_EVERY_DTYPE else (np.float32,):
            _define(
                "random",
                case,
                lambda k, f=fun, d=dtype: f(k, d),
                dtype=dtype,
                scale="array",
                ulps=16,
            )


@family.builder
def gamma_distributions() -> None:
    """Samples of gamma distributions, which JAX has a primitive for."""
    for dtype in (np.float32, np.float64):
        _define(
            "random_gamma",
            "",
            lambda k, d=dtype: r.gamma(k, jnp.array([0.5, 3.0], d), (2,), d),
            dtype=dtype,
            ulps=16,
        )
    _define(
        "random_gamma",
        "vmap",
        lambda k: jax.vmap(lambda k: r.gamma(k, jnp.array([0.5, 3.0])))(r.split(k, 2)),
        dtype=np.float32,
        ulps=16,
    )


_DISCRETE: dict[str, Callable[..., Any]] = {
    "bernoulli": lambda k: r.bernoulli(k, 0.3, (8,)),
    "binomial": lambda k: r.binomial(k, 10, 0.3, (4,)),
    "binomial_certain": lambda k: r.binomial(k, 10, jnp.array([0.0, 1.0, 0.5])),
    "categorical": lambda k: r.categorical(k, jnp.log(jnp.arange(1.0, 5.0)), shape=(6,)),
    "categorical_without_replacement": lambda k: r.categorical(
        k, jnp.log(jnp.arange(1.0, 5.0)), shape=(3,), replace=False
    ),
    "choice": lambda k: r.choice(k, 10, (4,)),
    "choice_weighted": lambda k: r.choice(k, 4, (5,), p=jnp.array([0.1, 0.2, 0.3, 0.4])),
    "choice_without_replacement": lambda k: r.choice(k, 10, (4,), replace=False),
    "geometric": lambda k: r.geometric(k, 0.3, (4,)),
    "multinomial": lambda k: r.multinomial(k, jnp.float32(10), jnp.array([0.2, 0.3, 0.5])),
    "permutation": lambda k: r.permutation(k, 9),
    "permutation_independent": lambda k: r.permutation(
        k, jnp.arange(12).reshape(3, 4), axis=1, independent=True
    ),
    "poisson": lambda k: r.poisson(k, 3.0, (4,)),
    "poisson_large": lambda k: r.poisson(k, 50.0, (4,)),
}


@family.builder
def discrete_distributions() -> None:
    """Samples of discrete distributions, choices and permutations; integers of every dtype."""
    for case, fun in _DISCRETE.items():
        _define("random", case, fun, dtype=np.int32)
    for dtype in (*INTS, *UINTS):
        _define("random", "randint", lambda k, d=dtype: r.randint(k, (5,), 3, 100, d), dtype=dtype)


@family.builder
def vectors_and_complex_numbers() -> None:
    """Samples of normal vectors, orthogonal matrices and complex numbers, and a dropout."""
    _define(
        "random",
        "multivariate_normal",
        lambda k: r.multivariate_normal(k, jnp.zeros(2), jnp.array([[2.0, 0.5], [0.5, 1.0]]), (3,)),
        dtype=np.float32,
        scale="array",
        ulps=16,
    )
    _define(
        "random",
        "orthogonal",
        lambda k: jnp.abs(r.orthogonal(k, 3)),
        dtype=np.float32,
        scale="array",
        ulps=64,
    )
    _define(
        "random", "normal_complex", lambda k: r.normal(k, (3,), np.complex64), dtype=np.complex64
    )
    _define(
        "random",
        "dropout",
        lambda k, x: jnp.where(r.bernoulli(k, 0.5, x.shape), x / 0.5, 0),
        Normal((4, 5), np.float32),
        dtype=np.float32,
    )


def _within(args: tuple, expected: Any, actual: Any) -> float:
    """Which numbers come is open: their dtype, shape and range are not, nor that they differ."""
    low, high = args
    spread = bool(np.all((actual >= low) & (actual < high)) and np.unique(actual).size > 1)
    return 0 if spread and actual.shape == expected.shape else np.inf


@family.builder
def numbers_of_an_open_generator() -> None:
    """`rng_uniform`, whose generator XLA leaves to the backend."""
    for dtype in (np.float32, np.float64):
        define(
            "rng_uniform",
            "",
            lambda low, high: jax.lax.rng_uniform(low, high, (8,)),
            [Fill((), dtype, -2), Fill((), dtype, 3)],
            dtype=dtype,
            check=_within,
        )
