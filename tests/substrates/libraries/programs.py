"""Programs of a library, run on TensorFlow and on substrates, and compared.

A program is a function of the module `tf`, of the library and of arrays. Each runs where it says:
on NumPy, on JAX, under jax.jit, its gradient under jax.grad and by a tape, a batch of two under
jax.vmap, and some in float32. TensorFlow's own results are made first and kept in a file, by a
process of its own: the process of a substrate never imports TensorFlow.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import importlib.metadata
import json
import pathlib
import pickle
import platform
import re
import signal
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import tf_substrates
from harnesses.cell import origin
from tests.substrates.libraries.differences import Difference, judged

# Where a program runs; "jvp" stands for "grad" in a program that has a loop of unknown length.
NUMPY, JAX, JIT, GRAD, VMAP = "numpy", "jax", "jit", "grad", "vmap"
# The gradient that a tape finds on JAX, with nothing compiled.
TAPE = "tape"
FLOAT32 = " float32"
PLACES = (NUMPY, NUMPY + FLOAT32, JAX, JIT, JIT + FLOAT32, GRAD, TAPE, VMAP)


@dataclasses.dataclass(frozen=True)
class Program:
    """A use of a library.

    Attributes:
      name: the public name that it is about, without the library's own, and after a colon what is
        particular.
      function: of `tf`, the library and the arrays; its result is a structure of tensors.
      arrays: float64 arrays, which `jax.grad` and `jax.vmap` are over; or a function of TensorFlow
        and the library as it is on it, which makes them.
      places: where it runs, of those above.
      tolerance: relative to the larger of 1 and the value, in float64; in float32 `wide`.
      many: samples along the first axis, of the arrays too. Where a sampler is another algorithm
        than TensorFlow's, so that `function` differs, their means are compared in its place.
      in_graph: whether TensorFlow's gradient is taken inside tf.function, where a library computes
        with NumPy what TensorFlow knows eagerly, and no gradient passes through that.
    """

    name: str
    function: Callable[..., Any]
    arrays: tuple[Any, ...] | Callable[[Any, Any], Sequence[Any]] = ()
    places: tuple[str, ...] = (NUMPY, JAX, JIT)
    tolerance: float = 1e-10
    wide: float = 1e-5
    many: Callable[..., Any] | None = None
    in_graph: bool = False

    @property
    def area(self) -> str:
        return self.name.partition(".")[0]


@dataclasses.dataclass(frozen=True)
class Suite:
    """The programs of a library.

    Attributes:
      library: the name of the package.
      packages: the packages that are rewritten, it and those that it depends on.
      needs: what to install to repeat it.
      names: the public functions and classes that are asked about, of the library as it is on
        TensorFlow; empty where the programs say all.
      differences: where a program is known not to give TensorFlow's result, and why.
    """

    library: str
    programs: Sequence[Program]
    packages: tuple[str, ...] = ()
    needs: str = ""
    names: Callable[[Any], Sequence[str]] = lambda library: ()
    differences: Sequence[Difference] = ()


def adder(
    programs: list[Program], places: tuple[str, ...], dtype: Any = np.float64
) -> Callable[..., Callable]:
    """A decorator that adds a function to `programs`, with its name and arrays."""

    def program(name: str, *arrays: Any, **options: Any) -> Callable[[Callable], Callable]:
        def add(function: Callable) -> Callable:
            given = {"places": places, **options}
            programs.append(Program(name, function, tuple(_as(arrays, dtype)), **given))
            return function

        return add

    return program


def public_names(module: Any, path: str) -> list[str]:
    """The public functions and classes of a module and of its modules, with `path` before them."""
    found: list[str] = []
    package = module.__name__.partition(".")[0]
    for name in getattr(module, "__all__", None) or vars(module):
        value = getattr(module, name, None)
        if name.startswith("_") or value is None:
            continue
        if isinstance(value, types.ModuleType):
            if value.__name__.startswith(f"{module.__name__}."):
                found += public_names(value, f"{path}{name}.")
        elif callable(value) and str(getattr(value, "__module__", "")).startswith(package):
            found.append(f"{path}{name}")
    return found


def flat(tf: Any, structure: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in tf.nest.flatten(structure, expand_composites=True)]


def _error(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = next(
        (f for f in reversed(frames) if "site-packages" not in f.filename or "tf_" in f.filename),
        frames[-1],
    )
    # Without the folders of this machine.
    text = re.sub(r"/\S*/", "", " ".join(str(error).split()))[:160]
    return f"{type(error).__name__}: {text} [{pathlib.Path(where.filename).name}:{where.lineno}]"


@contextlib.contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _second(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Other arguments, near the first."""
    return [a * 1.01 if a.dtype.kind == "f" else a for a in arrays]


