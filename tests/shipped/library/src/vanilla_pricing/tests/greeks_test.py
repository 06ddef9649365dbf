import tensorflow as tf

from vanilla_pricing import greeks


class GreeksTest(tf.test.TestCase):
    def test_delta_and_gamma(self):
        found = greeks.delta_and_gamma(0.2, 100.0, 1.0, tf.constant(100.0, tf.float64))
        self.assertAllClose(self.evaluate(found), (0.539827837277, 0.019847627374), 1e-11, 1e-11)


if __name__ == "__main__":
    tf.test.main()
