"""SavedModels whose signatures hold XlaCallModule ops: ours and those of JAX's own jax2tf."""

from __future__ import annotations

import pathlib
import shutil
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf

X = np.random.RandomState(0).normal(size=(5, 3)).astype(np.float32)


def _model(params: Any, x: Any) -> Any:
    return {"y": jnp.tanh(x @ params["w"] + params["b"]), "sorted": jnp.sort(x, 0)}


class _Module(tf.Module):
    """A module in XLA's form with TensorFlow ops around it, and two variables."""

    def __init__(self) -> None:
        super().__init__()
        values = {"w": np.ones((3, 2), np.float32), "b": np.arange(2, dtype=np.float32)}
        self.params = {name: tf.Variable(value) for name, value in values.items()}
        self._f = jax2tf.convert(
            _model, polymorphic_shapes=[None, "b, 3"], native_serialization=True
        )

    @tf.function(input_signature=[tf.TensorSpec([None, 3])], autograph=False)
    def predict(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        results = self._f(self.params, x * 2.0)
        return {"y": results["y"] + 1.0, "sorted": results["sorted"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    module = _Module()
    path = tmp_path_factory.mktemp("saved") / "model"
    tf.saved_model.save(module, str(path), signatures={"predict": module.predict})
    return path


def test_values_and_parameters(folder: pathlib.Path):
    loaded = jax2tf.load(folder)
    want = tf.saved_model.load(str(folder)).signatures["predict"](x=tf.constant(X))
    got = loaded["predict"](x=X)
    assert got.keys() == want.keys()
    for key, value in want.items():
        np.testing.assert_allclose(got[key], value.numpy(), rtol=1e-6)
    assert loaded["predict"].params.keys() == {"params.w", "params.b"}


def test_the_only_argument_needs_no_name(folder: pathlib.Path):
    named = jax2tf.load(folder)["predict"](x=X)
    without = jax2tf.load(folder / "saved_model.pb")["predict"](X)
    for key, value in named.items():
        np.testing.assert_array_equal(without[key], value)


def test_gradients_by_the_parameters(folder: pathlib.Path):
    function = jax2tf.load(folder)["predict"]
    params = {name.removeprefix("params."): value for name, value in function.params.items()}
    got = jax.grad(lambda p: function.apply(p, x=X)["y"].sum())(function.params)
    want = jax.grad(lambda p: _model(p, X * 2)["y"].sum())(params)
    for name, value in want.items():
        np.testing.assert_allclose(got[f"params.{name}"], value, rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"params.w": None}, TypeError, r"must have the names .*got them without \['params.w'\]"),
        ({"params.v": X}, TypeError, r"got them with \['params.v'\]"),
        (
            {"params.b": np.ones(7, np.float32)},
            ValueError,
            r"params\['params.b'\] must have the sh",
        ),
        ({"params.b": np.ones(2, np.int32)}, TypeError, r"must have the dtype float32, got int32"),
    ],
)
def test_parameters_are_checked(
    folder: pathlib.Path, change: dict[str, Any], error: type[Exception], message: str
):
    function = jax2tf.load(folder)["predict"]
    params = {k: v for k, v in {**function.params, **change}.items() if v is not None}
    with pytest.raises(error, match=message):
        function.apply(params, x=X)


@pytest.mark.parametrize("place", ["saved_model.pb", "variables/variables.data-00000-of-00001"])
def test_a_folder_that_was_cut_is_copied_again(
    folder: pathlib.Path, tmp_path: pathlib.Path, place: str
):
    copy = pathlib.Path(shutil.copytree(folder, tmp_path / "model"))
    whole = (copy / place).read_bytes()
    (copy / place).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(jax2tf.LoadError, match="What to do: copy the whole folder again"):
        jax2tf.load(copy)
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    assert list(jax2tf.load(copy)) == ["predict"]


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_files_for_engines(folder: pathlib.Path, tmp_path: pathlib.Path, suffix: str):
    function = jax2tf.load(folder)["predict"]
    result = jax2tf.export(
        lambda x: function(x=x)["y"], None, "b, 3", str(tmp_path / f"m.{suffix}"), verify=True
    )
    assert result.path.endswith(suffix) if isinstance(result.path, str) else result.path.exists()


W = np.random.RandomState(1).normal(size=(3, 3)).astype(np.float32)
X_SPEC = tf.TensorSpec([None, 3], name="x")