def _nudged(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arguments, each moved by one unit in its last place."""
    return [np.nextafter(a, np.inf) if a.dtype.kind == "f" else a for a in arrays]


def _as(arrays: Sequence[Any], dtype: Any) -> list[np.ndarray]:
    found = [np.asarray(a) for a in arrays]
    return [a.astype(dtype) if a.dtype.kind == "f" else a for a in found]


def _floats(arrays: Sequence[np.ndarray]) -> list[int]:
    return [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]


# TensorFlow's side.


def expected_of(program: Program, tf: Any, library: Any) -> dict[str, Any]:
    """What TensorFlow gives, by kind: leaves, or the text of what it raises."""
    found: dict[str, Any] = {}

    def values(arrays: list[np.ndarray]) -> list[np.ndarray]:
        return flat(tf, program.function(tf, library, *map(tf.constant, arrays)))

    try:
        made = program.arrays(tf, library) if callable(program.arrays) else program.arrays
    except Exception as error:  # the library's own
        return {"value": _error(error)}
    arrays = found["arrays"] = _as(made, np.float64)
    found["value"] = _kept(lambda: values(arrays))
    if isinstance(found["value"], str):
        return found
    if _floats(arrays):
        found["spread"] = _kept(lambda: _distance(values(_nudged(arrays)), found["value"]))
    if any(FLOAT32 in place for place in program.places):
        found["float32"] = _kept(lambda: values(_as(arrays, np.float32)))
    if VMAP in program.places:
        found["batch"] = _kept(
            lambda: [np.stack(p) for p in zip(values(arrays), values(_second(arrays)), strict=True)]
        )
    if program.many is not None:
        found["many"] = _kept(lambda: _means(program, tf, library, arrays))
        if VMAP in program.places:
            both = lambda: [_means(program, tf, library, a) for a in (arrays, _second(arrays))]  # noqa: E731
            found["many of a batch"] = _kept(lambda: _side_by_side(*both()))
    if GRAD in program.places:
        found["gradient"] = _kept(lambda: _gradient(program, tf, library, arrays))
    return found


def _moments(samples: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The means of samples, and their standard errors."""
    wide = [leaf.astype(np.float64) for leaf in samples]
    return [(leaf.mean(0), leaf.std(0) / np.sqrt(len(leaf))) for leaf in wide]


def _means(program: Program, tf: Any, library: Any, arrays: list[np.ndarray]) -> list:
    return _moments(flat(tf, program.many(tf, library, *map(tf.constant, arrays))))  # type: ignore[misc]


def _side_by_side(first: list, second: list) -> list:
    return [
        tuple(map(np.stack, zip(a, b, strict=True))) for a, b in zip(first, second, strict=True)
    ]


def _gradient(program: Program, tf: Any, library: Any, arrays: list[np.ndarray]) -> list:
    def values(*tensors: Any) -> Any:
        return program.function(tf, library, *tensors)

    gradient = functools.partial(_by_tape, values, arrays, tf)
    gradients = tf.function(gradient)() if program.in_graph else gradient()
    return [np.asarray(tf.convert_to_tensor(gradient)) for gradient in gradients]


def _by_tape(values: Callable, arrays: Sequence[np.ndarray], tf: Any) -> Any:
    tensors = [tf.constant(a) for a in arrays]
    watched = [tensors[i] for i in _floats(arrays)]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        total = _total(tf, values(*tensors))
    return tape.gradient(total, watched, unconnected_gradients="zero")


def _compiled(program: Program, tf: Any, library: Any, expected: dict[str, Any]) -> str:
    """What differs where XLA compiles a program on TensorFlow; empty where nothing does."""

    def call(*tensors: Any) -> Any:
        return tf.nest.flatten(program.function(tf, library, *tensors), expand_composites=True)

    compiled = tf.function(call, jit_compile=True)
    values = _kept(lambda: flat(tf, compiled(*map(tf.constant, expected["arrays"]))))
    if isinstance(values, str):
        return values
    return compared(values, expected["value"], program.tolerance)


def _total(tf: Any, structure: Any) -> Any:
    leaves = [x for x in tf.nest.flatten(structure) if "float" in str(x.dtype)]
    return sum(tf.reduce_sum(tf.cast(leaf, tf.float64)) for leaf in leaves)


def _kept(call: Callable[[], Any]) -> Any:
    try:
        with _time_limit(240):
            return call()
    except Exception as error:  # whatever it is: the program is then not asked about
        return _error(error)


def on_tensorflow(suite: Suite, file: pathlib.Path, only: str) -> None:
    """Writes what TensorFlow gives beside what is in the file already."""
    tf = importlib.import_module("tensorflow")
    library = importlib.import_module(suite.library)
    found = pickle.loads(file.read_bytes()) if file.exists() else {}
    found["names"] = list(suite.names(library))
    found["version"] = importlib.metadata.version(suite.library.replace("_", "-"))
    for program in suite.programs:
        if only and only not in program.name:
            continue
        start = time.time()
        found[program.name] = expected_of(program, tf, library)
        if any(d.compiled and program.name in d.programs for d in suite.differences):
            expected = found[program.name]
            expected["compiled"] = _compiled(program, tf, library, expected)
            print(f"{program.name}, compiled by XLA: {expected['compiled'] or 'equal'}", flush=True)
        kinds = {k: v for k, v in found[program.name].items() if isinstance(v, str)}
        print(f"{program.name}: {time.time() - start:.1f} s {kinds or ''}", flush=True)
        if (found[program.name].get("spread") or 0) > program.tolerance:
            print(
                f"{program.name}: TensorFlow's own result moves by"
                f" {found[program.name]['spread']:.1e} where arguments move in their last place."
                " Unless it jumps there, no substrate can give it.",
                flush=True,
            )
        written = file.with_suffix(".part")
        written.write_bytes(pickle.dumps(found))
        written.replace(file)  # a substrate's process may be reading it


# A substrate's side.


def on_substrate(
    suite: Suite, substrate: str, file: pathlib.Path, only: str, places: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """A row for each program and place."""
    expected = pickle.loads(file.read_bytes())
    if substrate == "jax":
        importlib.import_module("jax").config.update("jax_enable_x64", True)
    tf = importlib.import_module(f"tf_substrates.{substrate}.tf")
    packages = [suite.library, *suite.packages]
    tf_substrates.install(substrate, packages)
    library = importlib.import_module(f"tf_substrates.on_{substrate}.{suite.library}")
    for program in suite.programs:
        wanted = expected.get(program.name)
        if (
            (only and only not in program.name)
            or wanted is None
            or isinstance(wanted["value"], str)
        ):
            continue
        for where in (*program.places, *((TAPE,) if GRAD in program.places else ())):
            if (where.startswith(NUMPY)) != (substrate == "numpy") or (
                places and where not in places
            ):
                continue
            start = time.time()
            wrong = _wrong(program, where, wanted, tf, library)
            if wrong is None:
                continue
            compiled = wanted.get("compiled")
            reason, to_mend = judged(suite.differences, program.name, where, wrong, compiled)
            yield {
                "program": program.name,
                "place": where,
                "wrong": wrong,
                "reason": reason,
                "to mend": to_mend,
                "seconds": round(time.time() - start, 1),
            }
    if "tensorflow" in sys.modules:
        raise RuntimeError("a rewritten package has imported TensorFlow")


def _wrong(program: Program, place: str, wanted: dict, tf: Any, library: Any) -> str | None:
    """Empty where a place gives what TensorFlow gives; None where TensorFlow has no result."""
    narrow = FLOAT32 in place
    other = "float32" if narrow else "value"
    kind = {GRAD: "gradient", TAPE: "gradient", VMAP: "batch"}.get(place, other)
    if isinstance(wanted[kind], str):
        return None
    given = wanted["arrays"] if callable(program.arrays) else program.arrays
    arrays = _as(given, np.float32 if narrow else np.float64)

    def values(*arrays: Any, function: Callable = program.function) -> Any:
        result = function(tf, library, *arrays)
        return [tf.convert_to_tensor(x) for x in tf.nest.flatten(result, expand_composites=True)]

    try:
        with _time_limit(240):
            actual = [np.asarray(x) for x in _at(place, values, arrays, tf)]
            tolerance = program.wide if narrow else program.tolerance
            wrong = compared(actual, wanted[kind], tolerance)
            means = wanted.get("many of a batch" if place == VMAP else "many", "")
            if not wrong.startswith("differs") or isinstance(means, str):
                return wrong
            many = functools.partial(values, function=program.many)
            samples = [np.asarray(x) for x in _at(place, many, arrays, tf)]
            if place == VMAP:
                samples = [np.swapaxes(x, 0, 1) for x in samples]
            return _same_means(_moments(samples), means)
    except Exception as error:
        return _error(error)


def _same_means(actual: Sequence[Any], expected: Sequence[Any]) -> str:
    """Empty where means are within five standard errors of each other."""
    for (mean, error), (other, other_error) in zip(actual, expected, strict=True):
        if not np.all(np.abs(mean - other) <= 5 * np.hypot(error, other_error) + 1e-6):
            return "the means of the samples differ"
    return ""


def _at(place: str, values: Callable, arrays: list, tf: Any) -> Any:
    if place.startswith(NUMPY) or place == JAX:
        return values(*map(tf.constant, arrays))
    if place == TAPE:
        return _by_tape(values, arrays, tf)
    jax = importlib.import_module("jax")
    if place.startswith(JIT):
        return jax.jit(values)(*arrays)
    if place == VMAP:
        floats = _floats(arrays)
        axes = [0 if i in floats else None for i in range(len(arrays))]
        batch = [
            np.stack([a, b]) if i in floats else a
            for i, (a, b) in enumerate(zip(arrays, _second(arrays), strict=True))
        ]
        return jax.jit(jax.vmap(values, axes))(*batch)
    total = lambda *arrays: _total(tf, values(*arrays))  # noqa: E731  # a function of its own for grad
    return jax.jit(jax.grad(total, _floats(arrays)))(*arrays)


def _distance(actual: list, expected: list) -> float:
    """The largest difference of floats, relative to the larger of 1 and the value."""
    with np.errstate(all="ignore"):
        distances = [
            np.nanmax(np.abs(a - e) / np.maximum(1, np.abs(e)), initial=0)
            for a, e in zip(actual, expected, strict=True)
            if e.dtype.kind in "fc" and a.shape == e.shape
        ]
    return float(max(distances, default=0))


def compared(actual: list, expected: list, tolerance: float) -> str:
    """Empty where they are equal."""
    if len(actual) != len(expected):
        return f"{len(actual)} results, TensorFlow has {len(expected)}"
    for a, e in zip(actual, expected, strict=True):
        if a.dtype != e.dtype or a.shape != e.shape:
            return f"{a.dtype}{a.shape}, TensorFlow has {e.dtype}{e.shape}"
        if a.dtype.kind in "fc":
            with np.errstate(all="ignore"):
                error = np.abs(a - e) / np.maximum(1, np.abs(e))
            same = (a == e) | (np.isnan(a) & np.isnan(e)) | (error <= tolerance)
            if not same.all():
                return f"differs by {np.max(np.where(same, 0, error)):.1e}"
        elif not np.array_equal(a, e):
            return "differs"
    return ""


def add_row(file: pathlib.Path, suite: Suite, expected: pathlib.Path, row: dict) -> None:
    """Puts a row into a library's file, in the place of an older one for the same program."""
    found = json.loads(file.read_text()) if file.exists() else {"rows": []}
    asked = pickle.loads(expected.read_bytes())
    place = (row["program"], row["place"])
    kept = [r for r in found["rows"] if (r["program"], r["place"]) != place]
    found = {
        "library": suite.library,
        "version": asked["version"],
        "names": asked["names"],
        "jax": importlib.metadata.version("jax"),
        "python": platform.python_version(),
        **origin.now(),
        "rows": [*kept, row],
    }
    file.write_text(json.dumps(found, indent=0))
