"""Every public bijector: there and back, and its determinant is that of its derivatives.

The constructor arguments are those of tests/substrates/libraries, which compares the results with
TensorFlow's. Here each bijector is compared with itself, so nothing needs TensorFlow. On JAX each is
compiled, and the derivatives are those of JAX; on NumPy they are differences of values.
"""

import inspect

import numpy as np
import tensorflow.compat.v2 as tf
import tensorflow_probability as tfp
from absl.testing import parameterized
from tensorflow_probability.python import bijectors as tfb
from tensorflow_probability.python.internal import test_util

from tests.substrates.libraries.probability.bijectors import BIJECTORS, Making

JAX_MODE = False

if JAX_MODE:
    import jax

LEFT_OUT = {
    "AbsoluteValue": "has two inverses",
    "AutoCompositeTensorBijector": "is a base class",
    "AutoregressiveNetwork": "is made of Keras layers",
    "BatchNormalization": "is made of Keras layers",
    "Bijector": "is a base class",
    "Composition": "is a base class",
    "Glow": "is made of Keras layers",
    "GlowDefaultExitNetwork": "is made of Keras layers",
    "GlowDefaultNetwork": "is made of Keras layers",
    "Restructure": "names the parts of its argument, which have no one array",
}
# Their determinants are relative to coordinates of their own: of a simplex less one of its corners,
# or of a correlation matrix below its diagonal.
OTHER_COORDINATES = {"IteratedSigmoidCentered", "SoftmaxCentered", "CorrelationCholesky"}
# TensorFlow Probability mixes float32 numbers of its own with what it is given, on TensorFlow too.
FLOAT32 = {"RayleighCDF", "Split"}
# Its inverse is off by some hundredths on TensorFlow too.
NOT_THERE_AND_BACK = {"Softfloor"}
NAMES = [(name.replace(": ", "_"), name) for name in BIJECTORS]


def _coordinates(arrays):
    """Where the numbers are that parts are made of: half of a triangular or symmetric matrix."""
    flat = []
    for array in arrays:
        a = np.asarray(array)
        half = a.ndim == 2 and (not np.triu(a, 1).any() or np.array_equal(a, a.T))
        flat.append(np.tril(np.ones_like(a)).astype(bool) if half else np.ones_like(a, bool))
    return flat


class EveryBijectorTest(test_util.TestCase):
    def testTheTableHasEveryPublicClass(self):
        classes = {name for name in dir(tfb) if inspect.isclass(getattr(tfb, name))}
        tabled = {name.partition(":")[0] for name in BIJECTORS}
        self.assertSameElements(classes, tabled | set(LEFT_OUT))
        self.assertEmpty(tabled & set(LEFT_OUT))

    def testFloat64FailsAsOnTensorFlow(self):
        with self.assertRaisesRegex(TypeError, "float64 != tf.float32"):
            self._seen("RayleighCDF", np.float64)
        (log_det,) = self._seen("Split", np.float64)["log_det"]
        self.assertEqual(np.float32, log_det.dtype)

    @parameterized.named_parameters(*NAMES)
    def testAgreesWithItself(self, name):
        for dtype in (np.float32,) if name in FLOAT32 else (np.float32, np.float64):
            seen = self._seen(name, dtype)
            wide = {"rtol": 1e-8, "atol": 1e-8} if dtype == np.float64 else {"rtol": 2e-4}
            for given, back in zip(seen["parts"], seen["back"], strict=True):
                self.assertEqual(given.shape, back.shape)
                self.assertEqual(dtype, back.dtype)
                if name not in NOT_THERE_AND_BACK:
                    self.assertAllClose(given, back, **wide)
            for y in seen["forward"]:
                self.assertEqual(dtype, y.dtype)
            for there, back in zip(seen["log_det"], seen["inverse_log_det"], strict=True):
                self.assertEqual(dtype, there.dtype)
                if name not in NOT_THERE_AND_BACK:
                    self.assertAllClose(there, -back, **wide)

    @parameterized.named_parameters(
        *(named for named in NAMES if named[1] not in OTHER_COORDINATES)
    )
    def testDeterminant(self, name):
        make, parts, ndims = BIJECTORS[name]
        parts = [np.asarray(part, np.float64) for part in parts]
        b = make(Making(tf, tfp, tf.float64))
        given = _coordinates(parts)
        image = _coordinates(self._forward(b, parts))

        def function(x):
            filled, at = [], 0
            for part, where in zip(parts, given, strict=True):
                filled.append(_filled(part, where, x[at : at + where.sum()]))
                at += where.sum()
            found = self._forward(b, filled)
            return tf.concat([y[where] for y, where in zip(found, image, strict=True)], 0)

        at = np.concatenate([part[where] for part, where in zip(parts, given, strict=True)])
        jacobian = jax.jit(jax.jacrev(function))(at) if JAX_MODE else _differences(function, at)
        _, wanted = np.linalg.slogdet(np.transpose(jacobian) @ jacobian)
        x = parts[0] if len(parts) == 1 else parts
        found = self.evaluate(b.forward_log_det_jacobian(x, ndims))
        # A constant one of a batch of numbers stands once.
        leaves = [np.broadcast_to(a, at.shape if ndims == 0 else a.shape) for a in _leaves(found)]
        self.assertAllClose(wanted / 2, sum(map(np.sum, leaves)), rtol=1e-5, atol=1e-5)

    def _forward(self, b, parts):
        return tf.nest.flatten(b.forward(parts[0] if len(parts) == 1 else list(parts)))

    def _seen(self, name, dtype):
        make, parts, ndims = BIJECTORS[name]
        parts = [np.asarray(part, dtype) for part in parts]

        def function(*parts):
            b = make(Making(tf, tfp, tf.as_dtype(dtype)))
            x = parts[0] if len(parts) == 1 else list(parts)
            y = b.forward(x)
            # Copies, because bijectors know what they made.
            copy = tf.nest.map_structure(tf.identity, y)
            y_ndims = b.forward_event_ndims(ndims)
            return {
                "forward": tf.nest.flatten(y),
                "back": tf.nest.flatten(b.inverse(copy)),
                "log_det": tf.nest.flatten(b.forward_log_det_jacobian(x, ndims)),
                "inverse_log_det": tf.nest.flatten(b.inverse_log_det_jacobian(copy, y_ndims)),
            }

        seen = (jax.jit(function) if JAX_MODE else function)(*map(tf.constant, parts))
        return {"parts": parts, **self.evaluate(seen)}


def _leaves(value):
    return [np.asarray(leaf) for leaf in tf.nest.flatten(value)]


def _filled(part, where, values):
    """`part` with `values` where `where` holds."""
    positions = np.zeros(where.shape, np.int32)
    positions[where] = np.arange(where.sum())
    return tf.where(where, tf.gather(values, positions), part)


def _differences(function, at, step=1e-6):
    columns = []
    for i in range(len(at)):
        moved = np.eye(len(at))[i] * step
        ends = [np.asarray(function(tf.constant(at + end))) for end in (-moved, moved)]
        columns.append((ends[1] - ends[0]) / (2 * step))
    return np.stack(columns, 1)


if __name__ == "__main__":
    test_util.main()
