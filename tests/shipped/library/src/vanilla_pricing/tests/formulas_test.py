import numpy as np
import tensorflow as tf

from vanilla_pricing import formulas

STRIKES = tf.constant([90.0, 100.0, 110.0], tf.float64)


class FormulasTest(tf.test.TestCase):
    def test_prices(self):
        prices = formulas.option_price(0.2, STRIKES, 1.0, 100.0)
        self.assertAllClose(
            self.evaluate(prices), [13.589108116055, 7.965567455406, 4.292010941410], 1e-11, 1e-11
        )
        self.assertDTypeEqual(prices, np.float64)

    def test_puts_and_calls(self):
        calls, puts = (
            formulas.option_price(0.2, STRIKES, 1.0, 100.0, is_call) for is_call in (True, False)
        )
        self.assertAllClose(calls - puts, 100.0 - STRIKES, 1e-12, 1e-12)

    def test_dtypes_are_kept(self):
        prices = formulas.option_price(0.2, [90.0], 1.0, 100.0, dtype=tf.float32)
        self.assertEqual(prices.dtype, tf.float32)
        with self.assertRaisesRegex(ValueError, "float64"):
            formulas.option_price(0.2, STRIKES, 1.0, 100.0, dtype=tf.float32)

    def test_bad_strikes(self):
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "Strikes must be positive"):
            self.evaluate(formulas.option_price(0.2, [-1.0], 1.0, 100.0))

    def test_implied_volatility(self):
        volatilities = tf.constant([0.1, 0.25, 0.7], tf.float64)
        prices = formulas.option_price(volatilities, STRIKES, 1.0, 100.0)
        found = formulas.implied_volatility(prices, STRIKES, 1.0, 100.0)
        self.assertAllClose(found, volatilities, 1e-10, 1e-10)


if __name__ == "__main__":
    tf.test.main()
