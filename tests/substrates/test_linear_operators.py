"""tf.linalg.LinearOperator: every operator's methods against TensorFlow's."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.substrates.comparing import SUBSTRATES, Case, assert_as_tensorflow, over, tf_of

MATRIX = np.array([[2.0, 1.0, 0.0], [0.5, 3.0, -1.0], [0.25, 0.0, 4.0]])
BATCH = np.stack([MATRIX, MATRIX * 2 + np.eye(3)])
COMPLEX = MATRIX + 1j * MATRIX.T
DEFINITE = MATRIX @ MATRIX.T

OPERATORS = {
    "full": lambda tf: tf.linalg.LinearOperatorFullMatrix(tf.constant(MATRIX)),
    "full float32": lambda tf: tf.linalg.LinearOperatorFullMatrix(tf.constant(MATRIX, tf.float32)),
    "full batch": lambda tf: tf.linalg.LinearOperatorFullMatrix(tf.constant(BATCH)),
    "full complex": lambda tf: tf.linalg.LinearOperatorFullMatrix(tf.constant(COMPLEX)),
    "full definite": lambda tf: tf.linalg.LinearOperatorFullMatrix(
        tf.constant(DEFINITE), is_self_adjoint=True, is_positive_definite=True
    ),
    "wide": lambda tf: tf.linalg.LinearOperatorFullMatrix(tf.constant(MATRIX[:2])),
    "singular by its hint": lambda tf: tf.linalg.LinearOperatorFullMatrix(
        tf.constant(MATRIX), is_non_singular=False
    ),
    "empty batch": lambda tf: tf.linalg.LinearOperatorFullMatrix(tf.constant(BATCH[:0])),
    "lower": lambda tf: tf.linalg.LinearOperatorLowerTriangular(tf.constant(MATRIX)),
    "lower batch": lambda tf: tf.linalg.LinearOperatorLowerTriangular(tf.constant(BATCH)),
    "lower complex": lambda tf: tf.linalg.LinearOperatorLowerTriangular(tf.constant(COMPLEX)),
    "diagonal": lambda tf: tf.linalg.LinearOperatorDiag(tf.constant([1.0, -2.0, 3.0], tf.float64)),
    "diagonal batch": lambda tf: tf.linalg.LinearOperatorDiag(tf.constant(BATCH[:, 0] + 1)),
    "diagonal complex": lambda tf: tf.linalg.LinearOperatorDiag(tf.constant([1 + 1j, 2, -3j])),
    "diagonal definite": lambda tf: tf.linalg.LinearOperatorDiag(
        tf.constant([1.0, 2.0, 3.0], tf.float64), is_positive_definite=True
    ),
    "diagonal with NaN": lambda tf: tf.linalg.LinearOperatorDiag(
        tf.constant([1.0, np.nan, 0.0], tf.float64)
    ),
    "identity": lambda tf: tf.linalg.LinearOperatorIdentity(3, dtype=tf.float64),
    "identity batch": lambda tf: tf.linalg.LinearOperatorIdentity(3, [2], tf.float64),
    "scaled": lambda tf: tf.linalg.LinearOperatorScaledIdentity(3, tf.constant(2.0, tf.float64)),
    "scaled batch": lambda tf: tf.linalg.LinearOperatorScaledIdentity(
        3, tf.constant([-2.0, 3.0], tf.float64)
    ),
    "scaled definite": lambda tf: tf.linalg.LinearOperatorScaledIdentity(
        3, tf.constant(2.0, tf.float64), is_positive_definite=True
    ),
    "adjoint": lambda tf: tf.linalg.LinearOperatorLowerTriangular(tf.constant(COMPLEX)).H,
    "inverse": lambda tf: tf.linalg.LinearOperatorFullMatrix(tf.constant(BATCH)).inverse(),
    "product": lambda tf: (
        tf.linalg.LinearOperatorFullMatrix(tf.constant(BATCH))
        @ tf.linalg.LinearOperatorLowerTriangular(tf.constant(MATRIX))
    ),
}
OPERATORS |= {
    "Kronecker": lambda tf: tf.linalg.LinearOperatorKronecker(
        [
            tf.linalg.LinearOperatorFullMatrix(tf.constant(BATCH, tf.complex128) + 1j),
            tf.linalg.LinearOperatorFullMatrix(tf.constant(COMPLEX[:2, :2])),
        ]
    ),
    "block diagonal": lambda tf: tf.linalg.LinearOperatorBlockDiag(
        [
            tf.linalg.LinearOperatorLowerTriangular(tf.constant(BATCH)),
            tf.linalg.LinearOperatorFullMatrix(tf.constant(MATRIX[:2, :2])),
        ]
    ),
    "block lower triangular": lambda tf: tf.linalg.LinearOperatorBlockLowerTriangular(
        [
            [tf.linalg.LinearOperatorLowerTriangular(tf.constant(MATRIX[:2, :2]))],
            [
                tf.linalg.LinearOperatorFullMatrix(tf.constant(MATRIX[2:, :2])),
                tf.linalg.LinearOperatorFullMatrix(tf.constant(BATCH[:, :1, :1])),
            ],
        ]
    ),
    "low-rank update": lambda tf: tf.linalg.LinearOperatorLowRankUpdate(
        tf.linalg.LinearOperatorFullMatrix(tf.constant(BATCH)),
        u=tf.constant(MATRIX[:, :2]),
        diag_update=tf.constant([2.0, -1.0], tf.float64),
        v=tf.constant(MATRIX[:, 1:]),
    ),
    "definite low-rank update": lambda tf: tf.linalg.LinearOperatorLowRankUpdate(
        tf.linalg.LinearOperatorDiag(
            tf.constant([1.0, 2.0, 3.0], tf.float64), is_positive_definite=True
        ),
        u=tf.constant(MATRIX[:, :1]),
    ),
}


def operand(tf, operator, columns=2, rows=-1):
    """A matrix that an operator multiplies, of its dtype."""
    count = operator.shape[rows] * columns
    values = np.arange(1.0, count + 1).reshape(operator.shape[rows], columns)
    return tf.constant(values, operator.dtype)


def diagonal_like(tf, operator):
    return tf.linalg.LinearOperatorDiag(tf.constant([1.0, -2.0, 3.0], operator.dtype))


METHODS = {
    "dense": lambda tf, o: [o.to_dense(), o.diag_part(), o.trace()],
    "matmul": lambda tf, o: o.matmul(operand(tf, o)),
    "matmul of adjoints": lambda tf, o: o.matmul(
        tf.linalg.adjoint(operand(tf, o, rows=-2)), adjoint=True, adjoint_arg=True
    ),
    "matmul of a batch": lambda tf, o: o @ tf.stack([operand(tf, o)] * 2),
    "matvec": lambda tf, o: o.matvec(operand(tf, o)[:, 0]),
    "matvec, adjoint": lambda tf, o: o.matvec(operand(tf, o, rows=-2)[:, 0], adjoint=True),
    "solve": lambda tf, o: o.solve(operand(tf, o, rows=-2)),
    "solve of adjoints": lambda tf, o: o.solve(
        tf.linalg.adjoint(operand(tf, o)), adjoint=True, adjoint_arg=True
    ),
    "solvevec": lambda tf, o: o.solvevec(operand(tf, o, rows=-2)[:, 0]),
    "determinant": lambda tf, o: o.determinant(),
    "log_abs_determinant": lambda tf, o: o.log_abs_determinant(),
    "cond": lambda tf, o: o.cond(),
    "eigvals": lambda tf, o: o.eigvals(),
    "adjoint": lambda tf, o: [o.adjoint().to_dense(), o.H.H.to_dense()],
    "inverse": lambda tf, o: o.inverse().to_dense(),
    "cholesky": lambda tf, o: o.cholesky().to_dense(),
    "product": lambda tf, o: (o @ OPERATORS["full batch"](tf)).to_dense(),
    "product with a diagonal": lambda tf, o: (o @ diagonal_like(tf, o)).to_dense(),
    "solution of an operator": lambda tf, o: o.solve(diagonal_like(tf, o)).to_dense(),
    "sum": lambda tf, o: o.add_to_tensor(operand(tf, o, columns=3, rows=-2)),
    "shapes": lambda tf, o: [
        str(o.shape),
        str(o.batch_shape),
        str(o.tensor_rank),
        str((int(o.domain_dimension), int(o.range_dimension), o.dtype.name, o.is_square)),
        o.shape_tensor(),
        o.batch_shape_tensor(),
        o.tensor_rank_tensor(),
        o.domain_dimension_tensor(),
        o.range_dimension_tensor(),
    ],
    "another dtype": lambda tf, o: o.matmul(tf.ones([3, 2], tf.float16)),
    "another dimension": lambda tf, o: o.matmul(tf.ones([5, 2], o.dtype)),
}

# Products and solutions with lists of blocks, which are lists.
IN_BLOCKS = {
    "matmul": lambda tf, o, x, y: o.matmul([x, y]),
    "matmul of adjoints": lambda tf, o, x, y: o.matmul(
        [tf.linalg.adjoint(x), tf.linalg.adjoint(y)], adjoint=True, adjoint_arg=True
    ),
    "matvec": lambda tf, o, x, y: o.matvec([x[:, 0], y[:, 0]]),
    "matvec, adjoint": lambda tf, o, x, y: o.matvec([x[:, 0], y[:, 0]], adjoint=True),
    "solve": lambda tf, o, x, y: o.solve([x, y]),
    "solve, adjoint": lambda tf, o, x, y: o.solve([x, y], adjoint=True),
    "solvevec": lambda tf, o, x, y: o.solvevec([x[:, 0], y[:, 0]]),
}
BLOCKS = {"block diagonal": (3, 2), "block lower triangular": (2, 1)}


def in_blocks(tf, kind, call):
    operator = OPERATORS[kind](tf)
    rows = np.arange(1.0, 11.0).reshape(5, 2) + (1j if operator.dtype.is_complex else 0)
    first, second = BLOCKS[kind]
    return call(tf, operator, tf.constant(rows[:first]), tf.constant(rows[-second:]))


@over(
    [
        Case(
            f"{method} of {kind}",
            lambda tf, kind=kind, call=call: in_blocks(tf, kind, call),
            atol=1e-12,
        )
        for kind in BLOCKS
        for method, call in IN_BLOCKS.items()
    ]
    + [
        Case(
            "rows of operators that are too short",
            lambda tf: tf.linalg.LinearOperatorBlockLowerTriangular(
                [[tf.linalg.LinearOperatorIdentity(2)], [tf.linalg.LinearOperatorIdentity(2)]]
            ),
        ),
    ]
)
def test_blocks(case, substrate):
    assert_as_tensorflow(case, substrate)


# Where TensorFlow drops a batch of multiples of the identity, or adds no batch to a matrix.
BATCHES_THAT_TENSORFLOW_LOSES = {
    ("identity batch", "product with a diagonal"),
    ("identity batch", "solution of an operator"),
    ("identity batch", "sum"),
    ("scaled batch", "product with a diagonal"),
    ("scaled batch", "solution of an operator"),
    ("scaled batch", "sum"),
    ("diagonal batch", "sum"),
}

CASES = [
    Case(f"{method} of {name}", lambda tf, m=m, o=o: m(tf, o(tf)), rtol=1e-5, atol=1e-10)
    for name, o in OPERATORS.items()
    for method, m in METHODS.items()
    if (name, method) not in BATCHES_THAT_TENSORFLOW_LOSES
]


def hints(tf):
    def of(o):
        return str([o.is_square, o.is_non_singular, o.is_self_adjoint, o.is_positive_definite])

    return [of(OPERATORS[name](tf)) for name in OPERATORS if name not in ("inverse", "product")]


def tf_variable(tf):
    v = tf.Variable([1.0, 2.0])
    operator = tf.linalg.LinearOperatorDiag(v)
    before = operator.determinant()
    v.assign([3.0, 4.0])
    return [before, operator.determinant(), str(len(operator.trainable_variables))]


MAKING = [
    Case("hints", hints),
    Case("a variable", tf_variable),
    Case("lists", lambda tf: tf.linalg.LinearOperatorFullMatrix([[1.0, 2.0]]).matvec([1.0, 1.0])),
    Case("integers", lambda tf: tf.linalg.LinearOperatorFullMatrix([[1, 2], [3, 4]])),
    Case("a vector", lambda tf: tf.linalg.LinearOperatorFullMatrix([1.0, 2.0])),
    Case("a scalar diagonal", lambda tf: tf.linalg.LinearOperatorDiag(1.0)),
    Case("minus two rows", lambda tf: tf.linalg.LinearOperatorIdentity(-2)),
    Case("a vector of rows", lambda tf: tf.linalg.LinearOperatorIdentity([2])),
    Case("an identity's dtype", lambda tf: tf.linalg.LinearOperatorIdentity(2).to_dense()),
    Case(
        "an identity that is not definite",
        lambda tf: tf.linalg.LinearOperatorIdentity(2, is_positive_definite=False),
    ),
    Case(
        "a diagonal that is not self-adjoint",
        lambda tf: tf.linalg.LinearOperatorDiag([1.0], is_self_adjoint=False),
    ),
    Case(
        "a triangle that is not square",
        lambda tf: tf.linalg.LinearOperatorLowerTriangular([[1.0]], is_square=False),
    ),
    Case("no operators", lambda tf: tf.linalg.LinearOperatorComposition([])),
    Case(
        "definite and singular",
        lambda tf: tf.linalg.LinearOperatorFullMatrix(
            [[1.0]], is_positive_definite=True, is_non_singular=False
        ),
    ),
    Case("singular", lambda tf: tf.linalg.LinearOperatorDiag([1.0, 0.0]).assert_non_singular()),
    Case(
        "not definite", lambda tf: tf.linalg.LinearOperatorDiag([-1.0]).assert_positive_definite()
    ),
    Case(
        "not self-adjoint",
        lambda tf: tf.linalg.LinearOperatorFullMatrix(MATRIX).assert_self_adjoint(),
    ),
    Case("names", lambda tf: [OPERATORS["lower"](tf).H.name, OPERATORS["product"](tf).name]),
]


@over([*CASES, *MAKING])
def test_as_tensorflow(case, substrate):
    assert_as_tensorflow(case, substrate)


@pytest.mark.parametrize("substrate", SUBSTRATES)
@pytest.mark.parametrize(("name", "method"), sorted(BATCHES_THAT_TENSORFLOW_LOSES))
def test_batches_that_tensorflow_loses_are_those_of_the_dense_matrices(name, method, substrate):
    tf = tf_of(substrate)
    with jax.enable_x64(True):
        operator = OPERATORS[name](tf)
        dense = tf.linalg.LinearOperatorFullMatrix(operator.to_dense())
        result = np.asarray(METHODS[method](tf, operator))
        assert result.shape == (2, 3, 3)
        np.testing.assert_allclose(result, METHODS[method](tf, dense), rtol=1e-12)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_pytrees_on_jax(name):
    tf = tf_of("jax")
    with jax.enable_x64(True):
        operator = OPERATORS[name](tf)
        x = operand(tf, operator)
        expected = operator.matmul(x)
        for _ in range(2):
            np.testing.assert_allclose(
                jax.jit(lambda o, v: o.matmul(v))(operator, x), expected, rtol=1e-12
            )
        leaves, structure = jax.tree_util.tree_flatten(operator)
        again = jax.tree_util.tree_unflatten(structure, leaves)
        assert (type(again), again.shape, again.name) == (
            type(operator),
            operator.shape,
            operator.name,
        )
        assert structure == jax.tree_util.tree_structure(OPERATORS[name](tf))


def test_derivatives_and_batches_go_through_operators():
    tf = tf_of("jax")
    matrices = jax.numpy.asarray(BATCH, np.float32)

    def logarithm(matrix):
        return tf.linalg.LinearOperatorLowerTriangular(matrix).log_abs_determinant()

    of_all = jax.vmap(jax.grad(logarithm))(matrices)
    expected = np.stack([np.diag(1 / np.diag(m)) for m in BATCH])
    np.testing.assert_allclose(of_all, expected, rtol=1e-6)
    with tf.GradientTape() as tape:
        tape.watch(matrices)
        y = logarithm(matrices)
    np.testing.assert_allclose(tape.gradient(y, matrices), expected, rtol=1e-6)


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_an_operator_of_ones_own(substrate):
    tf = tf_of(substrate)

    class Reversed(tf.linalg.LinearOperator):
        def __init__(self, size):
            super().__init__(tf.float32, is_square=True)
            self._size = size

        def _shape(self):
            return (self._size, self._size)

        def _matmul(self, x, adjoint=False, adjoint_arg=False):
            return tf.reverse(tf.linalg.adjoint(x) if adjoint_arg else x, [0])

    operator = Reversed(3)
    np.testing.assert_array_equal(operator.matvec([1.0, 2.0, 3.0]), [3, 2, 1])
    np.testing.assert_array_equal(operator.to_dense(), np.eye(3)[::-1])
    np.testing.assert_allclose(operator.determinant(), -1)
    with pytest.raises(NotImplementedError, match="_shape is not implemented for mine"):
        _ = tf.linalg.LinearOperator(tf.float32, name="mine").shape
