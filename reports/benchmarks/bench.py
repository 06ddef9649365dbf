"""`python -m reports bench`: the converter beside jax.jit, into reports/tables/benchmarks.md.

Wall-clock times on a shared machine drift, so nothing here is compared with a number from another
moment: contenders run one after the other in one process, round after round in rotating order, and
what is reported is the ratio to jax.jit of the same round, as median and quartiles over the rounds.

Three questions a program, for plain jax.jit and for the converted function in each mode:

- conversion: from the Python function to a graph (jax.jit: to StableHLO), all caches empty;
- first call: from the Python function to the first result, all caches empty;
- steady: a call when everything is there.

And what the same call costs beside other graphs of the same program: as StableHLO in one op, which
is what TensorFlow's XLA makes of JAX's own program, without XLA ops, and as one writes it in
TensorFlow by hand. And what a step of training costs, whose gradient a tape takes. And what
programs of many small ops cost, which XLA compiles in part inside of a graph.

A conversion has a limit: JAX's trace, and a tf.function that does nothing with the same arguments.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax.extend import core as jex_core
from rich.console import Console
from rich.progress import Progress

from harnesses.cell.names import DEFAULT_IMPLEMENTATION, LOWERINGS
from harnesses.engine.adapter import Adapter
from harnesses.engine.graphs import op_types
from jax2tf._src.lowering import pipeline
from reports import rendering
from reports.benchmarks import timing
from reports.benchmarks.files import benchmark_files
from reports.benchmarks.programs import Program, Size, programs
from reports.benchmarks.small_ops import small_ops
from reports.benchmarks.timing import Call, Paired, cold, fresh, paired, repeated
from reports.benchmarks.workloads import workloads

MODES = ("eager", "graph", "compiled")
# Two float32 programs that agree to this compute the same; the tests look closer than that.
AGREEMENT = 1e-3
# Programs that are trained: the part "gradients" measures these.
DIFFERENTIATED = ("mlp", "resnet18", "transformer", "lstm")
# Where a table is read, nobody knows the folders of the machine that made it.
CHECKOUT = Path(__file__).parents[2]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--impl", default=DEFAULT_IMPLEMENTATION, help="module with a convert")
    parser.add_argument("--lowering", default="xla", choices=LOWERINGS)
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu", "tpu"))
    parser.add_argument("--quick", action="store_true", help="small programs, two rounds")
    parser.add_argument("--program", action="append", metavar="NAME", help="only this program")
    parser.add_argument(
        "--part", action="append", choices=PARTS, help=f"measure only this anew: {', '.join(PARTS)}"
    )
    parser.add_argument(
        "--into", type=Path, default=rendering.TABLES, help="the folder of the table"
    )


def main(options: argparse.Namespace, console: Console) -> int:
    settings = QUICK if options.quick else FULL
    size: Size = "small" if options.quick else "full"
    chosen = every = programs(size) + workloads(size) + small_ops(size)
    if options.program:
        chosen = [program for program in chosen if program.name in options.program]
    parts = {part: measure for part, measure in PARTS.items() if part in (options.part or PARTS)}
    data = rendering.read_data("benchmarks", options.into)
    section = data.get(options.device, {})
    if not section and "jax" not in parts:
        words = f"{options.into} has no figures of {options.device} to add to: leave out --part"
        console.print(words, style="red", soft_wrap=True)
        return 2
    adapter = Adapter(options.impl)
    measured: dict[str, list[Any]] = {part: [] for part in parts}
    with (
        Progress(console=console) as progress,
        jax.default_device(jax.devices(options.device)[0]),
        tf.device(f"/{options.device.upper()}:0"),
    ):
        task = progress.add_task("measuring", total=len(chosen) * len(parts))
        for program in chosen:
            progress.update(task, description=program.name)
            for part, measure_part in parts.items():
                if program.has_small_ops != (part == "small_ops"):
                    progress.advance(task)
                    continue
                measurement = measure_part(program, adapter, options.lowering, settings)
                if measurement is not None:
                    measured[part].append(measurement)
                progress.advance(task)
    refused = [m for measurements in measured.values() for m in measurements if m.refused]
    for measurement in refused:
        words = f"{measurement.program}: {measurement.refused}"
        console.print(words, style="red", markup=False, soft_wrap=True)
    for part, measurements in measured.items():
        figures = _circumstances(options) | asdict(settings)
        of = sum(program.has_small_ops == (part == "small_ops") for program in every)
        figures |= {"programs": [asdict(m) for m in measurements], "of": of}
        section |= figures if part == "jax" else {part: figures}
    for path in rendering.write(benchmark_files(data | {options.device: section}), options.into):
        console.print(f"wrote {path}", soft_wrap=True)
    return 1 if refused else 0


# --- What is measured -----------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """How often each thing is measured."""

    cold_rounds: int
    steady_rounds: int


FULL = Settings(cold_rounds=5, steady_rounds=15)
QUICK = Settings(cold_rounds=2, steady_rounds=2)


@dataclass(frozen=True)
class Measurement:
    """What the table says about a program; `refused` instead of numbers if it did not convert."""

    program: str
    equations: int
    distinct_equations: int
    nodes: int | None = None
    conversion: Paired | None = None
    first_call: Paired | None = None
    steady: Paired | None = None
    refused: str | None = None


@dataclass(frozen=True)
class Variants:
    """What the table says about graphs of one program, by name, beside the first of them.

    `refused` instead of numbers if one of them did not convert; `conversion` only where it is
    measured.
    """

    program: str
    nodes: Mapping[str, int] | None = None
    conversion: Paired | None = None
    steady: Paired | None = None
    refused: str | None = None


def measure(program: Program, adapter: Adapter, lowering: str, settings: Settings) -> Measurement:
    """Measures one program; an implementation may fail in any way, and the table says how."""
    convert = partial(adapter.convert, lowering=lowering, with_gradient=True)
    arrays = jax.device_put(program.make_args())
    tensors = jax.tree.map(lambda a: tf.constant(np.asarray(a)), arrays)
    jaxpr = jax.jit(program.fun).trace(*arrays).jaxpr
    size = (program.name, count_equations(jaxpr), count_equations(jaxpr, distinct=True))

    def contenders() -> dict[str, Call]:
        """jax.jit and each mode, all anew: nothing of it is traced, lowered or compiled."""
        jitted = jax.jit(fresh(program.fun))
        made = {
            "eager": convert(fresh(program.fun)),
            "graph": tf.function(convert(fresh(program.fun)), autograph=False),
            "compiled": tf.function(convert(fresh(program.fun)), autograph=False, jit_compile=True),
        }
        calls = {mode: partial(_call_and_wait, fun, tensors) for mode, fun in made.items()}
        return {"jax": lambda: jax.block_until_ready(jitted(*arrays))} | calls

    def first_call(mode: str) -> float:
        return cold(contenders()[mode])

    def to_graph() -> Any:
        fun = tf.function(convert(fresh(program.fun)), autograph=False)
        return fun.get_concrete_function(*tensors)

    def at_least() -> None:
        jax.jit(fresh(program.fun)).trace(*arrays)
        _trace_nothing(tensors, results=1)

    try:
        nodes = count_nodes(to_graph().graph)
        steady = contenders()
        _check_agreement(steady)
    except Exception as problem:
        return Measurement(*size, refused=_words(problem))
    return Measurement(
        *size,
        nodes=nodes,
        conversion=paired(
            settings.cold_rounds,
            {
                "jax": lambda: cold(partial(_to_stablehlo, program, arrays)),
                "graph": lambda: cold(to_graph),
                "limit": lambda: cold(at_least),
            },
        ),
        first_call=paired(
            settings.cold_rounds,
            {mode: partial(first_call, mode) for mode in ("jax", *MODES)},
        ),
        steady=paired(
            settings.steady_rounds, {name: repeated(call) for name, call in steady.items()}
        ),
    )


def measure_without_xla(
    program: Program, adapter: Adapter, lowering: str, settings: Settings
) -> Variants:
    """Measures one program's graphs in the lowerings "xla" and "no_xla", whatever `lowering`."""
    del lowering

    def to_graph(lowering: str) -> Any:
        fun = adapter.convert(fresh(program.fun), lowering, with_gradient=True)
        specs = jax.tree.map(tf.TensorSpec.from_tensor, _tensors(program))
        return tf.function(fun, autograph=False).get_concrete_function(*specs)

    graphs = {name: partial(to_graph, name) for name in ("xla", "no_xla")}
    return _measure_variants(program, graphs, settings)


