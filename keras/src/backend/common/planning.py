"""Variables that are made without a value, to be looked at or filled later.

Upstream's Keras gives them their values when some other scope ends, so that a
model that was built only to be looked at takes its memory all the same.
"""

import functools
import threading

from keras.src.backend import config
from keras.src.backend.common import global_state

_UNINITIALIZED = "uninitialized_variables"

# Values are drawn in the order of the variables, whoever reads one first.
_LOCK = threading.RLock()


def in_current_distribution(register):
    """Decorates what notes that a variable was made without a value.

    The distribution may be another one, or none, when it gets its value.

    Args:
        register: A function `register_uninitialized_variable(variable)`.

    Returns:
        A function of the same arguments. The variable has its layout then.
    """

    @functools.wraps(register)
    def register_uninitialized_variable(variable):
        distribution = global_state.get_global_attribute("distribution")
        if (
            config.backend() == "jax"
            and variable._layout is None
            and distribution is not None
        ):
            # Whether it fits is found when there is a value: the devices of a
            # model that is only described need not be there.
            variable._layout = distribution.get_variable_layout(variable)
        register(variable)

    return register_uninitialized_variable


def noting_variables_of_others(enter):
    """Decorates `__enter__` of `StatelessScope`.

    Args:
        enter: The method.

    Returns:
        A method of the same arguments. The scope knows how many variables
        without a value there are that were not made in it.
    """

    @functools.wraps(enter)
    def __enter__(self):
        others = global_state.get_global_attribute(_UNINITIALIZED, [])
        self._variables_of_others = len(others)
        return enter(self)

    return __enter__


def leaving_variables_without_values(leave):
    """Decorates `__exit__` of `StatelessScope`.

    Args:
        leave: The method.

    Returns:
        A method of the same arguments. After a scope that was told not to
        initialize variables, those that were made in it get their values when
        the first of them is read, in the order in which they were made.
    """

    @functools.wraps(leave)
    def __exit__(self, *args, **kwargs):
        leave(self, *args, **kwargs)
        if (
            self.original_scope is None
            and not self.initialize_variables
            and config.backend() == "jax"
            and not config.is_nnx_enabled()
        ):
            variables = global_state.get_global_attribute(_UNINITIALIZED, [])
            made_here = slice(self._variables_of_others, None)
            _initialize_when_read(variables[made_here])
            del variables[made_here]

    return __exit__


def _initialize_when_read(variables):
    waiting = [(variable, variable._initializer) for variable in variables]
    for variable, initializer in waiting:
        # What upstream calls for a value to compute with meanwhile.
        variable._initializer = functools.partial(
            _first_value, variable, initializer, waiting
        )


def _first_value(variable, initializer, waiting, shape, dtype=None):
    # The scope imports this module, and the backend may be another one.
    from keras.src.backend.common.stateless_scope import in_stateless_scope
    from keras.src.backend.jax import programs

    if in_stateless_scope():
        return initializer(shape, dtype=dtype)
    with _LOCK, programs.eagerly():
        while variable._value is None:
            # It waits no more, for an initializer may read other variables.
            one, its_initializer = variable, initializer
            if waiting:
                one, its_initializer = waiting.pop(0)
            if one._value is None:
                _initialize(one, its_initializer, waiting)
    return variable._value


def _initialize(variable, initializer, waiting):
    try:
        # Other threads that read it meanwhile still find what waits for this.
        variable._initialize_with_initializer(initializer)
    except BaseException:
        waiting.insert(0, (variable, initializer))
        raise
    variable._initializer = None
