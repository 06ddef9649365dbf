"""What libraries import of TensorFlow beside its public API, and what single libraries need."""

from __future__ import annotations

import importlib

import jax
import numpy as np
import pytest
import tensorflow

from tests.substrates.comparing import SUBSTRATES, Case, assert_as_tensorflow, over, tf_of
from tf_substrates.rewriter import known_libraries
from tf_substrates.rewriter.edits import as_text
from tf_substrates.rewriter.places import Substrate
from tf_substrates.rewriter.rules import edits_of

SETS = [
    Case(
        f"{name} of rows",
        lambda tf, name=name: tf.sparse.to_dense(
            getattr(tf.sets, name)(
                tf.constant([[3, 1, 1], [5, 2, 9]]), tf.constant([[1, 4], [9, 5]])
            )
        ),
    )
    for name in ("difference", "intersection", "union")
] + [
    Case(
        "the other difference",
        lambda tf: tf.sparse.to_dense(tf.sets.difference([[1, 2]], [[2, 3, 4]], aminusb=False)),
    ),
    Case("size", lambda tf: tf.sets.size(tf.sets.union([[1, 2], [3, 3]], [[2, 3], [3, 3]]))),
    Case("other rows", lambda tf: tf.sets.union([[1, 2]], [[2], [3]])),
    Case("other dtypes", lambda tf: tf.sets.union([[1, 2]], [[2.0]])),
]


@over(SETS)
def test_sets(case, substrate):
    assert_as_tensorflow(case, substrate)


def dense(tf, indices, default=None, **options):
    sparse = tf.SparseTensor(indices, tf.constant([2.0, 3.0]), [2, 3])
    return tf.sparse.to_dense(sparse, default, **options)