def measure_native(
    program: Program, adapter: Adapter, lowering: str, settings: Settings
) -> Variants | None:
    """Measures one program, compiled, beside its StableHLO in one op ("native")."""
    if program.has_custom_calls:
        return None

    def to_graph(lowering: str) -> Any:
        fun = adapter.convert(fresh(program.fun), lowering, with_gradient=True)
        specs = jax.tree.map(tf.TensorSpec.from_tensor, _tensors(program))
        graph = tf.function(fun, autograph=False, jit_compile=True)
        return graph.get_concrete_function(*specs)

    graphs = {name: partial(to_graph, name) for name in ("native", lowering)}
    return _measure_variants(program, graphs, settings)


def measure_small_ops(
    program: Program, adapter: Adapter, lowering: str, settings: Settings
) -> Variants:
    """Measures one program beside jax.jit, with compiled runs ("graph") and without ("kernels")."""
    tensors = _tensors(program)
    jitted, arrays = jax.jit(program.fun), jax.device_put(program.make_args())

    def to_graph(jit_compile: bool | None = None) -> Any:
        fun = adapter.convert(fresh(program.fun), lowering, with_gradient=True)
        function = tf.function(fun, autograph=False, jit_compile=jit_compile)
        return function.get_concrete_function(*tensors)

    def of_kernels() -> Any:
        with pipeline.without_pass("compiled runs"):
            return to_graph()

    graphs: dict[str, Call] = {
        "kernels": of_kernels,
        "graph": to_graph,
        "compiled": partial(to_graph, jit_compile=True),
    }
    by_jax = {"jax": lambda: jax.block_until_ready(jitted(*arrays))}
    return _measure_variants(program, graphs, settings, by_jax)


