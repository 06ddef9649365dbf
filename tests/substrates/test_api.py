"""The API as a whole: TensorFlow's names and signatures, missing names, what is imported."""

from __future__ import annotations

import doctest
import importlib
import inspect
import subprocess
import sys
import types

import pytest
import tensorflow

from tests.substrates.comparing import SUBSTRATES, tf_of
from tf_substrates import refused, tensorflow_names

importlib.import_module("tf_substrates.numpy.tf")
EXPORTS = importlib.import_module("tf_substrates.numpy.namespaces").EXPORTS


def of_tensorflow(name):
    found = tensorflow
    if name.startswith("python."):  # of modules that are not public, which libraries import
        module, _, name = name.rpartition(".")
        found = importlib.import_module(f"{tensorflow.__name__}.{module}")
    for part in name.split("."):
        found = getattr(found, part)
    return found


def shown(function):
    """Parameters and defaults without annotations; a default that is a function is its name."""
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, default(p)) for p in parameters if p.name != "self"]


def default(parameter):
    value = parameter.default
    return value if inspect.isclass(value) else getattr(value, "__name__", value)


# Classes that TensorFlow makes in C++ or by metaclasses, of which `inspect` sees nothing.
WITHOUT_SIGNATURE = {
    "DType",
    "Tensor",
    "TypeSpec",
    "Variable",
    "compat.v1.GraphDef",
    "dtypes.DType",
    "python.framework.ops.EagerTensor",
    "tuple",
}


@pytest.mark.parametrize("name", sorted(EXPORTS))
def test_signatures_are_those_of_tensorflow(name):
    ours, theirs = EXPORTS[name], of_tensorflow(name)
    assert inspect.isclass(ours) == inspect.isclass(theirs)
    if name in WITHOUT_SIGNATURE or not callable(ours):
        return
    if isinstance(ours, type) and issubclass(ours, Exception):
        return
    if inspect.ismodule(ours):
        return
    assert str(shown(ours)) == str(shown(theirs))


def test_the_list_of_names_is_that_of_the_installed_tensorflow():
    version = tensorflow.__version__
    if not version.startswith(tensorflow_names.VERSION):
        pytest.skip(f"the list is of TensorFlow {tensorflow_names.VERSION}, here is {version}")
    for name in tensorflow_names.names():
        of_tensorflow(name.removeprefix("tf."))


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_a_missing_name_says_whose_it_is_and_what_is_near(substrate):
    tf = tf_of(substrate)
    with pytest.raises(
        AttributeError, match=r"^tf.math.sobol_sample is TensorFlow's and not yet in"
    ):
        _ = tf.math.sobol_sample
    with pytest.raises(AttributeError, match=r"has no tf.math.lgama. Near it is: tf.math.lgamma"):
        _ = tf.math.lgama
    with pytest.raises(AttributeError, match=r"has no tf.lgamma. Near it is: tf.math.lgamma"):
        _ = tf.lgamma
    with pytest.raises(
        AttributeError, match=r"^tf.lite is refused by tf_substrates: .* runtime, which does not"
    ):
        _ = tf.lite
    with pytest.raises(AttributeError, match=r"^tf.compat.v1.Session is refused .*jax.jit"):
        _ = tf.compat.v1.Session
    assert not hasattr(tf.math, "np")


@pytest.mark.parametrize("name", sorted(refused.names()))
def test_what_is_refused_is_not_here_and_is_of_tensorflow(name):
    for substrate in SUBSTRATES:
        owner, last = tf_of(substrate), name.rpartition(".")[2]
        for part in name.split(".")[:-1]:
            owner = getattr(owner, part, None)
        assert not isinstance(getattr(owner, last, None), (type, types.FunctionType)), substrate
    if not name.startswith(("compiler", "python", "keras")):
        of_tensorflow(name)


PROGRAM = """
import sys
from tf_substrates.{substrate} import tf
import tf_substrates.{substrate}.tf.math as math
from tf_substrates.{substrate}.tf.compat import v2
assert v2.exp is tf.exp is math.exp
print(*sorted({{"tensorflow", "jax", "scipy"}} & set(sys.modules)))
"""


@pytest.mark.parametrize(("substrate", "imported"), [("numpy", ""), ("jax", "jax")])
def test_importing_it_imports_no_tensorflow(substrate, imported):
    command = [sys.executable, "-c", PROGRAM.format(substrate=substrate)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split()[:1] == imported.split()
    assert "tensorflow" not in done.stdout


def test_the_examples_of_docstrings_run():
    names = sorted({value.__module__ for value in EXPORTS.values() if hasattr(value, "__module__")})
    results = [doctest.testmod(importlib.import_module(n)) for n in names if "substrates" in n]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) > 5
