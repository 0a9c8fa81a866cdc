"""Values of variables that are made when they are read, or all together.

While a model is loaded, what its variables are assigned from a file is not
read at once, and neither are random initial values drawn that the file will
overwrite. If something is wrong with the file, every variable still has the
value that it had before.
"""

import contextlib
import functools
import threading

import jax.numpy as jnp

from keras.src.backend import config
from keras.src.backend.common import global_state
from keras.src.backend.common.symbolic_scope import in_symbolic_scope
from keras.src.backend.jax import programs

_SCOPE = "jax_loading"

# One thread may load what another one predicts with.
_lock = threading.RLock()


def current_loading():
    """Returns the `Loading` that is in progress in this thread, or `None`."""
    return global_state.get_global_attribute(_SCOPE)


class Loading:
    """Variables get their new values all together or not at all.

    As a context manager it is in progress for the thread. It ends with the
    new values if nothing is raised, else with the values before. One inside
    another becomes part of that.

    Args:
        initial: Whether the values that variables start with are deferred
            too. They must be values that do not depend on when they are made.
    """

    def __init__(self, initial=False):
        self.initial = initial
        self._deferred = {}
        self._checks = {}
        self._replaced = {}

    def __enter__(self):
        self._outer = current_loading()
        if self._outer is not None:
            return self._outer
        global_state.set_global_attribute(_SCOPE, self)
        return self

    def __exit__(self, error, *_):
        if self._outer is not None:
            return
        try:
            if error is not None:
                self.abandon()
            self.settle()
        finally:
            global_state.set_global_attribute(_SCOPE, None)

    def defer(self, variable, assign, check=None):
        """Lets `assign()` give `variable` its value, later on.

        Args:
            variable: The variable.
            assign: A function.
            check: A function that raises if `assign` is known to fail.
        """
        if not _is_deferred(variable):
            variable.__class__ = _deferred_class(type(variable))
        variable._assign_deferred = assign
        self._deferred[id(variable)] = variable
        self._checks[id(variable)] = check

    def keep(self, variable):
        """Remembers the value of a variable that is about to get another."""
        if _is_deferred(variable):
            before = vars(variable).get("_value")
        else:  # NNX keeps it elsewhere.
            before = getattr(variable, "_value", None)
        start = variable._initializer  # Of one that never had a value.
        if before is not None or start is not None:
            kept = variable, before, start
            self._replaced.setdefault(id(variable), kept)

    def settle(self):
        """Makes the values that are still deferred.

        What can be known to fail does so before any variable is changed.
        Where a variable fails after all, those before have no old values any
        more, which would have to be held for all of them. A note at the error
        tells which they are.
        """
        for key, variable in self._deferred.items():
            if _is_deferred(variable) and self._checks[key] is not None:
                self._checks[key]()
        self._checks.clear()
        changed = [variable for variable, _, _ in self._replaced.values()]
        self._replaced.clear()
        # From here on, old values are not kept.
        global_state.set_global_attribute(_SCOPE, None)
        try:
            for key in list(self._deferred):
                variable = self._deferred.pop(key)
                with _lock:
                    if _is_deferred(variable):
                        _settle(variable)
                        changed.append(variable)
        except Exception as error:
            if not self.initial:
                error.add_note(_half_done(changed))
            raise
        finally:
            global_state.set_global_attribute(_SCOPE, self)

    @contextlib.contextmanager
    def apart(self):
        """A context for a file that is loaded while another one is.

        When it ends, its variables have their new values, since the file may
        be gone soon, or those before it. For the other file, what they had
        before is kept.
        """
        outer = self._deferred, self._checks, self._replaced
        self._deferred, self._checks, self._replaced = {}, {}, {}
        kept = {}
        try:
            yield
            for variable in self._deferred.values():
                self.keep(variable)
            kept = dict(self._replaced)
            self.settle()
        except BaseException:
            self._replaced = kept or self._replaced
            self.abandon()
            raise
        finally:
            self._deferred, self._checks, replaced = outer
            self._replaced = kept | replaced

    def abandon(self):
        """Gives variables the values back that they had before."""
        for variable in self._deferred.values():
            if _is_deferred(variable) and "_value" in vars(variable):
                _restore_class(variable)
        self._deferred.clear()
        self._checks.clear()
        for variable, before, start in self._replaced.values():
            variable._value, variable._initializer = before, start
        self._replaced.clear()


def _half_done(changed):
    if not changed:
        return "No variable has been changed."
    return (
        f"{len(changed)} variables have new values already: "
        f"{[variable.path for variable in changed]}. All others have the "
        "values that they had before."
    )


def initialized_later(initialize):
    """Decorates `_initialize_with_initializer` of variables.

    Args:
        initialize: A method `_initialize_with_initializer(self, initializer)`.

    Returns:
        A method of the same arguments. While a model is loaded it defers
        what a file may overwrite.
    """

    @functools.wraps(initialize)
    def _initialize_with_initializer(self, initializer):
        loading = current_loading()
        if (
            loading is not None
            and loading.initial
            and can_defer()
            and self._shape
            and _is_independent(initializer)
        ):
            # Which layout it has is up to the distribution as it is now.
            self._initialize_layout()
            loading.defer(self, lambda: initialize(self, initializer))
        else:
            initialize(self, initializer)

    return _initialize_with_initializer


def _is_independent(initializer):
    """Whether it does not matter when an initializer is called."""
    module = type(initializer).__module__
    seed = getattr(initializer, "seed", 0)
    return module.startswith("keras.src.initializers.") and isinstance(
        seed, int
    )


def can_defer():
    """Whether the values of variables can be made later.

    NNX keeps them where it wants to find them.
    """
    return not config.is_nnx_enabled()


@functools.cache
def _deferred_class(base):
    """The class of variables of a class while their value is deferred.

    Its `_value` hides the one before in the instance.
    """
    return type(
        base.__name__,
        (base,),
        {
            "_value": property(_read, _overwrite),
            "_is_deferred": True,
            "__reduce_ex__": _reduce,
        },
    )


def _is_deferred(variable):
    return getattr(type(variable), "_is_deferred", False)


def _read(variable):
    if in_symbolic_scope():
        # Only the shape and the dtype count.
        return jnp.zeros(variable._shape, variable._dtype)
    with _lock:
        if _is_deferred(variable):  # No other thread was faster.
            loading = current_loading()
            if loading is not None:
                loading.keep(variable)
            _settle(variable)
    return variable._value


def _reduce(variable, protocol):
    """What a copy is made of: one with its value, of the usual class."""
    _read(variable)
    return variable.__reduce_ex__(protocol)


def _overwrite(variable, value):
    with _lock:
        if _is_deferred(variable):
            _restore_class(variable)
    variable._value = value


def _settle(variable):
    assign = variable._assign_deferred
    _restore_class(variable)
    with programs.eagerly():
        assign()


def _restore_class(variable):
    del variable._assign_deferred
    variable.__class__ = type(variable).__base__
