"""One small file of each kind, of each release, and the numbers that they give.

`python -m tests.files` writes the files of this release into a folder of its version, beside this
module; `test_files.py` loads the files of every release that is kept here.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

FOLDER = pathlib.Path(__file__).parent

Arrays = Mapping[str, np.ndarray]

SPECS = {"x": "b, 4", "shift": ":int32"}


def model(params, x, shift):
    """A layer, a loop, a softmax and an index: what most models have."""
    hidden = jnp.tanh(x @ params["w"] + params["b"])
    hidden = jax.lax.fori_loop(0, 3, lambda _, h: jnp.tanh(h @ params["u"]), hidden)
    return {"probabilities": jax.nn.softmax(hidden), "label": jnp.argmax(hidden, axis=1) + shift}


def layer(params, x):
    """The same without integers, as layers of Keras are."""
    return jax.nn.softmax(jnp.tanh(x @ params["w"] + params["b"]))


def parameters() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(61)
    shapes = {"w": (4, 3), "b": (3,), "u": (3, 3)}
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def inputs() -> dict[str, np.ndarray]:
    x = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    return {"x": x, "shift": np.int32(3)}


def written_values(path: pathlib.Path) -> None:
    """Writes the inputs and the results of JAX, as text."""
    given = inputs()
    params = parameters()
    values = {
        "inputs": given,
        "model": jax.jit(model)(params, **given),
        "layer": {"output": jax.jit(layer)(params, given["x"])},
        "gradient": {"w": jax.grad(loss)(params, **given)["w"]},
    }
    text = json.dumps(jax.tree.map(lambda a: np.asarray(a).tolist(), values), indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def loss(params, x, shift):
    """What is differentiated: the probability of the first class."""
    return jnp.sum(model(params, x, shift)["probabilities"][:, 0])


def values(folder: pathlib.Path) -> dict[str, Arrays]:
    """What `written_values` has written."""
    dtypes = {"label": np.int32, "shift": np.int32}
    read = json.loads((folder / "values.json").read_text(encoding="utf-8"))
    return {
        part: {name: np.array(a, dtypes.get(name, np.float32)) for name, a in arrays.items()}
        for part, arrays in read.items()
    }


def assert_gives(run: Callable[[Arrays], Arrays], inputs: Arrays, expected: Arrays) -> None:
    """The results have the names, the dtypes and the numbers that they had."""
    results = run(inputs)
    assert set(results) == set(expected)
    for name, wanted in expected.items():
        result = np.asarray(results[name])
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape), name
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6, err_msg=name)
