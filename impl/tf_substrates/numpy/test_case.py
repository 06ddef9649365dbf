"""tf.test.TestCase. A module of its own, imported when a test asks for it."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tf_substrates.numpy import dtypes, nest
from tf_substrates.numpy.compiled_tests import values_of
from tf_substrates.numpy.errors import InvalidArgumentError, OpError

try:
    # TensorFlow's TestCase is Abseil's; what a test takes from there is there where Abseil is.
    from absl.testing import absltest as unittest
except ModuleNotFoundError:
    import unittest  # type: ignore[no-redef]

JAX_MODE = False


def _array(value: Any) -> np.ndarray:
    value = values_of(value)
    if hasattr(value, "__tf_tensor__"):
        value = value.__tf_tensor__()
    array = np.asarray(value)
    # What NumPy's own comparisons do not take: bfloat16 and smaller floats.
    return array.astype(np.float32) if array.dtype.kind == "V" else array.view(np.ndarray)


class TestCase(unittest.TestCase):
    """A test with assertions about arrays, as tf.test.TestCase has them.

    What is compared may be tensors, arrays, numbers, and in assertAllClose structures of these.
    """

    def evaluate(self, tensors: Any) -> Any:
        """The values as NumPy arrays, in their structure; a function is called first."""
        if callable(tensors) and not hasattr(tensors, "__tf_tensor__"):
            return self.evaluate(tensors())
        return nest.map_structure(_evaluated, values_of(tensors))

    @contextlib.contextmanager
    def session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Iterator[None]:
        """Nothing is a session here: what the block computes is computed at once."""
        yield

    cached_session = session

    def get_temp_dir(self) -> str:
        """A folder that is gone when the test has ended."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def evaluate_if_both_tensors(self, a: Any, b: Any) -> tuple:
        return a, b

    # Equal, and close.

    def assertAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Asserts one shape and equal elements, of which NaN equals NaN."""
        x, y = _array(a), _array(b)
        self._assert_shapes(x, y, msg)
        np.testing.assert_array_equal(_texts(x), _texts(y), err_msg=str(msg or ""))

    def assertNotAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        if self._holds(self.assertAllEqual, a, b):
            self.fail(f"The two values are equal at all elements. {msg or ''}")

    def assertAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None
    ) -> None:
        """Asserts one structure, one shape of each leaf, and |a - b| <= atol + rtol |b|."""
        self._close(a, b, rtol, atol, msg, "")

    def _close(self, a: Any, b: Any, rtol: float, atol: float, msg: Any, path: str) -> None:
        a = a._asdict() if hasattr(a, "_asdict") else a
        b = b._asdict() if hasattr(b, "_asdict") else b
        if isinstance(a, dict) != isinstance(b, dict):
            raise ValueError(
                f"Can't compare dict to non-dict, {type(a)} vs {type(b)} at '{path}'. {msg or ''}"
            )
        if isinstance(a, dict):
            self.assertCountEqual(a, b, f"mismatched keys at '{path}'. {msg or ''}")
            for key in a:
                self._close(a[key], b[key], rtol, atol, msg, f"{path}[{key}]")
        elif isinstance(a, (list, tuple)) and _is_structure(a, b):
            self.assertEqual(len(a), len(b), f"Mismatched length at '{path}'. {msg or ''}")
            for i, (left, right) in enumerate(zip(a, b, strict=True)):
                self._close(left, right, rtol, atol, msg, f"{path}[{i}]")
        else:
            x, y = _array(a), _array(b)
            where = f"Mismatched value at '{path}'. {msg or ''}" if path else str(msg or "")
            self._assert_shapes(x, y, where)
            np.testing.assert_allclose(x, y, rtol, atol, equal_nan=True, err_msg=where)

    def assertNotAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None
    ) -> None:
        if self._holds(self.assertAllClose, a, b, rtol=rtol, atol=atol):
            self.fail(f"The two values are close at all elements. {msg or ''}")

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: Any = None,
    ) -> None:
        """assertAllClose with the larger tolerances of the smaller of the two dtypes."""
        seen = {np.asarray(value).dtype.name for value in (a, b)}
        for names, wider, higher in (
            ({"float32", "complex64"}, float_rtol, float_atol),
            ({"float16"}, half_rtol, half_atol),
            ({"bfloat16"}, bfloat16_rtol, bfloat16_atol),
        ):
            if seen & names:
                rtol, atol = max(rtol, wider), max(atol, higher)
        self.assertAllClose(a, b, rtol=rtol, atol=atol, msg=msg)

    def assertNear(self, f1: Any, f2: Any, err: float, msg: Any = None) -> None:
        self.assertTrue(
            f1 == f2 or abs(f1 - f2) <= err,
            f"{f1!r} != {f2!r} +/- {err!r}{f' ({msg})' if msg is not None else ''}",
        )

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: Any = None) -> None:
        self.assertEqual(len(farray1), len(farray2), msg)
        for f1, f2 in zip(farray1, farray2, strict=True):
            self.assertNear(float(f1), float(f2), err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: Any = None) -> None:
        self.assertTrue(np.linalg.norm(_array(ndarray1) - _array(ndarray2)) < err, msg)

    # Shapes and dtypes.

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: Any = None) -> None:
        self.assertSequenceEqual(tuple(input_a.shape), tuple(input_b.shape), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        found = dtypes.as_dtype(_with_dtype(target).dtype)
        self.assertEqual(found, dtypes.as_dtype(expected_dtype))

    def _assert_shapes(self, x: np.ndarray, y: np.ndarray, msg: Any) -> None:
        self.assertEqual(
            x.shape, y.shape, f"Shape mismatch: expected {x.shape}, got {y.shape}. {msg or ''}"
        )

    # All elements.

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        self._assert_all(a, _array(a) > comparison_target, f"> {comparison_target}")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        self._assert_all(a, _array(a) < comparison_target, f"< {comparison_target}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        self._assert_all(a, _array(a) >= comparison_target, f">= {comparison_target}")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        self._assert_all(a, _array(a) <= comparison_target, f"<= {comparison_target}")

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        x = _array(target)
        low = x > lower_bound if open_lower_bound else x >= lower_bound
        high = x < upper_bound if open_upper_bound else x <= upper_bound
        ends = "(["[not open_lower_bound], ")]"[not open_upper_bound]
        self._assert_all(target, low & high, f"in {ends[0]}{lower_bound}, {upper_bound}{ends[1]}")

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        self._assert_all(target, np.isin(_array(target), list(expected_set)), f"in {expected_set}")

    def _assert_all(self, a: Any, holds: np.ndarray, what: str) -> None:
        if not np.all(holds):
            bad = _array(a)[~np.asarray(holds)]
            self.fail(f"{bad.size} of {np.size(holds)} elements are not {what}: {bad}")

    # Errors.

    # TensorFlow's, which differs from Abseil's of this name.
    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(  # type: ignore[override]
        self, exception_type: Any, expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """Asserts an error for which a predicate holds, or whose message a pattern is found in."""
        with self.assertRaises(exception_type) as caught:
            yield
        error = caught.exception
        if callable(expected_err_re_or_predicate):
            matches = expected_err_re_or_predicate(error)
        else:
            matches = re.search(expected_err_re_or_predicate, str(error))
        if not matches:
            self.fail(f"Exception of type {type(error)}: {error} does not match.")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)

    def assertRaisesIncompatibleShapesError(
        self, exception_type: Any = InvalidArgumentError
    ) -> Any:
        return self.assertRaisesWithPredicateMatch(
            exception_type, r"Incompatible shapes|Dimensions must be equal|required broadcastable"
        )

    # Python 3.12 has taken this name of assertRaisesRegex away.
    def assertRaisesRegexp(
        self, expected_exception: Any, expected_regex: Any, *args: Any, **kwargs: Any
    ) -> Any:
        return self.assertRaisesRegex(expected_exception, expected_regex, *args, **kwargs)

    def _holds(self, assertion: Callable, *args: Any, **kwargs: Any) -> bool:
        try:
            assertion(*args, **kwargs)
        except AssertionError:
            return False
        return True


def _evaluated(value: Any) -> Any:
    if value is None:
        return None
    array = np.asarray(value.__tf_tensor__() if hasattr(value, "__tf_tensor__") else value)
    return array.view(np.ndarray)[()]


def _with_dtype(value: Any) -> Any:
    return value if hasattr(value, "dtype") else np.asarray(value)


def _texts(array: np.ndarray) -> np.ndarray:
    """Strings as TensorFlow holds them: bytes."""
    return np.char.encode(array).astype(object) if array.dtype.kind == "U" else array


def _is_structure(a: Any, b: Any) -> bool:
    """Whether two sequences are compared item by item, and not as the arrays that they make."""
    return isinstance(b, (list, tuple)) and not (_is_rectangular(a) and _is_rectangular(b))


def _is_rectangular(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind != "O"
    except ValueError:
        return False
