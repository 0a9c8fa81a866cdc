class Initializer:
    def __call__(self, shape, dtype=None, layout=None):
        """Args:
        layout: Optional. How to shard the tensor over devices: a
            `keras.distribution.TensorLayout` or a layout of the backend.

            With eight devices along the axis `model` of the current
            distribution:

            >>> initializer = keras.initializers.GlorotUniform()
            >>> x = initializer((1024, 64), layout=("model", None))
            >>> x.sharding.shard_shape(x.shape)
            (128, 64)
        """