@over(
    [
        Case("zeros", lambda tf: dense(tf, [[0, 1], [1, 2]])),
        Case("another default", lambda tf: dense(tf, [[0, 1], [1, 2]], -1.0)),
        Case("a default of another dtype", lambda tf: dense(tf, [[0, 1], [1, 2]], np.int64(1))),
        Case("out of order", lambda tf: dense(tf, [[1, 2], [0, 1]])),
        Case("repeated", lambda tf: dense(tf, [[0, 1], [0, 1]])),
        Case("outside", lambda tf: dense(tf, [[0, 1], [0, 3]])),
        Case("not validated", lambda tf: dense(tf, [[1, 2], [0, 1]], validate_indices=False)),
    ]
)
def test_sparse_to_dense(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_sparse_to_dense_of_traced_values():
    tf = tf_of("jax")

    def spread(values, indices):
        return tf.sparse.to_dense(tf.SparseTensor(indices, values, [2, 3]), -1.0)

    values, indices = np.array([2.0, 3.0], np.float32), np.array([[0, 1], [1, 2]])
    expected = [[-1, 2, -1], [-1, -1, 3]]
    assert jax.jit(spread)(values, indices).tolist() == expected
    assert jax.jit(lambda v: spread(v, indices))(values).tolist() == expected
    gradient = jax.grad(lambda v: (spread(v, indices) ** 2).sum())(values)
    assert gradient.tolist() == [4.0, 6.0]


OPERATORS = {
    "householder": lambda tf: tf.linalg.LinearOperatorHouseholder(
        tf.constant([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])
    ),
    "zeros": lambda tf: tf.linalg.LinearOperatorZeros(3, batch_shape=[2]),
    "zeros of any shape": lambda tf: tf.linalg.LinearOperatorZeros(
        2, 3, is_square=False, is_self_adjoint=False
    ),
}
METHODS = {
    "to_dense": lambda tf, o: o.to_dense(),
    "matvec": lambda tf, o: o.matvec(tf.constant([1.0, -2.0, 3.0])),
    "adjoint": lambda tf, o: o.adjoint().to_dense(),
    "diag_part": lambda tf, o: o.diag_part(),
    "determinant": lambda tf, o: o.determinant(),
    "log_abs_determinant": lambda tf, o: o.log_abs_determinant(),
    "solve": lambda tf, o: o.solvevec(tf.constant([1.0, -2.0, 3.0])),
    "hints": lambda tf, o: [
        bool(x) for x in (o.is_self_adjoint, o.is_non_singular, o.is_positive_definite)
    ],
}
CASES = [
    Case(f"{method} of {kind}", lambda tf, o=make, m=call: m(tf, o(tf)), atol=1e-6)
    for kind, make in OPERATORS.items()
    for method, call in METHODS.items()
    # Two rows do not go with a right side of three: which refusal comes first is not compared.
    if (kind, method) != ("zeros of any shape", "solve")
]


@over(CASES)
def test_linear_operators(case, substrate):
    assert_as_tensorflow(case, substrate)


@over(
    [
        Case(
            f"{a} and {b}",
            lambda tf, a=a, b=b: list(
                tf.raw_ops.BroadcastGradientArgs(
                    s0=tf.constant(a, tf.int32), s1=tf.constant(b, tf.int32)
                )
            ),
        )
        for a, b in [([2, 3], [3]), ([1, 3], [2, 3]), ([], [2]), ([1], [1]), ([1, 1], [1])]
    ]
)
def test_gradients_of_broadcasting(case, substrate):
    assert_as_tensorflow(case, substrate)


def _of_version_1(tf):
    tf.compat.v1.set_random_seed(301)
    first = tf.random.normal([2])
    tf.compat.v1.random.set_random_seed(301)
    value = tf.compat.v1.placeholder_with_default([1.0, 2.0], [None])
    return value, first, tf.random.normal([2])


@over([Case("TensorFlow 1", _of_version_1)])
def test_names_of_tensorflow_1(case, substrate):
    assert_as_tensorflow(case, substrate)


def _dimensions(tf):
    dims = tf.TensorShape([2, None, 3]).dims
    again = tf.TensorShape(dims)
    return [
        str(dims),
        [str(d) for d in dims],
        [d.value or "None" for d in dims],
        dims[0] == 2,
        int(dims[0] * dims[2] + 1),
        again[0],
        str(again.as_list()),
        tf.compat.dimension_value(dims[1]) or "None",
    ]


def _merged(tf):
    two, unknown = tf.TensorShape([2, None]).dims
    merged = [str(a.merge_with(b)) for a in (two, unknown) for b in (two, unknown, 2, None)]
    return [merged, [a.is_compatible_with(3) for a in (two, unknown)], two.merge_with(3)]


@over(
    [
        Case("dimensions", _dimensions),
        Case("merged with another", _merged),
        Case(
            "merged",
            lambda tf: [
                str(a.merge_with(b))
                for a in tf.TensorShape([2, None]).dims
                for b in [*tf.TensorShape([2, None]).dims, 2, None]
            ],
        ),
    ]
)
def test_dimensions_have_values(case, substrate):
    assert_as_tensorflow(case, substrate)


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_a_missing_name_of_tensorflow_1_is_not_said_to_be_unknown(substrate):
    with pytest.raises(AttributeError, match=r"tf\.compat\.v1\.metrics is not in tf_substrates"):
        tf_of(substrate).compat.v1.metrics  # noqa: B018  # what is read is missing


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_structures_up_to_a_shallow_one(substrate):
    nest = tf_of(substrate).python.util.nest
    tree = {"a": [1, (2, 3)], "b": [4, 5]}
    shallow = {"a": [0, 0], "b": 0}
    assert nest.flatten_up_to(shallow, tree) == [1, (2, 3), [4, 5]]
    assert nest.map_structure_up_to(shallow, str, tree) == {"a": ["1", "(2, 3)"], "b": "[4, 5]"}
    assert nest.flatten_with_tuple_paths(tree)[2] == (("a", 1, 1), 3)
    assert list(nest.yield_flat_paths([1, {"k": 2}])) == [(0,), (1, "k")]
    no_tuples = nest.get_traverse_shallow_structure(lambda x: not isinstance(x, tuple), tree)
    assert no_tuples == {"a": [True, False], "b": [True, True]}
    with pytest.raises(ValueError, match="same sequence length"):
        nest.assert_shallow_structure([1, 2, 3], [1, 2])
    with pytest.raises(TypeError, match="must also be a sequence"):
        nest.assert_shallow_structure([1], 1)
    with pytest.raises(TypeError, match="same sequence type"):
        nest.assert_shallow_structure([1], (1,))


def pair_of(tf):
    """A class of values made of two tensors, as libraries write them."""

    class Pair(tf.__internal__.CompositeTensor):
        def __init__(self, first, second):
            self.first, self.second = first, second

        @property
        def _type_spec(self):
            return PairSpec()

    class PairSpec(tf.TypeSpec):
        value_type = Pair

        def _component_specs(self):
            raise NotImplementedError

        def _serialize(self):
            return ()

        def _to_components(self, value):
            return [value.first, value.second]

        def _from_components(self, components):
            return Pair(*components)

    return Pair


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_nests_look_into_values_made_of_tensors(substrate):
    results = []
    for tf in (tensorflow, tf_of(substrate)):
        value = {"a": pair_of(tf)(tf.constant(1.0), tf.constant(2.0)), "b": tf.constant(3.0)}
        doubled = tf.nest.map_structure(lambda x: x * 2, value, expand_composites=True)
        results.append([float(x) for x in tf.nest.flatten(doubled, expand_composites=True)])
        results.append([len(tf.nest.flatten(value)), type(doubled["a"]).__name__])
    assert results[:2] == results[2:] == [[2.0, 4.0, 6.0], [2, "Pair"]]


@over(
    [
        Case(
            "spec",
            lambda tf: [
                a.is_subtype_of(b)
                for a in (tf.TensorSpec([2]), tf.TensorSpec([None]))
                for b in (tf.TensorSpec([2]), tf.TensorSpec([None]), tf.TensorSpec([2], tf.int32))
            ],
        ),
        Case(
            "common supertype",
            lambda tf: str(
                tf.TensorSpec([2, 3]).most_specific_common_supertype([tf.TensorSpec([2, 4])]).shape
            ),
        ),
    ]
)
def test_type_specs(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_functions_take_shapes_that_are_known():
    tf = tf_of("jax")
    zeros = tf.function(lambda shape, x: tf.zeros(shape) + x)
    assert zeros(np.array([2, 3]), tf.constant(1.0)).shape == (2, 3)
    assert zeros(np.array([4]), tf.constant(1.0)).shape == (4,)


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_private_names_that_libraries_import(substrate):
    identity = importlib.import_module(f"tf_substrates.{substrate}.tf.python.util.object_identity")
    first, second = [1], [1]
    keys = {identity.Reference(x) for x in (first, first, second)}
    assert len(keys) == 2
    assert identity.Reference(first).deref() is first
    iterators = importlib.import_module(
        f"tf_substrates.{substrate}.tf.python.data.ops.iterator_ops"
    )
    assert not isinstance(first, iterators.OwnedIterator)
    assert isinstance(iter(tf_of(substrate).data.Dataset.range(2)), iterators.OwnedIterator)


def test_keras_can_be_named_and_not_made():
    keras = importlib.import_module("tf_substrates.jax.keras")

    class Layer(keras.layers.Layer):
        pass

    with pytest.raises(NotImplementedError, match=r"Layer needs Keras.*What to do"):
        Layer()


def rewritten(source, place, module="p.m"):
    return as_text(source, edits_of(source, place, "p", module=module))


def test_strings_with_a_place_for_a_module_are_names_of_modules():
    place = Substrate("jax", modules={"p": "p_jax"})
    assert rewritten("load('p.python.{}'.format(x))", place) == "load('p_jax.python.{}'.format(x))"
    assert rewritten("load('p.python.%s' % x)", place) == "load('p_jax.python.%s' % x)"
    assert rewritten("load('p.python')", place) == "load('p_jax.python')"
    assert rewritten("open('p.lark')", place) == "open('p.lark')"
    kept = "print('q.{}', 'see p.{} and more')"
    assert rewritten(kept, place) == kept


def test_tensorflow_1_is_a_module_of_its_own():
    place = Substrate("jax", modules={"p": "p_jax"})
    assert (
        rewritten("import tensorflow.compat.v1 as tf1", place)
        == "import tf_substrates.jax.tf.compat.v1 as tf1"
    )


def test_modules_import_what_an_omitted_one_would_have():
    place = Substrate(
        "jax", modules={"p": "p_jax"}, omitted=frozenset({"p.a"}), imports={"p": ("p.b.c",)}
    )
    assert rewritten("x = 1", place, "p") == "import p_jax.b.c; x = 1"
    assert rewritten("x = 1", place) == "x = 1"


def test_modes_stay_where_a_library_wants_tensorflow_s_way():
    place = Substrate("jax", modules={"p": "p_jax"}, as_tensorflow=frozenset({"p.m"}))
    assert rewritten("JAX_MODE = False", place) == "JAX_MODE = False"
    assert rewritten("JAX_MODE = False", place, "p.other") == "JAX_MODE = True"


def test_what_a_known_library_needs_is_added(monkeypatch):
    known = known_libraries.Library(
        omit=("p.keras",),
        replace={"p.twin": "tf_substrates.{}.tf", "tf_keras": "tf_substrates.{}.keras"},
        as_tensorflow=("p.seeds",),
    )
    monkeypatch.setitem(known_libraries.LIBRARIES, "p", known)
    place = known_libraries.substrate("jax", {"p": "p_jax"}, omit=["p.other"])
    assert place.omits("p.keras.layers")
    assert place.omits("p.other")
    assert place.as_tensorflow == {"p.seeds"}
    assert rewritten("from p import twin", place) == "from tf_substrates.jax import tf as twin"
    assert rewritten("import tf_keras", place) == "import tf_substrates.jax.keras as tf_keras"
    assert known_libraries.substrate("jax", {"q": "q_jax"}).omitted == frozenset()


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_attributes_are_assigned_as_they_are(substrate):
    tf_of(substrate)
    structures = importlib.import_module(
        f"tf_substrates.{substrate}.tf.python.trackable.data_structures"
    )
    value = [1]
    assert structures.sticky_attribute_assignment(trackable=None, name="a", value=value) is value


def test_a_twin_of_numpy_gives_plain_arrays():
    static = importlib.import_module("tf_substrates.numpy.static")
    total = static.reduce_prod(static.convert_to_tensor([2, 3]))
    assert type(static.concat([[1], [2]], 0)) is np.ndarray
    assert total.dtype == np.int32
    assert int(total) == 6


def test_a_twin_of_numpy_takes_what_numpy_takes():
    static = importlib.import_module("tf_substrates.numpy.static")
    joined = static.concat([[], np.array([2, 3], np.int32), []], axis=0)
    assert joined.dtype == np.int32
    assert joined.tolist() == [2, 3]
    assert static.concat([[], []], axis=0).shape == (0,)
    assert int(static.gather(np.array([4, 5, 6]), -1)) == 6
    assert static.gather(np.array([[4, 5], [6, 7]]), [0, -1], axis=1).tolist() == [[4, 5], [6, 7]]
    assert int(static.reduce_sum(np.array([True, False, True]))) == 2
    assert static.where(np.array([1, 0]), 7, [8, 9]).tolist() == [7, 9]


@over(
    [
        Case(
            "a linear operator and a tensor",
            lambda tf: (
                tf.debugging.assert_same_float_dtype(
                    [
                        tf.linalg.LinearOperatorFullMatrix(tf.eye(2, dtype=tf.float64)),
                        tf.constant(1.0, tf.float64),
                    ]
                ).name
            ),
        ),
        Case(
            "another dtype",
            lambda tf: tf.debugging.assert_same_float_dtype(
                [tf.linalg.LinearOperatorFullMatrix(tf.eye(2)), tf.constant(1.0, tf.float64)]
            ),
        ),
    ]
)
def test_the_same_float_dtype(case, substrate):
    assert_as_tensorflow(case, substrate)
