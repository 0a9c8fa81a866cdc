import numpy as np

from keras.src import layers
from keras.src import testing


class HostDataTest(testing.TestCase):
    def layer(self):
        layer = layers.Layer()
        layer.scale = layer.add_weight((), name="scale")
        layer.kernel = layer.add_weight((2, 3), name="kernel")
        return layer

    def test_lists_and_scalars(self):
        layer = self.layer()
        layer.set_weights([2.5, [[1, 2, 3], (4, 5, 6)]])
        self.assertAllClose(layer.scale, 2.5)
        self.assertAllClose(layer.kernel, [[1, 2, 3], [4, 5, 6]])

    def test_arrays_are_passed_on(self):
        layer = self.layer()
        layer.set_weights([np.float64(1.5), np.ones((2, 3), "int64")])
        self.assertAllClose(layer.scale, 1.5)
        self.assertAllClose(layer.kernel, np.ones((2, 3)))

    def test_wrong_shapes(self):
        with self.assertRaisesRegex(ValueError, "not compatible"):
            self.layer().set_weights([2.5, [1, 2, 3]])