def measure_by_hand(
    program: Program, adapter: Adapter, lowering: str, settings: Settings
) -> Variants | None:
    """Measures one program beside jax.jit and beside what one writes in TensorFlow by hand."""
    if program.by_hand is None:
        return None
    arrays = jax.device_put(program.make_args())
    tensors = _tensors(program)
    jitted = jax.jit(program.fun)

    def to_graph(fun: Callable[..., Any]) -> Any:
        return tf.function(fresh(fun), autograph=False).get_concrete_function(*tensors)

    def converted() -> Any:
        return to_graph(adapter.convert(fresh(program.fun), lowering, with_gradient=True))

    graphs: dict[str, Call] = {
        "by hand": partial(to_graph, program.by_hand),
        "graph": converted,
    }
    by_jax = {"jax": lambda: jax.block_until_ready(jitted(*arrays))}
    measured = _measure_variants(program, graphs, settings, by_jax)
    if measured.refused:
        return measured
    conversions: dict[str, Call] = {"jax": partial(_to_stablehlo, program, arrays), **graphs}
    cold_ones = {name: partial(cold, convert) for name, convert in conversions.items()}
    return replace(measured, conversion=paired(settings.cold_rounds, cold_ones))


def measure_polymorphic(
    program: Program, adapter: Adapter, lowering: str, settings: Settings
) -> Variants | None:
    """Measures one program with a batch of unknown size beside the same with a known one."""
    if not program.has_batch:
        return None
    *known, batched = jax.tree.map(tf.TensorSpec.from_tensor, _tensors(program))
    unknown = tf.TensorSpec([None, *batched.shape[1:]], batched.dtype)
    shapes = (*[None] * len(known), "b, ...")

    def to_graph(last: tf.TensorSpec, polymorphic_shapes: Any, **options: Any) -> Any:
        fun = adapter.convert(
            fresh(program.fun),
            lowering,
            with_gradient=True,
            polymorphic_shapes=polymorphic_shapes,
        )
        graph = tf.function(fun, autograph=False, **options)
        return graph.get_concrete_function(*known, last)

    graphs = {
        "static": partial(to_graph, batched, None),
        "polymorphic": partial(to_graph, unknown, shapes),
    }
    compiled = {name: partial(graph, jit_compile=True) for name, graph in graphs.items()}
    measured = _measure_variants(program, compiled, settings)
    if measured.refused:
        return measured
    conversions = {name: partial(cold, graph) for name, graph in graphs.items()}
    return replace(measured, conversion=paired(settings.cold_rounds, conversions))


