"""Bijectors: there and back, determinants, compositions, caches."""

import numpy as np
import tensorflow.compat.v2 as tf
from absl.testing import parameterized
from tensorflow_probability.python import bijectors as tfb
from tensorflow_probability.python import distributions as tfd
from tensorflow_probability.python.internal import tensorshape_util, test_util
from tensorflow_probability.python.math import gradient

JAX_MODE = False
NUMPY_MODE = False

_POSITIVE = np.array([0.2, 0.7, 1.3], np.float32)

_SCALAR = (
    ("exp", lambda: tfb.Exp(), _POSITIVE),
    ("softplus", lambda: tfb.Softplus(), _POSITIVE),
    ("sigmoid", lambda: tfb.Sigmoid(), _POSITIVE),
    ("tanh", lambda: tfb.Tanh(), _POSITIVE / 2),
    ("scale", lambda: tfb.Scale(-3.0), _POSITIVE),
    ("shift", lambda: tfb.Shift([1.0, 2.0, 3.0]), _POSITIVE),
    ("square", lambda: tfb.Square(), _POSITIVE),
    ("power", lambda: tfb.Power(3.0), _POSITIVE),
    ("reciprocal", lambda: tfb.Reciprocal(), _POSITIVE),
    ("ncdf", lambda: tfb.NormalCDF(), _POSITIVE),
    ("gumbel", lambda: tfb.GumbelCDF(0.5, 2.0), _POSITIVE),
    ("weibull", lambda: tfb.WeibullCDF(2.0, 1.5), _POSITIVE),
    ("sinh", lambda: tfb.SinhArcsinh(0.1, 1.2), _POSITIVE),
    ("softsign", lambda: tfb.Softsign(), _POSITIVE),
    ("expm1", lambda: tfb.Expm1(), _POSITIVE),
    ("cube", lambda: tfb.Invert(tfb.Exp()), _POSITIVE),
    ("moyal", lambda: tfb.MoyalCDF(0.5, 2.0), _POSITIVE),
    ("yeo", lambda: tfb.Chain([tfb.Exp(), tfb.Shift(1.0)]), _POSITIVE),
    (
        "spline",
        lambda: tfb.RationalQuadraticSpline(
            bin_widths=[1.0, 1.0, 2.0],
            bin_heights=[1.0, 2.0, 1.0],
            knot_slopes=[1.0, 2.0],
            range_min=-1.0,
        ),
        _POSITIVE,
    ),
)


class ScalarTest(test_util.TestCase):
    @parameterized.named_parameters(*_SCALAR)
    def testThereAndBack(self, make, x):
        b = make()
        y = b.forward(x)
        self.assertAllClose(x, self.evaluate(b.inverse(tf.identity(y))), rtol=1e-3, atol=1e-4)
        self.assertAllClose(
            self.evaluate(b.forward_log_det_jacobian(x, event_ndims=0)),
            -self.evaluate(b.inverse_log_det_jacobian(tf.identity(y), event_ndims=0)),
            rtol=1e-3,
            atol=1e-4,
        )
        self.assertAllEqual([3], self.evaluate(b.forward_event_shape_tensor([3])))

    @parameterized.named_parameters(*_SCALAR)
    @test_util.numpy_disable_gradient_test
    def testDeterminantIsTheDerivative(self, make, x):
        b = make()
        _, g = gradient.value_and_gradient(b.forward, tf.constant(x))
        self.assertAllClose(
            np.log(np.abs(self.evaluate(g))),
            # Of a linear one it is a single number.
            self.evaluate(b.forward_log_det_jacobian(x, event_ndims=0)) + np.zeros_like(x),
            rtol=1e-3,
            atol=1e-4,
        )


@test_util.test_all_tf_execution_regimes
class RegimesTest(test_util.TestCase):
    def testCacheGivesTheSameTensor(self):
        b = tfb.Exp()
        x = tf.constant([1.0, 2.0])
        y = b.forward(x)
        self.assertIs(x, b.inverse(y))

    def testRefuses(self):
        with self.assertRaisesOpError("non-zero|positive"):
            self.evaluate(tfb.Scale([0.0, 1.0], validate_args=True).forward([1.0, 2.0]))
        with self.assertRaisesRegex(ValueError, "non-negative"):
            tfb.Exp().forward_log_det_jacobian([1.0], event_ndims=-1)


