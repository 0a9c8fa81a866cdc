"""Grafts: every variable gets its first value on one road."""

from keras.src.backend.jax import initialization
from keras.src.backend.jax import layouts


class JaxVariable:
    def _initialize_with_initializer(self, initializer):
        self._initialize_layout()
        value = initialization.initial_value(
            initializer, self._shape, self._dtype, self._layout, self.path
        )
        if self._layout is None:
            self._initialize(self._convert_to_tensor(value))
        else:
            self._value = value


if config.is_nnx_enabled():

    class NnxVariable:
        del _initialize_with_initializer


del should_shard_at_init
