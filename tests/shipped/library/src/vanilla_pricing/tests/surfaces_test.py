import tensorflow as tf

from vanilla_pricing.surfaces import Surface


class SurfacesTest(tf.test.TestCase):
    def test_between_and_beyond(self):
        surface = Surface([0.5, 1.0, 3.0], [0.2, 0.3, 0.25])
        self.assertAllClose(surface([0.1, 0.75, 1.0, 2.0, 9.0]), [0.2, 0.25, 0.3, 0.275, 0.25])

    def test_variables(self):
        surface = Surface([0.5, 1.0], [0.2, 0.3])
        surface.volatilities.assign([0.4, 0.6])
        self.assertAllClose(surface([0.75]), [0.5])
        self.assertEqual(len(surface.trainable_variables), 1)
        self.assertEqual(surface.name, "surface")

    def test_rank(self):
        with self.assertRaisesRegex(ValueError, "expiries have rank 2, and should have 1"):
            Surface([[0.5]], [[0.2]])


if __name__ == "__main__":
    tf.test.main()
