import contextlib

import numpy as np

from keras.src import backend
from keras.src import testing
from keras.src.backend.common import random_state_scope
from keras.src.backend.common.random_state_scope import RandomStateScope
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.stateless_scope import get_stateless_scope
from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.random.seed_generator import SeedGenerator
from keras.src.random.seed_generator import global_seed_generator


class RandomStateScopeTest(testing.TestCase):
    def scope(self):
        return RandomStateScope(contextlib.nullcontext)

    def test_state_changes_in_the_scope_only(self):
        generator = SeedGenerator(3)
        with self.scope() as scope:
            self.assertAllEqual(generator.next(), [3, 0])
            self.assertAllEqual(generator.next(), [3, 1])
        self.assertAllEqual(generator.state.value, [3, 0])
        ((variable, state),) = scope.updates()
        self.assertIs(variable, generator.state)
        self.assertAllEqual(state, [3, 2])

    def test_updates_come_in_the_order_of_first_use(self):
        a, b = SeedGenerator(1), SeedGenerator(2)
        with self.scope() as scope:
            for generator in (b, a, b):
                generator.next()
        variables = [variable for variable, _ in scope.updates()]
        self.assertIs(variables[0], b.state)
        self.assertIs(variables[1], a.state)
        self.assertLen(variables, 2)

    def test_generators_are_made_outside(self):
        entered = []

        @contextlib.contextmanager
        def eagerly():
            self.assertFalse(in_stateless_scope())
            entered.append(True)
            yield

        with RandomStateScope(eagerly) as scope:
            generator = SeedGenerator(5)
            self.assertIs(get_stateless_scope(), scope)
            self.assertIsNotNone(generator.state._value)
            generator.next()
            global_seed_generator()
        self.assertLen(entered, 2)
        self.assertAllEqual(generator.state.value, [5, 0])
        self.assertAllEqual(scope.updates()[0][1], [5, 1])

    def test_scope_is_back_after_an_error(self):
        @random_state_scope.suspending_random_state_scope
        def fail():
            self.assertFalse(in_stateless_scope())
            raise KeyError

        with self.scope() as scope:
            with self.assertRaises(KeyError):
                fail()
            self.assertIs(get_stateless_scope(), scope)
        self.assertFalse(in_stateless_scope())

    def test_other_stateless_scopes_stay(self):
        @random_state_scope.suspending_random_state_scope
        def current():
            return get_stateless_scope()

        self.assertIsNone(current())
        with StatelessScope() as scope:
            self.assertIs(current(), scope)
            generator = SeedGenerator(5)
            self.assertIsNone(generator.state._value)
        np.testing.assert_array_equal(
            backend.convert_to_numpy(generator.state), [5, 0]
        )
