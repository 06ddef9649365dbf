import tensorflow as tf

import logistic


class ScoreTest(tf.test.TestCase):
    def test_score(self):
        found = logistic.Logistic(tf.constant(1.0), tf.constant(2.0)).score([1.5, 1.0])
        self.assertAllClose(self.evaluate(found), (0.0621767, -0.9844558), 1e-5, 1e-6)

    def test_both_modes_at_a_kink_of_the_formula(self):
        x = tf.constant([0.0, 100.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = logistic.softplus(x)
        self.assertAllClose(self.evaluate(tape.gradient(y, x)), [0.5, 1.0])
        with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 2.0])) as accumulator:
            y = logistic.softplus(x)
        self.assertAllClose(self.evaluate(accumulator.jvp(y)), [0.5, 2.0])


if __name__ == "__main__":
    tf.test.main()
