"""The third opinion: it names who is wrong, and keeps silent where nobody can tell."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harnesses.cell.outcomes import in_words
from harnesses.engine import opinion
from harnesses.engine.judge import Judge

X = np.linspace(0.1, 3, 7, dtype=np.float32)


def _of_jax(fun, *args):
    return jax.tree.map(np.asarray, jax.jit(fun)(*args))


def opinion_of(fun, args, expected, actual):
    return opinion.third_opinion(opinion.exact_result(fun, args), args, expected, actual)


def _off_by(array, ulps):
    return (array + ulps * np.spacing(array)).astype(array.dtype)


@pytest.mark.parametrize(
    ("fun", "who"),
    [
        (jnp.sin, "long double"),
        (jax.lax.bessel_i0e, "scipy"),
        (lambda x: jnp.cumsum(x * 2), "float64"),
        (jax.vmap(lambda x: jnp.sin(x) * x), "float64"),
    ],
)
def test_the_one_that_is_off_is_named(fun, who):
    right = _of_jax(fun, X)
    wrong = _off_by(right, 9)
    found = opinion_of(fun, (X,), right, wrong)
    assert (found.culprit, found.opinion) == ("judged", who)
    assert found.jax_ulps <= 2
    assert found.judged_ulps == pytest.approx(9, abs=2)
    assert opinion_of(fun, (X,), wrong, right).culprit == "jax"
    other = opinion_of(fun, (X,), _off_by(right, 9), _off_by(right, -8))
    assert other.culprit == "both"


def test_digits_of_float64_come_from_long_doubles_alone():
    with jax.enable_x64(True):
        x = X.astype(np.float64)
        right = _of_jax(jnp.exp, x)
        assert opinion_of(jnp.exp, (x,), right, _off_by(right, 5)).culprit == "judged"
        twice = _of_jax(lambda x: jnp.exp(jnp.exp(x)), x)
        assert opinion_of(lambda x: jnp.exp(jnp.exp(x)), (x,), twice, 2 * twice) is None


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: jnp.nextafter(x, x + 1),
        lambda x: jax.lax.reduce_precision(x, 5, 3),
        lambda x: (jnp.sin(x) * x).astype(jnp.float32),
        lambda x: jax.random.uniform(jax.random.key(0), x.shape) * x,
    ],
)
def test_nobody_can_tell(fun):
    right = _of_jax(fun, X)
    assert opinion_of(fun, (X,), right, _off_by(right, 9)) is None


def test_only_disputed_elements_count():
    """Elsewhere the two agree, and a rounding of both is no matter of theirs."""
    right = _of_jax(jnp.sin, X)
    wrong = right.copy()
    wrong[3] = _off_by(right[3], 50)
    found = opinion_of(jnp.sin, (X,), right, wrong)
    assert (found.culprit, found.judged_ulps) == ("judged", pytest.approx(50, abs=1))


def test_the_element_of_the_largest_dispute_is_told():
    right = _of_jax(jnp.sin, X)
    wrong = right.copy()
    wrong[[2, 5]] = 9, 0.25
    found = opinion_of(jnp.sin, (X,), right, wrong)
    assert found.example.startswith(f"of {X[2]!s}: JAX {right[2]!s}, judged 9.0, long double 0.")
    composed = jax.vmap(lambda x: jnp.sin(x) * x)
    found = opinion_of(composed, (X,), _of_jax(composed, X), np.full_like(X, 9))
    assert found.example.startswith("at [0]: JAX ")


def test_an_example_of_two_operands():
    right = _of_jax(jax.lax.div, X, np.full_like(X, 2))
    found = opinion_of(jax.lax.div, (X, np.full_like(X, 2)), right, right + 1)
    half = np.longdouble(X[0]) / 2
    shown = map(str, (X[0], right[0], right[0] + 1, half))
    assert found.example == "of {}, 2.0: JAX {}, judged {}, long double {}".format(*shown)


def test_an_example_of_operands_that_are_repeated():
    x, y = X[:, None], np.float32([[2, 3]])
    right = np.asarray(jax.jit(jnp.arctan2)(*np.broadcast_arrays(x, y)))
    wrong = right.copy()
    wrong[2, 1] = 9
    exact = opinion.Exact([np.arctan2(x.astype(np.longdouble), y)], "long double")
    found = opinion.third_opinion(exact, (x, y), right, wrong)
    assert found.example.startswith(f"of {X[2]!s}, 3.0: JAX ")


def test_overflow_is_judged_in_the_dtype():
    x = np.float32([200, 1])
    right = _of_jax(jnp.exp, x)
    wrong = np.float32([3e38, right[1]])
    found = opinion_of(jnp.exp, (x,), right, wrong)
    assert (found.culprit, found.jax_ulps, found.judged_ulps) == ("judged", 0.0, np.inf)


def test_the_judge_asks_once_for_the_cells_of_a_harness(monkeypatch):
    asked = []
    monkeypatch.setattr(opinion, "exact_result", lambda *question: asked.append(question))
    judge, args = Judge(None), (X,)
    for question in [(jnp.sin, args), (jnp.sin, args), (jnp.cos, args), (jnp.cos, (X,))]:
        judge._exact_result(*question)
    assert [fun for fun, _ in asked] == [jnp.sin, jnp.cos, jnp.cos]


def test_a_row_says_it_in_words():
    row = {"culprit": "jax", "jax_ulps": 12.0, "judged_ulps": 0.0, "opinion": "float64"}
    said = in_words({**row, "impl": "jax2onnx"})
    assert said == "JAX is wrong: by float64, JAX is off by 12 ULPs and jax2onnx by 0"
    assert in_words({"culprit": None}) == ""


def test_the_judge_puts_it_into_the_row(tmp_path, parsed):
    from harnesses.engine.matrix import Matrix

    options = parsed(
        "--impl=tests.judge.fake_converters:Wrong",
        f"--ledger={tmp_path}",
        f"--results={tmp_path / 'rows.jsonl'}",
        "--name=sin_float32",
    )
    matrix = Matrix(options, "main")
    row, problem = matrix.run(next(iter(matrix.cells.values())))
    matrix.close()
    assert (row["outcome"], row["culprit"], row["opinion"]) == ("pass", "judged", "long double")
    assert problem is None
