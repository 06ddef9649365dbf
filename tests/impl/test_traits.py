"""What traits.py says of JAX's primitives, held against JAX."""

from __future__ import annotations

import collections
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend import core as jex_core

from harnesses.harness import all_harnesses
from jax2tf._src.lowering import interpreter, pipeline, registry
from jax2tf._src.tracing import jaxprs, primitives, traits
from jax2tf._src.tracing.trace import trace_of

assert interpreter  # its import registers the rules

SETS = {name for name, value in vars(traits).items() if isinstance(value, frozenset)}


def test_each_word_of_the_table_is_a_set():
    """A misspelled trait would be true of no primitive."""
    words = {word for line in traits.TRAITS.values() for word in line.split()}
    assert words == SETS - {"CALLBACKS"}


def test_every_primitive_of_jax_with_a_rule_has_a_line():
    known = {*traits.TRAITS, *traits.NONE.split()}
    of_jax = {p.name for p in registry._RULES if p in primitives._by_name().get(p.name, ())}
    assert of_jax - known == set(), "give each a line in tracing/traits.py"
    assert not traits.TRAITS.keys() & set(traits.NONE.split())


def test_lines_are_sorted():
    assert list(traits.TRAITS) == sorted(traits.TRAITS)
    assert traits.NONE.split() == sorted(traits.NONE.split())


# So many harnesses of each primitive and dtype are run.
N_HARNESSES = 2

HARNESSES = collections.defaultdict(list)
for each in sorted(all_harnesses(), key=lambda h: h.name):
    if each.runs_on(jax.__version__) and not each.x64 and "empty" not in each.name:
        HARNESSES[each.primitive, str(each.dtype)].append(each)


def uses(primitive, dtype):
    """Equations of the primitive in its harnesses of that dtype: (equation, operands, results)."""
    seen = []

    def rule(eqn, operands):
        results = jaxprs.bind(eqn.primitive, operands, eqn.params)
        if eqn.primitive is primitive:
            seen.append((eqn, list(map(np.asarray, operands)), list(map(np.asarray, results))))
        return results

    for harness in HARNESSES[primitive.name, dtype][:N_HARNESSES]:
        args = harness.make_args()
        traced = jax.jit(harness.fun).trace(*args)
        jaxpr = trace_of(traced, pipeline.simplified).jaxpr
        jaxprs.evaluate(jaxpr.jaxpr, jaxpr.consts, jax.tree.leaves(args), rule)
    if not seen:
        pytest.skip("no harness has the primitive in its outermost jaxpr")
    return seen


def of(which):
    return pytest.mark.parametrize("primitive", sorted(which, key=str), ids=str)


def bits(x):
    return set(np.ascontiguousarray(x).reshape(-1).view(f"V{x.dtype.itemsize}").tolist())


def test_some_primitive_of_each_trait_is_run():
    for trait in ("MOVES", "REARRANGES", "IDENTITY", "BINARY", "COMMUTES", "WRAPS", "WIDENS"):
        names = {p.name for p in getattr(traits, trait)}
        assert any(name in names for name, _ in HARNESSES), trait


@of(traits.MOVES)
def test_moves_elements_of_operands(primitive):
    for eqn, operands, results in uses(primitive, "float32"):
        fill = eqn.params.get("fill_value")
        known = set().union(
            *map(bits, operands), bits(np.float32(np.nan if fill is None else fill))
        )
        assert all(bits(y) <= known for y in results)


@of(traits.REARRANGES)
def test_rearranges_all_elements(primitive):
    for _, (x, *_), (y,) in uses(primitive, "float32"):
        assert bits(y) == bits(x) or y.size == 0


@of(traits.IDENTITY)
def test_identity_gives_its_operands(primitive):
    for _, operands, results in uses(primitive, "float32"):
        for x, y in zip(operands, results, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)


