class Initializer:
    def __call__(self, shape, dtype=None, layout=None):
        """Args:
        layout: Optional. How to shard the tensor over devices: a
            `keras.distribution.TensorLayout` or a layout of the backend.
        """