class _Around(tf.Module):
    """Modules in XLA's form inside control flow, gradients and calls of TensorFlow."""

    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable(W)
        self._sin = self._native(lambda w, x: jnp.sin(x @ w))
        self._tanh = self._native(lambda w, x: jnp.tanh(x @ w))
        cumsum = jax2tf.call_tf(lambda x: tf.cumsum(x, axis=1), call_tf_graph=True)
        self._calls_tensorflow = jax2tf.convert(
            lambda w, x: jnp.sin(cumsum(x @ w)), native_serialization=True
        )

    def _native(self, function: Any) -> Any:
        shapes = [None, "b, 3"]
        return jax2tf.convert(function, polymorphic_shapes=shapes, native_serialization=True)

    def cond(self, x: tf.Tensor) -> tf.Tensor:
        positive = tf.reduce_sum(x) > 0
        return tf.cond(positive, lambda: self._sin(self.w, x), lambda: self._tanh(self.w, x) * 2)

    def case(self, x: tf.Tensor) -> tf.Tensor:
        branches = [lambda: self._sin(self.w, x), lambda: x, lambda: self._tanh(self.w, x)]
        return tf.switch_case(tf.cast(x[0, 0], tf.int32) + 7, branches)

    def loop(self, x: tf.Tensor) -> tf.Tensor:
        def step(i: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return i + 1, self._tanh(self.w, y) + x[: tf.shape(y)[0]]

        shapes = [tf.TensorShape([]), tf.TensorShape([None, 3])]
        return tf.while_loop(lambda i, y: i < 3, step, [0, x], shape_invariants=shapes)[1]

    def sizes(self, x: tf.Tensor) -> tf.Tensor:
        """TensorFlow reads the sizes of tensors as shapes."""
        n = tf.shape(x)[0]
        y = self._sin(self.w, tf.reshape(tf.reshape(x, [-1]), [n, 3]))
        return tf.tile(tf.reduce_mean(y, axis=1, keepdims=True), [1, 3]) + tf.cast(n, tf.float32)

    def gradient(self, x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(self._tanh(self.w, x) ** 2)
        return tape.gradient(loss, x)

    def rows(self, x: tf.Tensor) -> tf.Tensor:
        """A gather reads the variable with indices of 64 bits."""
        return self._sin(self.w, tf.gather(self.w, tf.argmax(x, 1)))

    def static(self, x: tf.Tensor) -> tf.Tensor:
        return self._calls_tensorflow(self.w, tf.ensure_shape(x[:4], [4, 3]))

    def train(self, x: tf.Tensor) -> tf.Tensor:
        self.w.assign_add(tf.ones_like(self.w))
        return self._sin(self.w, x)

    def strings(self, x: tf.Tensor) -> tf.Tensor:
        return tf.strings.as_string(self._sin(self.w, x))


AROUND = ("cond", "case", "loop", "sizes", "gradient", "rows", "static")


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """What jax2tf.load and what TensorFlow make of one SavedModel."""
    module = _Around()
    module.functions = {
        name: tf.function(getattr(module, name), [X_SPEC], autograph=False)
        for name in (*AROUND, "train", "strings")
    }
    path = str(tmp_path_factory.mktemp("saved") / "around")
    tf.saved_model.save(module, path, signatures=module.functions)
    return jax2tf.load(path), tf.saved_model.load(path).signatures


@pytest.mark.parametrize("name", AROUND)
def test_tensorflow_around_modules(around: tuple[Any, Any], name: str):
    loaded, signatures = around
    for x in (X, -X):
        (got,) = loaded[name](x=x).values()
        (want,) = signatures[name](x=tf.constant(x)).values()
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-5, atol=1e-6)


def test_signatures_that_are_no_functions_of_arrays(around: tuple[Any, Any]):
    loaded, _ = around
    assert set(loaded) == set(AROUND)
    with pytest.raises(jax2tf.LoadError, match=r"'train' changes a variable.*AssignAddVariableOp"):
        loaded["train"]
    with pytest.raises(jax2tf.LoadError, match=r"'strings' returns .* of type string"):
        loaded["strings"]


def test_signatures_of_strings_are_refused(tmp_path: pathlib.Path):
    module = tf.Module()
    spec = [tf.TensorSpec([None], tf.string)]
    module.f = tf.function(tf.strings.length, input_signature=spec, autograph=False)
    tf.saved_model.save(module, str(tmp_path), signatures={"f": module.f})
    with pytest.raises(jax2tf.LoadError, match="of type string"):
        jax2tf.load(tmp_path)


def test_a_module_of_another_dialect_is_written_as_stablehlo_by_its_tool():
    """TensorFlow writes its own dialect, and StableHLO of a function that XLA compiles."""

    @tf.function(input_signature=[tf.TensorSpec([5, 3])], jit_compile=True)
    def function(x: tf.Tensor) -> tf.Tensor:
        return tf.tanh(x)

    concrete = function.get_concrete_function()
    with pytest.raises(jax2tf.LoadError, match=r"the op tf.Tanh: .*write the module as StableHLO"):
        jax2tf.load(tf.mlir.experimental.convert_function(concrete).encode())
    text = function.experimental_get_compiler_ir(X)(stage="stablehlo")
    np.testing.assert_allclose(jax2tf.load(text.encode())(X), np.tanh(X), rtol=1e-6)