@of(traits.BINARY)
def test_binary_is_elementwise(primitive):
    """Of operands in another order it gives the same numbers in that order."""
    for dtype in ("float32", "int32"):
        if not HARNESSES[primitive.name, dtype]:
            continue
        for eqn, (x, y), (result,) in uses(primitive, dtype):
            # JAX 0.12 has scalars beside arrays.
            whole = np.broadcast_arrays(x, y)
            assert whole[0].shape == result.shape
            turned = primitive.bind(*(jnp.asarray(np.flip(a)) for a in whole), **eqn.params)
            # In another place of a vector JAX may round otherwise.
            np.testing.assert_allclose(np.flip(turned), result, rtol=1e-5, atol=1e-37)


@of(traits.COMMUTES)
def test_operands_may_change_places(primitive):
    for eqn, (x, y), (result,) in uses(primitive, "int32"):
        np.testing.assert_array_equal(primitive.bind(y, x, **eqn.params), result)


@of(traits.NEUTRAL)
def test_neutral_operand_leaves_the_other(primitive):
    number, places = traits.NEUTRAL[primitive]
    x = np.array([-np.inf, -2.5, 0, 1e30, np.inf, np.nan], np.float32)
    params = {} if primitive.name != "mul" else uses(primitive, "float32")[0][0].params
    for place in places:
        operands = [x, x]
        operands[place] = np.full_like(x, number)
        np.testing.assert_array_equal(primitive.bind(*operands, **params), x)
    for place in {0, 1} - set(places):
        operands = [x, x]
        operands[place] = np.full_like(x, number)
        assert not np.array_equal(primitive.bind(*operands, **params), x, equal_nan=True)


def in_int32(eqn, operands):
    """The results of an equation of narrow integers, computed in int32."""
    wide = [x.astype(np.int32) if x.dtype in (np.int8, np.uint8) else x for x in operands]
    return list(map(np.asarray, jaxprs.bind(eqn.primitive, wide, eqn.params)))


def integers(which):
    cases = itertools.product(sorted(which, key=str), ("int8", "uint8"))
    return [pytest.param(p, d, id=f"{p}_{d}") for p, d in cases if HARNESSES[p.name, d]]


@pytest.mark.parametrize(("primitive", "dtype"), integers(traits.WRAPS | traits.WIDENS))
def test_wider_integers_give_the_same_bits(primitive, dtype):
    for eqn, operands, results in uses(primitive, dtype):
        for y, wide in zip(results, in_int32(eqn, operands), strict=True):
            np.testing.assert_array_equal(wide.astype(y.dtype), y)


@pytest.mark.parametrize(("primitive", "dtype"), integers(traits.KEEPS_RANGE | traits.MOVES))
def test_results_stay_in_the_range_of_the_operands(primitive, dtype):
    info = np.iinfo(dtype)
    for eqn, operands, results in uses(primitive, dtype):
        for y, wide in zip(results, in_int32(eqn, operands), strict=True):
            assert (
                y.dtype != dtype
                or wide.size == 0
                or info.min <= wide.min() <= wide.max() <= info.max
            )


@of(traits.REDUCES)
def test_reductions_have_axes(primitive):
    (_, dtype), *_ = [key for key in HARNESSES if key[0] == primitive.name]
    assert all("axes" in eqn.params for eqn, *_ in uses(primitive, dtype))


@of(traits.CALLS)
def test_calls_have_a_jaxpr_of_their_operands(primitive):
    for (name, _), harnesses in list(HARNESSES.items()):
        if name != primitive.name:
            continue
        for harness in harnesses[:N_HARNESSES]:
            jaxpr = jax.make_jaxpr(harness.fun)(*harness.make_args()).jaxpr
            for eqn in jaxprs.equations(jaxpr):
                if eqn.primitive is primitive:
                    inner = jaxprs.called(eqn)
                    assert isinstance(inner, jex_core.ClosedJaxpr)
                    assert [v.aval.shape for v in eqn.invars] == [a.shape for a in inner.in_avals]
