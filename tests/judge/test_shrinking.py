"""`python -m harnesses shrink`: the smallest program that still goes wrong in the same way."""

from __future__ import annotations

import argparse
import importlib
import io
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend import core
from jax.extend.core import primitives

from harnesses import __main__ as command
from harnesses.engine.converters import Converter
from harnesses.engine.shrinking import cells, guarded, programs, searching
from jax2tf._src import ops
from jax2tf._src.lowering import registry
from tests.impl.fuzzing import campaign, engine_programs

IMPL = f"{__name__}:Planted"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 6)).astype(np.float32)


class Planted(Converter):
    """Runs equations one by one; some are wrong."""

    def convert(self, fun, args):
        tree = jax.tree.structure(jax.eval_shape(fun, *args))

        def run(*args):
            program = programs.program_of(fun, args, inlined=True)
            return jax.tree.unflatten(tree, _run(program.closed, program.args))

        return run


def _run(closed, args):
    jaxpr = closed.jaxpr
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *args], strict=True))
    before = None
    for eqn in jaxpr.eqns:
        x, *others = programs.operands_of(eqn, values)
        if eqn.primitive is primitives.scan_p:
            consts, (carry,), rows = programs.scan_parts(eqn, [x, *others])
            for i in range(eqn.params["length"]):
                carry, *_ = _run(eqn.params["jaxpr"], [*consts, carry, *(r[i] for r in rows)])
            results = [carry]
        else:
            results = _wrong(eqn, before, np.asarray(x), programs.bind(eqn, [x, *others], CHANGE))
        before = eqn.primitive
        values.update(zip(eqn.outvars, map(np.asarray, results), strict=True))
    return [np.asarray(v.val if isinstance(v, core.Literal) else values[v]) for v in jaxpr.outvars]


CHANGE = programs.UNCHANGED


def _wrong(eqn, before, x, results):
    if eqn.primitive is primitives.sort_p:
        raise NotImplementedError(f"no op for sort of {x.dtype}{list(x.shape)}")
    if eqn.primitive is primitives.sin_p and x.dtype == np.float32:
        return [np.where(x > 0.9, 7, results[0])]
    if eqn.primitive is primitives.exp_p and before is primitives.neg_p:
        return [results[0] + 1]
    return results


def sines(x):
    x = jnp.tanh(x * 3) @ jnp.ones((6, 5))
    return jnp.exp(jnp.sin(x) - 9), x.sum()


def loop(x):
    return lax.scan(lambda c, row: (jnp.sin(c + row) * 2, None), jnp.zeros(6), x)[0]


def merged(x):
    return jnp.tanh(jnp.exp(-jnp.cos(x)) * 2)


def sorts(x):
    return jnp.sort(jnp.abs(x) + 1, axis=0) * 2


@pytest.mark.parametrize(
    ("fun", "names", "elements"),
    [
        (sines, ["sin"], 1),
        (loop, ["sin"], 1),
        (merged, ["neg", "exp"], 1),
        (sorts, ["sort"], 1),
    ],
)
def test_the_smallest_program_that_still_fails_is_found_and_runs(fun, names, elements, capsys):
    asked = cells.of_function(fun, (X,), impl=IMPL)
    found, again = asked.shrink(), asked.shrink()
    assert [eqn.primitive.name for eqn in found.program.equations] == names
    assert sum(x.size for x in found.program.args) == elements
    assert all(x == np.round(x) for x in found.program.args)
    text = asked.text(found)
    assert text == asked.text(again), "the same arguments give another program"
    exec(compile(text, "smallest.py", "exec"), {})
    said = "NotImplementedError: no op for sort" if fun is sorts else "direct: mismatch: result"
    assert said in capsys.readouterr().out


def waves(x):
    return jnp.tanh(jnp.concatenate([jnp.sin(x @ jnp.ones((6, 2))), x[:, :2]], 1)) * 2


@pytest.mark.parametrize(("mode", "wrong"), [("gradient_graph", lax.cos_p), ("poly", lax.sin_p)])
def test_gradients_and_open_dimensions_become_smaller(mode, wrong, monkeypatch, capsys):
    def rule(ctx, x):
        # The op of the shapes is right; that of an open dimension, or of the gradient, is not.
        is_right = wrong is lax.sin_p and x.shape.is_fully_defined()
        return ops.raw.Sin(x=x) if is_right else ops.raw.Exp(x=x)

    importlib.import_module("jax2tf._src.lowering.rules")
    rules = registry._RULES[wrong]
    planted = registry.Rule(rule, frozenset(), False, False)
    monkeypatch.setitem(registry._RULES, wrong, dict.fromkeys(rules, planted))
    x = RNG.normal(size=(17, 6)).astype(np.float32)
    with pytest.raises(cells.CellError, match="goes right"):
        cells.of_function(waves, (x,), mode="graph").shrink()
    asked = cells.of_function(waves, (x,), mode=mode)
    found = asked.shrink()
    assert [eqn.primitive.name for eqn in found.program.equations] == ["sin"]
    assert sum(x.size for x in found.program.args) == (17 if mode == "poly" else 1)
    exec(compile(asked.text(found), "smallest.py", "exec"), {})
    assert f"jax2tf, {mode}: mismatch: " in capsys.readouterr().out


