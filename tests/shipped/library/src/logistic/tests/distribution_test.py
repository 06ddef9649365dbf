import tensorflow as tf

import logistic


class DistributionTest(tf.test.TestCase):
    def test_log_prob(self):
        found = logistic.Logistic(1.0, [1.0, 2.0]).log_prob(1.5)
        self.assertAllClose(self.evaluate(found), [-1.448154, -2.095026], 1e-6, 1e-6)

    def test_samples(self):
        # The same on TensorFlow, JAX and NumPy.
        samples = logistic.Logistic([0.0, 3.0], 0.5).sample([2], seed=7)
        self.assertAllClose(self.evaluate(samples), EXPECTED, 1e-5, 1e-5)

    def test_shapes(self):
        distribution = logistic.Logistic(tf.zeros([3, 1]), tf.ones([2]))
        self.assertAllEqual(distribution.batch_shape(), [3, 2])
        for sample_shape, wanted in (([], [3, 2]), (4, [4, 3, 2]), ([0], [0, 3, 2])):
            sample_shape = [sample_shape] if isinstance(sample_shape, int) else sample_shape
            self.assertEqual(list(distribution.sample(sample_shape, (1, 2)).shape), wanted)

    def test_shapes_that_a_function_is_not_told(self):
        @tf.function(input_signature=[tf.TensorSpec([None, 2]), tf.TensorSpec([], tf.int32)])
        def sums(loc, count):
            return tf.reduce_sum(
                logistic.Logistic(loc, 1.0).sample([3, 2], (count, 1)), axis=[0, 1]
            )

        self.assertEqual(list(sums(tf.zeros([4, 2]), tf.constant(5)).shape), [4, 2])

    def test_no_seed(self):
        with self.assertRaisesRegex(ValueError, "`seed` is None"):
            logistic.Logistic(0.0, 1.0).sample([2], seed=None)


EXPECTED = [[-2.540106, 4.068620], [-0.240508, 3.815337]]

if __name__ == "__main__":
    tf.test.main()
