"""What each quirk and each lack of DTensor is there for, on eight devices of a CPU.

Each program runs with its quirk and without it, in processes of their own, as DTensor may end them:

    python -m tests.impl.dtensor_quirks
"""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
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
    """Prints how a process of each program ends, with its quirk or lack and without it, as JSON.

    0 says that DTensor gives JAX's numbers, or refuses what it should. TensorFlow and JAX are
    imported once, and every process is a fork of this one, which has made no device yet.
    """
    fork = multiprocessing.get_context("fork")
    codes = {}
    for name in PROGRAMS:
        processes = [fork.Process(target=_run, args=(name, is_known)) for is_known in (True, False)]
        for process in processes:
            process.start()
            process.join()
        codes[name] = [process.exitcode for process in processes]
    print(json.dumps(codes))


def _run(name: str, is_known: bool) -> None:
    logical_devices.make(8)
    if not is_known:
        target_of = convert.target_of

        def lacking(mesh: Any) -> Any:
            target = target_of(mesh)
            return dataclasses.replace(target, ops=None, quirks=target.quirks.difference([name]))

        convert.target_of = lacking
    sys.exit(0 if _is_right(PROGRAMS[name]) else f"{name}: not as it should be")


def _is_right(program: Program) -> bool:
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    x = dtensor.place(X, program.given, mesh)
    converted = dtensor.convert(
        program.function, mesh, in_shardings=program.given, out_shardings=program.made
    )
    try:
        result = converted(x)
    except jax2tf.UnsupportedPrimitiveError as error:
        print(error, file=sys.stderr)
        return program.is_refused
    return np.allclose(dtensor.values(result), jax.jit(program.function)(X), rtol=1e-5)


if __name__ == "__main__":
    main()
