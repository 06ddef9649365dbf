"""What single libraries need beside the rules: modules to leave out, and what stands for others.

A library that is not here is rewritten by the rules alone. `install` and `rewrite` add what stands
here to what they are given.
"""

from __future__ import annotations

from tf_substrates.rewriter.places import Substrate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Library:
    """What a library needs.

    Attributes:
      omit: modules that make no sense without TensorFlow.
      replace: modules of it, or that it imports, and what stands for them; `{}` in a name is the
        substrate, and a name that begins with a dot is of the library itself.
      as_tensorflow: modules in which `JAX_MODE` stays False, because TensorFlow's way is wanted.
      imports: modules that import others too, which an omitted one would have imported for them.
      extended: modules, and the function that is called with the names of each when it has run;
        `{}` is the substrate.
    """

    def __init__(
        self,
        omit: tuple[str, ...] = (),
        replace: Mapping[str, str] | None = None,
        as_tensorflow: tuple[str, ...] = (),
        imports: Mapping[str, tuple[str, ...]] | None = None,
        extended: Mapping[str, str] | None = None,
    ):
        self.omit = omit
        self.replace = replace or {}
        self.as_tensorflow = as_tensorflow
        self.imports = imports or {}
        self.extended = extended or {}


# What authors import beside TensorFlow. It is rewritten too: `own` finds it.
AUTHORS = "tf_substrates.authors"
_TFP = "tensorflow_probability"
# Keras layers. What stands beside them, in `layers.internal`, is of distributions.
_LAYERS = (
    "conv_variational",
    "dense_variational",
    "dense_variational_v2",
    "distribution_layer",
    "initializers",
    "masked_autoregressive",
    "util",
    "variable_input",
    "weight_norm",
)

LIBRARIES = {
    # It writes protocol buffers and files of TensorFlow's.
    "tf_quant_finance": Library(omit=("tf_quant_finance.experimental.io",)),
    # It writes TensorBoard's files.
    "gpflow": Library(omit=("gpflow.monitor.tensorboard",)),
    _TFP: Library(
        # Keras layers, what it builds for JAX by its own means, and a compiler of Python's syntax.
        omit=(
            f"{_TFP}.substrates.meta",
            *(f"{_TFP}.python.layers.{name}" for name in _LAYERS),
            f"{_TFP}.python.experimental.auto_batching",
            f"{_TFP}.python.experimental.mcmc.nuts_autobatching",
        ),
        replace={
            f"{_TFP}.python.internal.backend.numpy": "tf_substrates.numpy.static",
            f"{_TFP}.python.internal.backend.jax": "tf_substrates.jax.tf",
            # Modules that are for JAX alone name what it has built for that.
            f"{_TFP}.substrates.jax": ".python",
            f"{_TFP}.substrates.numpy": ".python",
            f"{_TFP}.python.internal.tf_keras": "tf_substrates.{}.keras",
            "distutils": "tf_substrates.distutils",
            "tf_keras": "tf_substrates.{}.keras",  # imported to see whether it is there
        },
        # Seeds are TensorFlow's, so that samples are.
        as_tensorflow=(
            f"{_TFP}.python.internal.samplers",
            f"{_TFP}.python.util.seed_stream",
            f"{_TFP}.python.distributions.distribution",  # without one too
            f"{_TFP}.python.experimental.linalg",  # it makes pytrees of operators, which are some
            f"{_TFP}.python.experimental.stats.sample_stats",  # its values are made of tensors
        ),
        # check_shapes, of GPflow, asks for it as an attribute of `layers`.
        imports={
            f"{_TFP}.python.layers": (
                f"{_TFP}.python.layers.internal.distribution_tensor_coercible",
            )
        },
        extended={
            f"{_TFP}.python.internal.samplers": "tf_substrates.{}.probability_seeds.in_samplers",
            f"{_TFP}.python.util.seed_stream": "tf_substrates.{}.probability_seeds.in_seed_stream",
            f"{_TFP}.python.internal.test_combinations": (
                "tf_substrates.{}.compiled_tests.in_test_combinations"
            ),
            f"{_TFP}.python.internal.test_util": "tf_substrates.{}.compiled_tests.in_test_util",
        },
    ),
}


def substrate(name: str, modules: Mapping[str, str], omit: Iterable[str] = ()) -> Substrate:
    """A substrate with what the packages among `modules` need."""
    known = [LIBRARIES[package] for package in modules if package in LIBRARIES]
    replaced = {
        old: (modules[package] + new if new.startswith(".") else new).format(name)
        for package in modules
        if package in LIBRARIES
        for old, new in LIBRARIES[package].replace.items()
    }
    return Substrate(
        name,
        modules={AUTHORS: f"tf_substrates.{name}.authors", **modules, **replaced},
        omitted=frozenset(omit).union(*(library.omit for library in known)),
        as_tensorflow=frozenset().union(*(library.as_tensorflow for library in known)),
        imports={module: names for library in known for module, names in library.imports.items()},
        extended={k: v.format(name) for library in known for k, v in library.extended.items()},
    )
