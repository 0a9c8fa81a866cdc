"""Random state that goes through a traced function as values."""

import contextlib
import functools

from keras.src.backend.common import global_state
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.stateless_scope import get_stateless_scope


class RandomStateScope(StatelessScope):
    """A stateless scope in which unseeded draws are allowed while tracing.

    The global seed generator, like any `SeedGenerator`, leaves its new state
    in the scope, and whoever runs the traced function assigns it afterwards.

    Args:
        eagerly: A function that returns a context manager, in which the
            backend runs operations at once although it is tracing.
    """

    def __init__(self, eagerly):
        super().__init__(initialize_variables=False)
        self._eagerly = eagerly
        self._variables = {}

    def add_update(self, update):
        super().add_update(update)
        variable, _ = update
        self._variables[id(variable)] = variable

    def updates(self):
        """Returns the variables assigned so far, each with its last value."""
        return [
            (variable, self.get_current_value(variable))
            for variable in self._variables.values()
        ]

    @contextlib.contextmanager
    def suspended(self):
        """Runs what is inside eagerly, and with no stateless scope."""
        global_state.set_global_attribute("stateless_scope", None)
        try:
            with self._eagerly():
                yield
        finally:
            global_state.set_global_attribute("stateless_scope", self)


def suspending_random_state_scope(fn):
    """Decorates a function that has to run outside a `RandomStateScope`."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        scope = get_stateless_scope()
        if not isinstance(scope, RandomStateScope):
            return fn(*args, **kwargs)
        with scope.suspended():
            return fn(*args, **kwargs)

    return wrapper