def test_the_search_ends_in_time_and_tells_what_it_has():
    asked = cells.of_function(sines, (X,), impl=IMPL)
    found = asked.shrink(seconds=0)
    assert found.is_over
    assert "the time ended the search" in str(found)
    assert len(found.program.equations) > 1


_WATCHED = """
import os, sys, time
from pathlib import Path
from harnesses.engine.shrinking import guarded
asked = []
def judge(fun, args):
    asked.append(fun)
    if fun == 1:
        time.sleep(60)
    if fun == 3:
        os._exit(1)
    return None if fun == 2 else ("run", "Error")
judge = guarded.asking(judge, Path(sys.argv[-1]))
print([judge(fun, []) for fun in range(5)], asked)
"""


def test_a_program_that_hangs_or_dies_is_passed_over(monkeypatch, capfd):
    monkeypatch.setattr(guarded, "_command", lambda options: [sys.executable, "-c", _WATCHED])
    out = io.StringIO()
    assert guarded.run(argparse.Namespace(seconds=60.0, limit=1.0), out) == 0
    right = [("run", "Error"), "stopped", None, "stopped", ("run", "Error")]
    # The last process asks only for what none has answered.
    assert out.getvalue() == f"{right} [4]\n"
    said = capfd.readouterr().err
    assert "took more than 1 s; the search goes on" in said
    assert "ended its process; the search goes on" in said


def test_the_first_program_runs_once():
    asked = []

    def judge(fun, args):
        asked.append(fun)
        return "mismatch"

    searching.shrink(jnp.sin, (X,), judge, seconds=0)
    assert len(asked) == 1


def test_a_fault_of_another_kind_is_not_taken():
    def both(x):
        return jnp.sin(jnp.sort(x)) + jnp.sin(x)

    found = cells.of_function(both, (X,), impl=IMPL).shrink()
    assert [eqn.primitive.name for eqn in found.program.equations] == ["sort"]
    assert found.fault[1] == "NotImplementedError"


def test_plainer_dtypes_and_loops_have_text(capsys):
    def function(x):
        x = lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x.astype(jnp.float16))
        return lax.cond(x.sum() > 0, lambda c: -c, lambda c: c, x)

    program = programs.program_of(function, (X,), inlined=True)

    def judge(fun, args):
        names = {eqn.primitive.name for eqn in fun.equations} if args[0].size else set()
        return "wrong" if {"while", "cond"} <= names else None

    found = searching.shrink(program, program.args, judge)
    assert {x.dtype.name for x in found.program.args} <= {"float32", "int32", "bool"}
    text = cells.of_function(function, (X,), mode="graph").text(found)
    exec(compile(text, "smallest.py", "exec"), {})
    assert capsys.readouterr().out.startswith("JAX: ")


def test_the_command_writes_the_program(tmp_path, capsys):
    path = tmp_path / "smallest.py"
    arguments = ["shrink", f"{__name__}:sines", "--input", "4,6", "--impl", IMPL, "--limit", "0"]
    assert command.main([*arguments, "--into", str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.out.strip() == path.read_text().strip()
    assert "1 of" in captured.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none-cpu-xla-graph"], "no harness 'none'"),
        (["tanh_float32-cpu-xla-gradient"], "the modes eager, graph"),
        (["tanh_float32-cpu-direct-direct", "--impl", IMPL], "goes right"),
        (["nowhere:f", "--input", "2"], "no function 'nowhere:f'"),
        ([f"{__name__}:sines"], "--input 2,8:float32 for each"),
        ([f"{__name__}:sines", "--input", "2,x"], "sizes and a dtype"),
        ([f"{__name__}:sines", "--input", "b,6"], "sizes and a dtype"),
        ([f"{__name__}:sines", "--input", "b,6", "--mode", "poly"], "goes right"),
        (["tanh_float32-cpu-xla-poly"], "goes right"),
        ([f"{__name__}:sines", "--input", "2", "--mode", "none"], "got 'no_xla' and 'none'"),
        ([f"{__name__}:sines", "--input", "2,7", "--impl", IMPL], "JAX itself refuses it"),
    ],
)
def test_what_cannot_be_made_smaller_is_refused(arguments, said, capsys):
    assert command.main(["shrink", *arguments, "--limit", "0"]) == 2
    assert said in " ".join(capsys.readouterr().out.split())


def test_the_fuzzers_report_the_smallest_program(monkeypatch):
    of_function = cells.of_function
    monkeypatch.setattr(
        cells, "of_function", lambda fun, args, **_: of_function(fun, args, impl=IMPL)
    )
    sine = engine_programs.Chosen("sine", (0,), "f", lambda x: jnp.sin(jnp.abs(x) + 1))
    drawn = engine_programs.Program("graph", 1, "f", ((2, 3),), (sine,), True)
    monkeypatch.setattr(campaign, "program", lambda kind, number: drawn)
    monkeypatch.setattr(engine_programs.Program, "check", lambda self: 1 / 0)
    row = campaign.row("graph", 1)
    assert row["error"].startswith("ZeroDivisionError")
    assert "primitives.sin_p.bind" in row["smallest"]