def measure_gradients(
    program: Program, adapter: Adapter, lowering: str, settings: Settings
) -> Variants | None:
    """Measures a step of training beside JAX's: a loss and its gradient by all float arguments."""
    if program.name not in DIFFERENTIATED:
        return None
    args = program.make_args()
    leaves, tree = jax.tree.flatten(args)
    inexact = [i for i, x in enumerate(leaves) if np.issubdtype(x.dtype, np.inexact)]

    def loss(sources: Sequence[Any], others: Sequence[Any]) -> jax.Array:
        given = list(others)
        for i, x in zip(inexact, sources, strict=True):
            given[i] = x
        return jnp.sum(jnp.square(program.fun(*jax.tree.unflatten(tree, given))))

    arrays = jax.device_put(leaves)
    sources = [arrays[i] for i in inexact]

    def by_jax() -> Any:
        return jax.jit(jax.value_and_grad(fresh(loss)))

    def by_tape(**options: Any) -> Any:
        converted = adapter.convert(fresh(program.fun), lowering, with_gradient=True)

        def step(*given: tf.Tensor) -> list[tf.Tensor]:
            sources = [given[i] for i in inexact]
            with tf.GradientTape() as tape:
                tape.watch(sources)
                result = converted(*jax.tree.unflatten(tree, given))
                value = tf.reduce_sum(tf.square(result))
            return [value, *tape.gradient(value, sources)]

        return tf.function(step, autograph=False, **options)

    def at_least() -> None:
        by_jax().trace(sources, arrays)
        _trace_nothing(specs, results=1 + len(sources))

    specs = [tf.TensorSpec(x.shape, x.dtype) for x in leaves]
    tensors = tuple(map(tf.constant, leaves))
    conversions = {
        "trace": lambda: by_jax().trace(sources, arrays),
        "jax": lambda: by_jax().trace(sources, arrays).lower(),
        "graph": lambda: by_tape().get_concrete_function(*specs),
        "limit": at_least,
    }
    try:
        jitted = by_jax()
        made = {
            "graph": by_tape().get_concrete_function(*specs),
            "compiled": by_tape(jit_compile=True).get_concrete_function(*specs),
        }
        calls = {name: partial(_call_and_wait, fun, tensors) for name, fun in made.items()}
        value, gradients = jitted(sources, arrays)
        for name, call in calls.items():
            for actual, expected in zip(call(), [value, *gradients], strict=True):
                size = max(1.0, float(jnp.abs(expected).max()))
                _check_close(actual / size, expected / size, name)
    except Exception as problem:
        return Variants(program.name, refused=_words(problem))
    steady: dict[str, Call] = {"jax": lambda: jax.block_until_ready(jitted(sources, arrays))}
    steady |= calls
    return Variants(
        program.name,
        {"graph": count_nodes(made["graph"].graph)},
        conversion=paired(
            settings.cold_rounds, {name: partial(cold, f) for name, f in conversions.items()}
        ),
        steady=paired(
            settings.steady_rounds, {name: repeated(call) for name, call in steady.items()}
        ),
    )


