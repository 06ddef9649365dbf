"""Harnesses under a transformation of JAX, each in a mode of its own that a run has to ask for.

    under_jit        called through jax.jit
    under_vmap       its vmap over three examples, stacked along the first axis
    under_in_axes    the same, stacked along the last axis, results too
    under_jvp        its jvp
    under_vjp        its vjp, transposed by JAX
    under_jacobian   its jacobian
    under_remat      the gradient of jax.checkpoint of it; its value where it has no gradient
    under_scan       the body of a lax.scan over three examples
    under_cond       the branch of a lax.cond that is taken, at run time

The transformed function is a harness like another: a converter makes of it what it makes of a
user's program, and JAX's own result for it is the law. In TensorFlow it runs as a graph. Where JAX
does not transform a harness so, the cell is inapplicable.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.cell.cells import Cell
from harnesses.cell.modes import MODES
from harnesses.cell.names import DIRECT
from harnesses.cell.outcomes import INAPPLICABLE
from harnesses.cell.rows import Row
from harnesses.engine.converters import is_converter
from harnesses.engine.vjps import GRADIENT_ULPS, vjp_of
from harnesses.harness import CONVERT, Harness

_EXAMPLES = 3
# Of a jacobian, which has the size of the results times that of the arguments.
_LARGEST = 1 << 18


class TransformedJudge:
    """Runs cells in these modes, through the judge of the plain ones."""

    def __init__(self, impl: str):
        direct = is_converter(impl)
        self._judge = MODES[CONVERT, DIRECT if direct else "graph"].judge_class()(impl)

    def run(self, cell: Cell) -> Row:
        """As `Judge.run`."""
        device = jax.default_device(jax.devices(cell.device)[0])
        try:
            with jax.enable_x64(cell.harness.x64), device:
                asked = TRANSFORMATIONS[cell.mode](cell.harness)
        except Exception as error:  # whatever JAX, or the harness, raises where it is traced
            return _inapplicable(str(error))
        # The judge keeps JAX's result of the last harness by its name.
        asked = _changed(asked, name=f"{asked.name} {cell.mode}")
        mode = DIRECT if cell.lowering == DIRECT else "graph"
        row = self._judge.run(Cell(asked, cell.device, cell.lowering, mode))
        return _inapplicable(row["message"]) if row.get("phase") == "trace" else row


class _TransformedHarness(Harness):
    """A harness whose `args` are the arrays themselves."""

    def make_args(self, example: int = 0) -> tuple:
        return self.args


def _jit(harness: Harness) -> Harness:
    return _transformed(harness, lambda *args: jax.jit(harness.fun)(*args), harness.make_args())


def _vmap(harness: Harness, axis: int = 0) -> Harness:
    function = jax.vmap(harness.fun, in_axes=axis, out_axes=axis)
    return _of_examples(harness, function, _stacked(harness, axis), axis)


def _scan(harness: Harness) -> Harness:
    def scanned(*xs: Any) -> Any:
        return lax.scan(lambda _, x: ((), harness.fun(*x)), (), xs)[1]

    return _of_examples(harness, scanned, _stacked(harness, 0))


def _cond(harness: Harness) -> Harness:
    def zeros(*args: Any) -> Any:
        return jax.tree.map(jnp.zeros_like, harness.fun(*args))

    def branching(is_taken: Any, *args: Any) -> Any:
        return lax.cond(is_taken, harness.fun, zeros, *args)

    asked = _transformed(harness, branching, (np.array(True), *harness.make_args()))
    if harness.check is None:
        return asked
    check = harness.check
    return _changed(asked, check=lambda args, *results: check(args[1:], *results))


def _jvp(harness: Harness) -> Harness:
    vjp = vjp_of(harness, harness.make_args())

    def derivative(primals: Any, others: Any, tangents: Any) -> Any:
        return jax.jvp(vjp.of_primals(others), tuple(primals), tuple(tangents))

    return _derivative(harness, derivative, (vjp.primals, vjp.others, vjp.tangents()))


def _vjp(harness: Harness) -> Harness:
    vjp = vjp_of(harness, harness.make_args())
    return _derivative(harness, vjp.gradients, (vjp.primals, vjp.others, vjp.cotangents))


def _jacobian(harness: Harness) -> Harness:
    vjp = vjp_of(harness, harness.make_args())
    size = sum(x.size for x in vjp.primals) * sum(x.size for x in vjp.cotangents)
    if size > _LARGEST:
        raise ValueError(f"its jacobian has {size} elements, more than {_LARGEST}")
    holomorphic = all(jnp.iscomplexobj(x) for x in vjp.primals)

    def jacobian(primals: Any, others: Any) -> Any:
        arguments = tuple(range(len(primals)))
        of_primals = vjp.of_primals(others)
        return jax.jacobian(of_primals, arguments, holomorphic=holomorphic)(*primals)

    return _derivative(harness, jacobian, (vjp.primals, vjp.others))


def _remat(harness: Harness) -> Harness:
    checkpointed = _transformed(harness, jax.checkpoint(harness.fun), harness.make_args())
    try:
        return _vjp(checkpointed)
    except (TypeError, ValueError):  # it has no gradient
        return checkpointed


TRANSFORMATIONS: Mapping[str, Callable[[Harness], Harness]] = {
    "under_jit": _jit,
    "under_vmap": _vmap,
    "under_in_axes": functools.partial(_vmap, axis=-1),
    "under_jvp": _jvp,
    "under_vjp": _vjp,
    "under_jacobian": _jacobian,
    "under_remat": _remat,
    "under_scan": _scan,
    "under_cond": _cond,
}


def _stacked(harness: Harness, axis: int) -> tuple:
    examples = [harness.make_args(example) for example in range(_EXAMPLES)]
    return jax.tree.map(lambda *leaves: np.stack(leaves, axis), *examples)


def _of_examples(
    harness: Harness, function: Callable[..., Any], args: tuple, axis: int = 0
) -> Harness:
    """The harness of a function whose arguments and results are stacked."""
    asked = _transformed(harness, function, args)
    if harness.check is None:
        return asked
    check = harness.check

    def of_each(*trees: Any) -> float:
        examples = (
            jax.tree.map(lambda leaf, i=i: np.take(leaf, i, axis), trees) for i in range(_EXAMPLES)
        )
        return max(check(*example) for example in examples)

    return _changed(asked, check=of_each)


def _derivative(harness: Harness, function: Callable[..., Any], args: tuple) -> Harness:
    """The harness of a derivative, whose rounding errors add up."""
    tags = harness.tags | {"any_zero_sign"}
    asked = _transformed(harness, function, args)
    return _changed(asked, scale="array", ulps=GRADIENT_ULPS, tags=tags)


def _transformed(harness: Harness, function: Callable[..., Any], args: tuple) -> Harness:
    return _changed(harness, fun=function, args=args)


def _changed(harness: Harness, **changes: Any) -> Harness:
    fields = {f.name: getattr(harness, f.name) for f in dataclasses.fields(harness)}
    return _TransformedHarness(**fields | changes)


def _inapplicable(message: str) -> Row:
    return {"outcome": INAPPLICABLE, "message": message[:1000]}
