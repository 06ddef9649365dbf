import tensorflow as tf

import vanilla_pricing
from vanilla_pricing import paths


def call(prices):
    return tf.nn.relu(prices[:, -1] - 100.0)


class PathsTest(tf.test.TestCase):
    def price(self, seed):
        return paths.price_by_paths(call, 100.0, 0.2, 1.0, steps=4, samples=5000, seed=seed)

    def test_a_seed_gives_its_paths(self):
        # TensorFlow's own numbers.
        self.assertAllClose(self.evaluate(self.price([4, 2])), EXPECTED, 1e-10, 1e-10)
        self.assertNotAllClose(self.price([4, 3]), EXPECTED)

    def test_paths_and_formula(self):
        price, error = self.price([1, 7])
        exact = vanilla_pricing.option_price(0.2, 100.0, 1.0, 100.0, dtype=tf.float64)
        self.assertLess(abs(price - exact), 4 * error)


EXPECTED = (7.539540654232801, 0.17632522671295986)

if __name__ == "__main__":
    tf.test.main()