class StructuredTest(test_util.TestCase):
    def testMatrices(self):
        x = np.array([0.5, -0.3, 0.2, 1.1, 0.4, -0.7], np.float32)
        for b, event in (
            (tfb.FillTriangular(), 1),
            (tfb.FillScaleTriL(), 1),
            (tfb.Chain([tfb.CholeskyOuterProduct(), tfb.FillScaleTriL()]), 1),
        ):
            y = b.forward(x)
            self.assertAllEqual([3, 3], tensorshape_util.as_list(b.forward_event_shape(x.shape)))
            self.assertAllClose(x, self.evaluate(b.inverse(tf.identity(y))), atol=1e-4, rtol=1e-3)
            if not isinstance(b, tfb.Chain):
                self.assertAllFinite(
                    self.evaluate(b.forward_log_det_jacobian(x, event_ndims=event))
                )
        c = tfb.CorrelationCholesky()
        m = self.evaluate(c.forward(x[:3]))
        self.assertAllClose(np.ones(3), np.sum(m**2, -1), rtol=1e-5)
        self.assertAllClose(x[:3], self.evaluate(c.inverse(m)), rtol=1e-3, atol=1e-4)

    def testVectors(self):
        x = np.array([[0.1, 0.5, -0.2], [1.0, 2.0, 3.0]], np.float32)
        for b in (
            tfb.SoftmaxCentered(),
            tfb.Ascending(),
            tfb.Cumsum(),
            tfb.Permute([2, 0, 1]),
            tfb.ScaleMatvecTriL(np.float32([[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [0.1, 0.2, 3.0]])),
            tfb.ScaleMatvecDiag([1.0, 2.0, -3.0]),
            tfb.Householder([1.0, 2.0, 2.0]),
            tfb.IteratedSigmoidCentered(),
            tfb.Reshape([3, 1], [3]),
        ):
            y = b.forward(x)
            self.assertAllClose(
                x, self.evaluate(b.inverse(tf.identity(y))), rtol=1e-3, atol=1e-4, msg=b.name
            )
            self.assertEqual(
                (2,), tuple(b.forward_log_det_jacobian(x, event_ndims=1).shape)[:1] or (2,)
            )

    def testPartsAndStructures(self):
        blocks = tfb.Blockwise([tfb.Exp(), tfb.Identity()], block_sizes=[2, 1])
        self.assertAllClose(
            [np.e, 1.0, 5.0], self.evaluate(blocks.forward([1.0, 0.0, 5.0])), rtol=1e-5
        )
        split = tfb.Split([1, 2])
        a, b = split.forward(tf.constant([1.0, 2.0, 3.0]))
        self.assertAllClose([2.0, 3.0], self.evaluate(b))
        self.assertAllClose([1.0, 2.0, 3.0], self.evaluate(split.inverse([a, b])))
        m = tfb.JointMap({"a": tfb.Exp(), "b": tfb.Scale(2.0)})
        y = m.forward({"a": tf.constant(0.0), "b": tf.constant(3.0)})
        self.assertAllClose([1.0, 6.0], self.evaluate([y["a"], y["b"]]))
        r = tfb.Restructure({"x": 0, "y": 1})
        self.assertAllClose(
            2.0, self.evaluate(r.forward([tf.constant(1.0), tf.constant(2.0)])["y"])
        )

    def testFlows(self):
        def shift_and_scale(x, units, **unused):
            return x[..., :units] * 0.0 + 1.0, x[..., :units] * 0.0 + 0.5

        nvp = tfb.RealNVP(num_masked=2, shift_and_log_scale_fn=shift_and_scale)
        x = tf.constant([[0.1, 0.2, 0.3]])
        d = tfd.TransformedDistribution(tfd.MultivariateNormalDiag(scale_diag=tf.ones(3)), nvp)
        self.assertAllFinite(self.evaluate(d.log_prob(nvp.forward(x))))
        maf = tfb.MaskedAutoregressiveFlow(lambda z: (tf.zeros_like(z), tf.ones_like(z)))
        self.assertAllClose(
            self.evaluate(x), self.evaluate(maf.inverse(tf.identity(maf.forward(x)))), rtol=1e-4
        )


if __name__ == "__main__":
    test_util.main()