def _measure_variants(
    program: Program,
    graphs: Mapping[str, Callable[[], Any]],
    settings: Settings,
    beside: Mapping[str, Call] | None = None,
) -> Variants:
    """Nodes and steady calls of concrete functions, which have to give what jax.jit gives.

    The calls of `beside` come first: what the others are related to.
    """
    tensors = _tensors(program)
    try:
        made = {name: graph() for name, graph in graphs.items()}
        nodes = {name: count_nodes(function.graph) for name, function in made.items()}
        calls = {name: partial(_call_and_wait, fun, tensors) for name, fun in made.items()}
        expected = jax.jit(program.fun)(*program.make_args())
        for name, call in calls.items():
            _check_close(call(), expected, name)
    except Exception as problem:
        return Variants(program.name, refused=_words(problem))
    contenders: dict[str, Call] = {**(beside or {}), **calls}
    measurements = {name: repeated(call) for name, call in contenders.items()}
    return Variants(program.name, nodes, steady=paired(settings.steady_rounds, measurements))


def _to_stablehlo(program: Program, arrays: Sequence[Any]) -> Any:
    return jax.jit(fresh(program.fun)).trace(*arrays).lower()


def _tensors(program: Program) -> Any:
    return jax.tree.map(tf.constant, program.make_args())


# What there is to measure, each with circumstances of its own.
PARTS = {
    "jax": measure,
    "native": measure_native,
    "no_xla": measure_without_xla,
    "by_hand": measure_by_hand,
    "polymorphic": measure_polymorphic,
    "gradients": measure_gradients,
    "small_ops": measure_small_ops,
}


def _trace_nothing(tensors: Any, results: int) -> None:
    """Makes a graph of a function that gives back so many of its arguments."""

    def first(*args: Any) -> list[tf.Tensor]:
        return jax.tree.leaves(args)[:results]

    tf.function(first, autograph=False).get_concrete_function(*tensors)


def _words(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}".replace(f"{CHECKOUT}/", "")


def _call_and_wait(fun: Callable[..., Any], tensors: tuple[Any, ...]) -> Any:
    """The result, once the device has computed it."""
    result = fun(*tensors)
    tf.test.experimental.sync_devices()
    return result


def _check_agreement(calls: Mapping[str, Call]) -> None:
    for mode in MODES:
        _check_close(calls[mode](), calls["jax"](), f"mode {mode}")


def _check_close(actual: Any, expected: Any, where: str) -> None:
    pairs = zip(tf.nest.flatten(actual), jax.tree.leaves(expected), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(
            one.numpy(), np.asarray(other), AGREEMENT, AGREEMENT, err_msg=f"in {where}"
        )


# --- Sizes ----------------------------------------------------------------------------------


def count_equations(jaxpr: jex_core.ClosedJaxpr, *, distinct: bool = False) -> int:
    """Equations of a jaxpr and of those in its params; `distinct`: each inner jaxpr once."""
    seen: set[int] = set()
    total = 0
    pending = [jaxpr.jaxpr]
    while pending:
        current = pending.pop()
        if distinct and id(current) in seen:
            continue
        seen.add(id(current))
        total += len(current.eqns)
        pending.extend(inner for eqn in current.eqns for inner in _inner_jaxprs(eqn))
    return total


def _inner_jaxprs(eqn: jex_core.JaxprEqn) -> Iterator[jex_core.Jaxpr]:
    kinds = (jex_core.ClosedJaxpr, jex_core.Jaxpr)
    for param in jax.tree.leaves(list(eqn.params.values()), is_leaf=lambda p: isinstance(p, kinds)):
        if isinstance(param, jex_core.ClosedJaxpr):
            yield param.jaxpr
        elif isinstance(param, jex_core.Jaxpr):
            yield param


def count_nodes(graph: tf.Graph) -> int:
    """Nodes of a graph and of its function library, each function counted once."""
    return op_types(graph).total()


def _circumstances(options: argparse.Namespace) -> dict[str, Any]:
    return timing.circumstances(options.impl) | {
        "lowering": options.lowering,
        "machine": platform.machine(),
        "quick": options.quick,
    }
