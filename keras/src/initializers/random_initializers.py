"""Grafts: random initializers draw straight into a layout."""

from keras.src.backend.common.layout_support import layout_after_computing


class RandomNormal:
    def __call__(self, shape, dtype=None, layout=None):
        return random.normal(
            shape=shape,
            mean=self.mean,
            stddev=self.stddev,
            seed=self.seed,
            dtype=dtype,
            layout=layout,
        )


class TruncatedNormal:
    def __call__(self, shape, dtype=None, layout=None):
        return random.truncated_normal(
            shape=shape,
            mean=self.mean,
            stddev=self.stddev,
            seed=self.seed,
            dtype=dtype,
            layout=layout,
        )


class RandomUniform:
    def __call__(self, shape, dtype=None, layout=None):
        return random.uniform(
            shape=shape,
            minval=self.minval,
            maxval=self.maxval,
            seed=self.seed,
            dtype=dtype,
            layout=layout,
        )


class VarianceScaling:
    def __call__(self, shape, dtype=None, layout=None):
        fan_in, fan_out = compute_fans(
            shape, input_axes=self.input_axes, output_axes=self.output_axes
        )
        units = {"fan_in": fan_in, "fan_out": fan_out}.get(
            self.mode, (fan_in + fan_out) / 2.0
        )
        variance = self.scale / max(1.0, units)
        how = {"dtype": dtype, "seed": self.seed, "layout": layout}
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return random.uniform(shape, minval=-limit, maxval=limit, **how)
        stddev = math.sqrt(variance)
        if self.distribution == "untruncated_normal":
            return random.normal(shape, stddev=stddev, **how)
        # The standard deviation of what is left of a unit normal between
        # -2 and 2.
        stddev /= 0.87962566103423978
        return random.truncated_normal(shape, stddev=stddev, **how)


class Orthogonal:
    __call__ = layout_after_computing(__call__)
