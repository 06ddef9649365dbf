"""A converter of your own, and the judge's run of it.

The converter interprets jaxprs and knows a few primitives. It has one bug: it computes tanh of
float16 in bfloat16. The judge runs the cells of three primitives, and finds what is wrong and what
is missing.

    python docs/examples/converter_under_the_judge.py [OPTION OF THE JUDGE ...]
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

import jax
import tensorflow as tf


def _tanh(x):
    if x.dtype == tf.float16:
        return tf.cast(tf.tanh(tf.cast(x, tf.bfloat16)), tf.float16)
    return tf.tanh(x)


RULES = {
    "abs": tf.abs,
    "cos": tf.cos,
    "mul": tf.multiply,
    "neg": tf.negative,
    "sin": tf.sin,
    "tanh": _tanh,
}


def convert(
    fun, *, enable_xla=True, native_serialization=False, polymorphic_shapes=None, with_gradient=True
):
    """`fun` as a function of tensors, if it is of the primitives in RULES alone.

    A converter that the judge can run takes these options. This one has one way for all of them.

    Raises:
      NotImplementedError: a primitive has no rule.
    """

    def converted(*args):
        specs = [jax.ShapeDtypeStruct(x.shape, x.dtype.as_numpy_dtype) for x in map(_tensor, args)]
        closed = jax.make_jaxpr(fun)(*specs)
        results = _run(closed.jaxpr, closed.consts, [_tensor(x) for x in args])
        return jax.tree.unflatten(jax.tree.structure(jax.eval_shape(fun, *specs)), results)

    return converted


def _tensor(value):
    return tf.convert_to_tensor(value)


def _run(jaxpr, consts, args):
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

    def read(atom):
        return values[atom] if atom in values else _tensor(atom.val)

    for eqn in jaxpr.eqns:
        name, operands = eqn.primitive.name, [read(atom) for atom in eqn.invars]
        if name in ("jit", "pjit"):
            inner = eqn.params["jaxpr"]
            results = _run(inner.jaxpr, inner.consts, operands)
        elif name in RULES:
            results = [RULES[name](*operands)]
        else:
            raise NotImplementedError(f"converter_under_the_judge: no rule for {name}")
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def main(*options):
    """Runs the judge; gives its exit status, which is 1 because it finds the bug."""
    root = pathlib.Path(__file__).parents[2]
    sys.path.insert(0, str(root))  # the judge is no part of the wheel
    from harnesses.__main__ import main as judge

    ledger = tempfile.mkdtemp()  # empty: nothing is declared, so each failure is red
    primitives = [f"--primitive={name}" for name in ("abs", "sinh", "tanh")]
    return judge(
        [
            "run",
            f"--impl={pathlib.Path(__file__).stem}",
            f"--ledger={ledger}",
            f"--results={pathlib.Path(ledger, 'results.jsonl')}",
            *primitives,
            "--dtype=float16",
            "--dtype=float32",
            "--mode=eager",
            *options,
        ]
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
