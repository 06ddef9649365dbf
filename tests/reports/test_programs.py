"""The programs themselves, in JAX alone: what they return, and that they stay what they were."""

import jax
import numpy as np
import pytest

from reports.benchmarks.programs import Program, programs
from reports.benchmarks.workloads import workloads

SMALL = {program.name: program for program in programs("small") + workloads("small")}
SHAPES = {
    "mlp": (32, 10),
    "resnet18": (2, 10),
    "transformer": (2, 8, 50),
    "transformer, no inner jit": (2, 8, 50),
    "random-heavy": (64,),
    "lstm": (16, 10),
    "resnet50": (2, 10),
    "transformer, 48 layers": (2, 8, 50),
    "decoding": (4, 1000),
    "mixture of experts": (256, 8),
    "ODE solve": (4, 6),
    "embedding bags": (512, 64),
    "shallow water": (3, 16, 16),
    "sort, 1e3": (1000,),
    "cumsum, 1e3": (1000,),
    "top_k, 1e3": (64,),
    "solve, 16": (16,),
    "cholesky, 16": (16, 16),
    "eigh, 16": (2, 16),
}


def test_every_program_is_listed_in_both_sizes():
    assert set(SMALL) == set(SHAPES)
    names = [p.name for p in programs("full") + workloads("full")]
    assert names[: len(programs())] == [p.name for p in programs("small")]
    assert len(set(names)) == len(names)
    kinds = [{name.partition(", ")[0] for name in some} for some in (names, SMALL)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("program", SMALL.values(), ids=SMALL)
def test_a_program_returns_finite_float32_of_its_shape(program: Program):
    out = jax.jit(program.fun)(*program.make_args())
    assert out.shape == SHAPES[program.name]
    assert out.dtype == np.float32
    assert np.isfinite(out).all()
    assert np.std(out) > 0.01


def test_arguments_are_the_same_each_time():
    for program in SMALL.values():
        jax.tree.map(np.testing.assert_array_equal, program.make_args(), program.make_args())


def test_the_two_transformers_compute_the_same():
    jitted, written_out = SMALL["transformer"], SMALL["transformer, no inner jit"]
    args = jitted.make_args()
    np.testing.assert_allclose(
        jax.jit(jitted.fun)(*args), jax.jit(written_out.fun)(*args), rtol=1e-5, atol=1e-5
    )


def test_the_transformer_calls_one_inner_jaxpr_twelve_times():
    program = SMALL["transformer"]
    equations = jax.jit(program.fun).trace(*program.make_args()).jaxpr.eqns
    layers = [e.params["jaxpr"] for e in equations if e.params.get("name") == "decoder_layer"]
    assert len(layers) == 12
    assert len(set(map(id, layers))) == 1


def test_the_transformer_does_not_look_ahead():
    program = SMALL["transformer"]
    params, tokens = program.make_args()
    changed = tokens.copy()
    changed[:, -1] = (changed[:, -1] + 1) % 50
    before, after = (np.asarray(jax.jit(program.fun)(params, t)) for t in (tokens, changed))
    np.testing.assert_array_equal(before[:, :-1], after[:, :-1])
    assert (before[:, -1] != after[:, -1]).any()
