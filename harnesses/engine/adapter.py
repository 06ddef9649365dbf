"""The only way from the judge to the implementation that it judges."""

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from harnesses.cell.names import DEFAULT_IMPLEMENTATION, LOWERINGS, ON_JAX, ON_NUMPY
from harnesses.engine.converters import converter, is_converter

# The folders of the package of substrates, by the lowering of their cells.
_SUBSTRATES: Mapping[str, str] = {ON_NUMPY: "numpy", ON_JAX: "jax"}
_SUBSTRATES_PACKAGE = "tf_substrates"


class ImplementationError(ValueError):
    """There is no such implementation."""


class Adapter:
    """An implementation under its module's name: any module with `convert` (and `call_tf`).

    One that cannot be imported raises what the import raised when something is converted.
    """

    def __init__(self, module: str = DEFAULT_IMPLEMENTATION):
        self.name = module
        self._module: Any = None
        self._error: Exception | None = None
        try:
            self._module = importlib.import_module(module)
        except Exception as error:
            self._error = error

    def convert(self, fun: Callable[..., Any], lowering: str, **options: Any) -> Callable[..., Any]:
        """The TensorFlow function that the implementation makes of `fun`."""
        return self._imported().convert(fun, **options, **LOWERINGS[lowering])

    def convert_for(
        self, fun: Callable[..., Any], engine: str, **options: Any
    ) -> Callable[..., Any]:
        """The TensorFlow function that the implementation makes of `fun` for an engine.

        An implementation that has no targets (`convert` has no parameter `target`) makes what every
        engine takes.
        """
        parameters = inspect.signature(self._imported().convert).parameters
        target = {"target": engine} if "target" in parameters else {}
        return self.convert(fun, "no_xla", **{**target, **options})

    @property
    def onnx(self) -> Any:
        """The implementation's module `onnx`: its writer of ONNX files.

        It has `file_of_jax`, which makes the content of a file of a JAX function, TARGET, for
        `convert`, and `file_of`, which makes that of a TensorFlow function.

        Raises:
          ImplementationError: the implementation has no such module.
        """
        name = f"{self.name}.onnx"
        if not _exists(name):
            raise ImplementationError(f"{self.name} writes no ONNX files: it has no module {name}")
        return importlib.import_module(name)

    def convert_for_mesh(
        self, fun: Callable[..., Any], mesh: Any, **options: Any
    ) -> Callable[..., Any]:
        """The function that runs on DTensor's devices: `convert` of the module's part `dtensor`."""
        return self._imported().dtensor.convert(fun, mesh, **options)

    def load(self, blob: bytes) -> Callable[..., Any]:
        """The JAX function that the implementation makes of a file of jax.export.

        Raises:
          ImplementationError: the implementation has no such function.
        """
        load = getattr(self._imported(), "load", None)
        if load is None:
            raise ImplementationError(f"{self.name} reads no StableHLO: it has no function load")
        loaded: Callable[..., Any] = load(blob)
        return loaded

    def call_tf(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """The JAX function that the implementation makes of a TensorFlow function."""
        return self._imported().call_tf(fun)

    def substrate(self, lowering: str) -> Any:
        """TensorFlow's API as the substrate of that lowering has it: its module `tf`."""
        return importlib.import_module(f"{_SUBSTRATES_PACKAGE}.{_SUBSTRATES[lowering]}.tf")

    def tensorflow_symbols(self) -> frozenset[str]:
        """The public symbols of TensorFlow, such as `tf.math.exp`, that substrates are about."""
        return importlib.import_module(f"{_SUBSTRATES_PACKAGE}.tensorflow_names").names()

    def _imported(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._module


def check_exists(module: str, option: str = "--impl") -> None:
    """Raises ImplementationError if there is no module of that name; imports its parents alone.

    Raises ConverterError if it names a converter that cannot be used.
    """
    if is_converter(module):
        converter(module)
        return
    if not _exists(module):
        raise ImplementationError(f"{option} {module}: there is no such module to judge")


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
