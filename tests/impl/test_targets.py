"""Targets: what an engine takes, and graphs that keep to it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from harnesses.engine.graphs import op_types
from jax2tf._src.targets.forms import Optimization
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import _LACKS
from tests.running import assert_near

X = np.linspace(-2.0, 2.0, 12, dtype=np.float32).reshape(3, 4)

# An engine made from scratch: a small network runs in it.
TINY = jax2tf.Target(
    "tiny",
    ops={
        **dict.fromkeys(["AddV2", "Sub", "Mul", "Maximum", "Mean"], ("float32", "int32")),
        **dict.fromkeys(["MatMul", "Relu", "Tanh", "Sigmoid", "Rsqrt"], ("float32",)),
        **dict.fromkeys(["Reshape", "Transpose", "Pad", "ConcatV2"], ("float32",)),
        "SquaredDifference": ("float32",),
        "BiasAdd": ("float32",),
        "Softmax": ("float32",),
        "StridedSlice": ("float32", "int32"),
        "Shape": ("float32",),
        "Neg": ("float32",),
        "RealDiv": ("float32",),
    },
    idioms=frozenset({"relu", "softmax", "mean", "variance"}),
)


def _graph(fun, *args, **options):
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in args]
    converted = jax2tf.convert(fun, with_gradient=False, **options)
    return tf.function(converted, autograph=False).get_concrete_function(*specs)


def _network(x):
    hidden = jax.nn.relu(x @ np.full((4, 8), 0.1, np.float32))
    normal = (hidden - hidden.mean(-1, keepdims=True)) * jax.lax.rsqrt(
        hidden.var(-1, keepdims=True) + 1e-5
    )
    return jax.nn.softmax(jnp.tanh(normal))


class TestAnEngineOfOnesOwn:
    def test_what_it_takes_runs(self):
        graph = _graph(_network, X, target=TINY)
        assert_near(graph(tf.constant(X)), jax.jit(_network)(X))
        assert op_types(graph.graph).keys() - {"Const", "Placeholder", "Identity"} <= (
            TINY.ops.keys()
        )

    def test_what_it_does_not_take_is_refused_by_name(self):
        with pytest.raises(jax2tf.UnsupportedPrimitiveError) as caught:
            _graph(lambda x: jnp.sin(x), X, target=TINY)
        said = str(caught.value)
        for part in ("primitive 'sin'", "op Sin of float32", "'tiny' takes no Sin", __file__):
            assert part in said

    def test_a_dtype_that_it_does_not_take(self):
        with pytest.raises(
            jax2tf.UnsupportedPrimitiveError, match="takes Tanh of float32 alone"
        ) as caught:
            _graph(jnp.tanh, X.astype(np.float16), target=TINY)
        assert "Tanh of float16" in str(caught.value)

    @pytest.mark.parametrize(
        "within",
        [
            jax.jit(lambda x: (jnp.sin(x), x)),
            lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y * 2, x),
            lambda x: jax.lax.cond(x[0, 0] > 0, jnp.tanh, jnp.negative, x),
        ],
        ids=["jit", "loop", "cond"],
    )
    def test_what_is_further_in_is_refused_too(self, within):
        with pytest.raises(jax2tf.UnsupportedPrimitiveError, match="the target 'tiny' takes no"):
            _graph(within, X, target=TINY)

    def test_a_polymorphic_batch(self):
        converted = jax2tf.convert(
            _network, target=TINY, polymorphic_shapes="b, _", with_gradient=False
        )
        function = tf.function(converted, autograph=False)
        graph = function.get_concrete_function(tf.TensorSpec([None, 4], tf.float32))
        for batch in (1, 3):
            assert_near(graph(tf.constant(X[:batch])), jax.jit(_network)(X[:batch]))


class TestTheChoice:
    @pytest.mark.parametrize("name", jax2tf.TARGETS)
    def test_every_target_runs_in_tensorflow(self, name):
        for fun in (_network, jnp.sort, lambda x: jax.lax.top_k(x, 2)):
            assert_near(_graph(fun, X, target=name)(tf.constant(X)), jax.jit(fun)(X))

    def test_tensorflow_is_what_enable_xla_false_gives(self):
        graphs = [
            op_types(_graph(_network, X, **options).graph)
            for options in ({"target": "tensorflow"}, {"enable_xla": False})
        ]
        assert graphs[0] == graphs[1]

    def test_engines_have_no_xla_ops(self):
        for name in jax2tf.TARGETS.keys() - {"xla", "litert"}:
            ops = op_types(_graph(lambda x: jnp.sort(x).at[0].add(1.0), X, target=name).graph)
            assert not [op for op in ops if op.startswith("Xla")], name

    def test_a_jitted_function_for_an_engine_is_not_compiled(self):
        graph = _graph(jax.jit(_network), X, target="litert").graph
        assert not any(f.attr["_XlaMustCompile"].b for f in graph.as_graph_def().library.function)

    @pytest.mark.parametrize(
        ("options", "error", "parts"),
        [
            ({"target": "tflite"}, ValueError, ("litert", "openvino", "'tflite'")),
            ({"target": 3}, TypeError, ("name of a target", "int")),
            ({"target": "xla", "enable_xla": False}, ValueError, ("enable_xla=False", "'xla'")),
            (
                {"target": "onnx", "native_serialization": True},
                ValueError,
                ("native serialization", "'onnx'"),
            ),
        ],
    )
    def test_what_cannot_be(self, options, error, parts):
        with pytest.raises(error) as caught:
            jax2tf.convert(jnp.sin, **options)
        for part in ("jax2tf.convert", *parts):
            assert part in str(caught.value)

    def test_targets_that_cannot_be(self):
        with pytest.raises(ValueError, match="op_set should be one of xla, no_xla, got 'some'"):
            jax2tf.Target("mine", op_set="some")
        with pytest.raises(ValueError, match=r"quirks should be among .*, got slow"):
            jax2tf.Target("mine", quirks=frozenset({"slow"}))
        with pytest.raises(ValueError, match=r"optimizations should be among .*, got slow"):
            jax2tf.Target("mine", optimizations=frozenset({"slow"}))
        with pytest.raises(ValueError, match=r"no optimisation slow; it has .*compiled_draws"):
            jax2tf.TARGETS["xla"].without_optimizations("slow")
        with pytest.raises(ValueError, match=r"has no idiom fft; it has .*softmax"):
            jax2tf.TARGETS["onnx"].without_idioms("fft")

    def test_the_guide_names_every_optimisation(self):
        guide = (Path(__file__).parents[2] / "docs/guides/targets.md").read_text()
        table = re.findall(r"^\| `(\w+)` \|", guide.partition("| Optimisation |")[2], re.MULTILINE)
        assert table[: len(Optimization)] == sorted(Optimization)

    def test_what_a_target_lacks(self):
        mine = jax2tf.Target("mine", lacks={"Sin": (), "BitwiseXor": ("uint32",)})
        n = np.arange(3, dtype=np.int32)
        _graph(lambda n: (n ^ 5) + jnp.sin(jnp.arange(3.0)), n, target=mine)
        with pytest.raises(jax2tf.ConversionError, match=r"Sin of float32.*takes no Sin\."):
            _graph(jnp.sin, X, target=mine)
        with pytest.raises(jax2tf.ConversionError, match="takes no BitwiseXor of uint32"):
            _graph(lambda n: n ^ 5, n.astype(np.uint32), target=mine)

    def test_a_parameter_that_no_equation_reads_may_have_any_dtype(self):
        seeds = (np.array([1, 2], np.uint32), jax.random.key(3))

        def graph(fun, *specs):
            module = jax2tf.Module(fun, seeds, target="tfjs", with_gradient=False)
            return tf.function(module, autograph=False).get_concrete_function(*specs)

        x, n = tf.TensorSpec(X.shape), tf.TensorSpec([2], tf.uint32)
        # `sum` of the seeds is dead code; both variables are unread.
        assert_near(graph(lambda seeds, x: (seeds[0].sum(), x + 1)[1], x)(X), X + 1)
        with pytest.raises(jax2tf.UnsupportedDtypeError, match=r"argument seeds\[0\] is of uint32"):
            graph(lambda seeds, x: x + seeds[0][0], x)
        with pytest.raises(jax2tf.UnsupportedDtypeError, match=r"argument seeds\[1\] is of uint32"):
            graph(lambda seeds, x: x + jax.random.normal(seeds[1]), x)
        with pytest.raises(jax2tf.UnsupportedDtypeError, match=r"argument n is of uint32"):
            graph(lambda seeds, x, n: x, x, n)
        with pytest.raises(jax2tf.UnsupportedDtypeError, match=r"result 1 is of uint32"):
            graph(lambda seeds, x: (x, seeds[0]), x)

    @pytest.mark.parametrize("target", ["litert", "onnx", "openvino"])
    def test_complex_results_of_an_engine_that_has_none(self, target):
        with pytest.raises(jax2tf.ConversionError) as raised:
            _graph(jnp.fft.rfft, X, target=target)
        assert f"the target {target!r} takes no Complex" in str(raised.value)
        assert "give the real and the imaginary part" in str(raised.value)
        assert "Complex" not in op_types(
            _graph(lambda x: abs(jnp.fft.rfft(x)), X, target=target).graph
        )

    @pytest.mark.parametrize("target", ["litert", "onnx", "openvino", "tfjs"])
    @pytest.mark.parametrize("dtype", ["float8_e4m3fn", "int4"])
    def test_dtypes_of_which_a_target_has_no_arrays(self, target, dtype):
        words = f"gives an array of {dtype}, and the target '{target}' has none of it"
        if (target, dtype) == ("tfjs", "int4"):
            # It has no int8 either, by way of which a number becomes one of int4.
            words = "op SelectV2 of int8, and the target 'tfjs' takes no SelectV2 of int8"
        with pytest.raises(jax2tf.ConversionError, match=words) as raised:
            _graph(lambda x: x.astype(dtype), X, target=target)
        assert "cast to a dtype of the engine's" in str(raised.value)

    @pytest.mark.parametrize("target", ["onnx", "openvino"])
    def test_bfloat16_where_it_would_become_float16(self, target):
        def model(x):
            return (x.astype(jnp.bfloat16) * 2).astype(jnp.float32)

        with pytest.raises(jax2tf.ConversionError, match="an array of bfloat16"):
            _graph(model, X, target=target)
        _graph(model, X, target="litert")

    @pytest.mark.parametrize(
        ("function", "words"),
        [
            (
                lambda x: jnp.tanh(x.astype(jnp.float64)).astype(jnp.float32),
                "compute it in float32",
            ),
            (lambda x: x.astype(jnp.complex128), "give the real and the imaginary part"),
        ],
    )
    def test_the_remedy_is_for_the_dtype(self, function, words):
        with jax.enable_x64(True), pytest.raises(jax2tf.ConversionError, match=words):
            _graph(function, X, target="openvino")
        mine = jax2tf.Target("mine", lacks={"AddV2": ("int16",)})
        with pytest.raises(jax2tf.ConversionError, match="cast to a dtype of the engine's"):
            _graph(lambda x: x.astype(jnp.int16) + 1, X, target=mine)

    def test_dtypes_that_a_converter_folds(self):
        mine = jax2tf.Target("mine", lacks_dtypes=["float16"])
        _graph(lambda x: x + jnp.float16(1.5).astype(jnp.float32), X, target=mine)
        with pytest.raises(jax2tf.ConversionError, match="'mine' has none of it"):
            _graph(lambda x: (x.astype(jnp.float16) * 2).astype(jnp.float32), X, target=mine)

    def test_constants_of_a_converter_that_does_not_fold(self):
        mine = jax2tf.Target("mine", lacks={"Sin": ()}, quirks=frozenset({"no_folding"}))
        waves = jax.jit(lambda size: jnp.sin(jnp.arange(size)), static_argnums=0)
        _graph(lambda x: x + waves(100).sum(), X, target=mine)
        with pytest.raises(jax2tf.ConversionError, match="takes no Sin"):
            _graph(lambda x: x + waves(10_000).sum(), X, target=mine)

    def test_a_shared_function_of_constants_for_a_converter_that_folds(self):
        mine = jax2tf.Target("mine", lacks={"Sin": ()})

        @jax.jit
        def waves(n):
            x = jnp.cumsum(jnp.arange(100.0) * n).reshape(10, 10)
            return (jnp.sin(x.T + 1 / n) * jnp.cosh(x / 5050)).sum()

        def of_literals(x):
            return x + waves(2) + waves(3) + waves(4)

        def of_arguments(x):
            return x + waves(x[0, 0]) + waves(x[0, 1]) + waves(x[0, 2])

        assert "PartitionedCall" in op_types(_graph(of_arguments, X, target="onnx").graph)
        _graph(of_literals, X, target=mine)
        with pytest.raises(jax2tf.ConversionError, match="takes no Sin"):
            _graph(of_arguments, X, target=mine)

    def test_of_the_ops_of_an_equation_the_first_is_named(self):
        mine = jax2tf.Target("mine", lacks={"Maximum": (), "Minimum": ()})
        with pytest.raises(jax2tf.ConversionError, match="takes no Maximum"):
            _graph(lambda x: jax.lax.clamp(0.5, x, 0.7), X, target=mine)

    def test_one_function_for_two_targets(self):
        """Plans and shared functions of one target are not those of another."""
        shared = jax.jit(lambda x: jax.nn.softmax(x) * 2 + jnp.tanh(x) - 1)

        def twice(x):
            return shared(shared(x))

        counts = [
            op_types(_graph(twice, X, target=name).graph)["Softmax"] for name in ("onnx", "xla")
        ]
        assert counts == [1, 0]


class TestAssumeFinite:
    @pytest.mark.parametrize(
        ("fun", "ops"),
        [
            (lambda x: jax.lax.top_k(x, 2), {"TopKV2"}),
            (lambda x: jnp.argmax(x, -1), {"ArgMax"}),
            (lambda x: jnp.max(x, -1), {"Max"}),
            (lambda x: jnp.maximum(x, x[:, ::-1]), {"Maximum", "ReverseV2"}),
            (
                lambda x: jax.nn.logsumexp(x, -1),
                {"Abs", "AddV2", "Exp", "Log", "Max", "Reshape", "Sub", "Sum"},
            ),
        ],
        ids=["top_k", "argmax", "max", "maximum", "logsumexp"],
    )
    def test_guards_are_left_out(self, fun, ops):
        guarded, bare = (
            _graph(fun, X, target="litert", assume_finite=flag) for flag in (False, True)
        )
        assert_near(bare(tf.constant(X)), jax.jit(fun)(X))
        around = {"Const", "Placeholder", "Identity"}
        found = op_types(bare.graph).keys() - around
        assert found <= ops | {"BroadcastTo", "ExpandDims"}
        assert len(op_types(guarded.graph).keys() - around) > len(found)

    def test_it_is_part_of_a_target(self):
        finite = dataclasses.replace(jax2tf.TARGETS["openvino"], assume_finite=True)
        ops = [
            op_types(_graph(jax.nn.log_softmax, X, target=t).graph) for t in ("openvino", finite)
        ]
        assert [counts["LogSoftmax"] for counts in ops] == [0, 1]

    def test_the_sum_of_a_softmax_is_for_nan(self):
        finite = dataclasses.replace(jax2tf.TARGETS["openvino"], assume_finite=True)
        ops = [op_types(_graph(jax.nn.softmax, X, target=t).graph) for t in ("openvino", finite)]
        assert [(counts["Softmax"], counts["RealDiv"]) for counts in ops] == [(1, 1), (1, 0)]


@pytest.mark.parametrize(
    "names", [["no_folding"], {"no_folding"}, ("no_folding",), {"no_folding": 1}]
)
def test_names_may_come_in_any_collection(names):
    target = jax2tf.Target("mine", quirks=names, idioms=["relu"])
    assert target == jax2tf.Target("mine", quirks=frozenset(names), idioms=frozenset({"relu"}))
    assert float(jax2tf.convert(jax.nn.relu, target=target)(-1.0)) == 0


def test_a_misspelled_quirk_is_refused_and_all_names_are_listed():
    with pytest.raises(ValueError, match="quirks should be among") as raised:
        jax2tf.Target("mine", quirks={"no_foldings"})
    for name in (*Quirk, "got no_foldings"):
        assert name in str(raised.value)
    with pytest.raises(AttributeError):
        Quirk.NO_FOLDINGS  # noqa: B018


@pytest.mark.parametrize("name", sorted(_LACKS))
def test_a_lack_is_no_quirk_and_the_remedy_says_what_to_write(name):
    with pytest.raises(ValueError, match="quirks should say what the reader gets wrong") as raised:
        jax2tf.Target("mine", "xla", quirks={name, "no_folding"})
    said = str(raised.value)
    assert f"got '{name}'" in said
    written = eval(f"dict({said.partition('and give ')[2]})")
    target = jax2tf.Target("mine", "xla", quirks={"no_folding"}, **written)
    assert target != jax2tf.Target("mine", "xla", quirks={"no_folding"})


def test_quirks_of_a_target_are_members_and_texts():
    target = jax2tf.Target("mine", quirks={"no_folding"})
    assert target.has(Quirk.NO_FOLDING)
    assert "no_folding" in target.quirks
    assert not dataclasses.replace(target, quirks=target.quirks - {"no_folding"}).has(
        Quirk.NO_FOLDING
    )


@pytest.mark.parametrize("quirk", list(Quirk))
def test_a_quirk_says_who_is_wrong(quirk):
    assert quirk.name.lower() == quirk.value
    assert quirk.meaning
    assert quirk.faults
    for fault in quirk.faults:
        assert fault.target == "dtensor" or quirk in jax2tf.TARGETS[fault.target].quirks


class TestTheQuestions:
    some = jax2tf.Target("some", lacks={"Sin": (), "Cos": ("float16",)})

    def test_takes(self):
        takes = {dtype: self.some.takes("Cos", dtype) for dtype in (None, "float16", "float32")}
        assert takes == {None: True, "float16": False, "float32": True}
        assert not self.some.takes("Sin")
        assert not jax2tf.Target("mine", ops={"Sin": ("float32",)}, lacks={"Sin": ()}).takes("Sin")

    def test_wants(self):
        assert self.some.takes("Erf", "float32")
        assert not self.some.wants("Erf", "float32")
        assert dataclasses.replace(self.some, own_ops={"Erf": ()}).wants("Erf", "float32")
        assert not self.some.wants("XlaSort")
        assert self.some.wants(Optimization.INFERRED_SIZES)
        assert not self.some.wants(Optimization.SORTS_BY_TOP_K)
        finite = dataclasses.replace(self.some, idioms={"relu"}, finite_idioms={"resize"})
        assert [finite.wants(name) for name in ("relu", "resize")] == [True, False]
        assert dataclasses.replace(finite, assume_finite=True).wants("resize")

    def test_of_so_many_dimensions(self):
        target = jax2tf.Target("mine", most_dimensions_of={"PadV2": 4})
        assert [target.takes_rank("PadV2", rank) for rank in (4, 5)] == [True, False]
        # No graph without XLA ops reduces more than six.
        assert [target.takes_rank("Max", rank) for rank in (6, 7)] == [True, False]
        assert jax2tf.Target("mine", "xla").takes_rank("Max", 7)
