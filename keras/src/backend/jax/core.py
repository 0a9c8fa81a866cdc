"""Grafts: every variable gets its first value on one road."""

from keras.src.backend.jax import assignment
from keras.src.backend.jax import deferral
from keras.src.backend.jax import gathering
from keras.src.backend.jax import initialization


class JaxVariable:
    _initialize_layout = initialization.layout_checked(_initialize_layout)

    def _initialize_with_initializer(self, initializer):
        self._initialize_layout()
        value = initialization.initial_value(
            initializer, self._shape, self._dtype, self._layout, self.path
        )
        if self._layout is None:
            self._initialize(self._convert_to_tensor(value))
        else:
            self._value = value

    _initialize_with_initializer = deferral.initialized_later(
        _initialize_with_initializer
    )
    _direct_assign = assignment.transactional(_direct_assign)
    _convert_to_tensor = assignment.straight_from_host(_convert_to_tensor)

    def numpy(self):
        value = self.value
        if gathering.is_gathering() and gathering.is_spread(value):
            return gathering.gather(value)
        return super().numpy()

    def __repr__(self):
        if gathering.is_costly_to_show(getattr(self, "_value", None)):
            return (
                f"<Variable path={self.path}, shape={self.shape}, "
                f"dtype={self.dtype}, layout={self._layout}>"
            )
        return super().__repr__()


if config.is_nnx_enabled():

    class NnxVariable:
        def __init__(
            self,
            initializer,
            shape=None,
            dtype=None,
            trainable=True,
            autocast=True,
            aggregation="none",
            synchronization="auto",
            name=None,
            layout=None,
            mutable=None,
            **nnx_metadata,
        ):
            # NNX wants some value at once. The real one follows, in its
            # layout, so a scalar stands in.
            nnx_metadata["mutable"] = mutable is None or mutable
            nnx.Variable.__init__(self, value=jnp.array(0.0), **nnx_metadata)
            JaxVariable.__init__(
                self,
                initializer,
                shape,
                dtype,
                trainable,
                autocast,
                aggregation,
                synchronization,
                name,
                layout,
            )
            _set_raw_value(self, self._value)
            stamp_with_enclosing_trace(self)

        _direct_assign = assignment.transactional(_direct_assign)
        del _initialize_with_initializer


del should_shard_at_init
del inspect
del math
