"""What each quirk and each lack of DTensor is there for, on eight devices of a CPU.

test_dtensor.py runs each program without its quirk in a process of its own, as DTensor may end it:

    python -m tests.impl.dtensor_quirks QUIRK_OR_OP ... [--without]
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec

import jax2tf
from jax2tf import dtensor
from jax2tf._src.dtensor import convert
from jax2tf._src.targets.quirks import Quirk
from tests.impl import logical_devices

P = PartitionSpec
X = np.arange(64, dtype=np.float32).reshape(8, 8)


@dataclasses.dataclass(frozen=True)
class Program:
    """A function of X, how X and the result lie on the mesh, and whether a quirk refuses it."""

    function: Callable[[jax.Array], Any]
    given: PartitionSpec
    made: PartitionSpec | None = None
    is_refused: bool = False


IN_ROWS = P("data")
# By quirk, or by an op that DTensor lacks.
PROGRAMS: dict[str, Program] = {
    Quirk.NO_AXES_IN_SLICES: Program(jax2tf.call_tf(lambda x: x[None]), IN_ROWS, is_refused=True),
    Quirk.NO_CONCAT_OF_PARTS: Program(lambda x: jnp.concatenate([x, x], 0), IN_ROWS, IN_ROWS),
    "ReverseV2": Program(lambda x: lax.rev(x, (0,)), IN_ROWS),
    Quirk.NO_SCALAR_CHOICE: Program(lambda x: jnp.where(x[0, 0] > 0, x, -x), IN_ROWS),
    "TensorListReserve": Program(
        lambda x: lax.scan(lambda c, y: (c + y, c * y), x[0] * 0, x)[1], IN_ROWS
    ),
    Quirk.NO_UNPACK_OF_PARTS: Program(lambda x: jnp.unstack(x, axis=0)[1], IN_ROWS, IN_ROWS),
    Quirk.PARTS_MOVE_AT_IDENTITY: Program(lambda x: x.T, P(None, None), IN_ROWS),
}


def main() -> None:
    """Exits with 0 if DTensor gives JAX's numbers, or refuses what it should."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="+", choices=PROGRAMS)
    parser.add_argument("--without", action="store_true")
    options = parser.parse_args()
    logical_devices.make(8)
    if options.without:
        target_of = convert.target_of

        def lacking(mesh: Any) -> Any:
            target = target_of(mesh)
            quirks = target.quirks.difference(options.names)
            return dataclasses.replace(target, ops=None, quirks=quirks)

        convert.target_of = lacking
    wrong = [name for name in options.names if not _is_right(PROGRAMS[name])]
    sys.exit(f"not as they should be: {', '.join(wrong)}" if wrong else 0)


def _is_right(program: Program) -> bool:
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    x = dtensor.place(X, program.given, mesh)
    converted = dtensor.convert(
        program.function, mesh, in_shardings=program.given, out_shardings=program.made
    )
    try:
        result = converted(x)
    except jax2tf.UnsupportedPrimitiveError as error:
        print(error)
        return program.is_refused
    return np.allclose(dtensor.values(result), jax.jit(program.function)(X), rtol=1e-5)


if __name__ == "__main__":
    main()
