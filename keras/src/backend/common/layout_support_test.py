import inspect
from unittest import mock

import numpy as np
import pytest
from absl.testing import parameterized

from keras.src import backend
from keras.src import initializers
from keras.src import layers
from keras.src import ops
from keras.src import testing
from keras.src.backend.common import layout_support
from keras.src.distribution.distribution_lib import TensorLayout
from keras.src.random import random

IS_JAX = backend.backend() == "jax"

# For each op the arguments of a call.
RANDOM_OPS = {
    "normal": ((4, 8),),
    "uniform": ((4, 8),),
    "truncated_normal": ((4, 8),),
    "randint": ((4, 8), 0, 100),
    "gamma": ((4, 8), 0.7),
    "beta": ((4, 8), 0.7, 2.0),
    "binomial": ((4, 8), 5.0, 0.3),
    "categorical": (np.log([[0.2, 0.8]] * 4), 8),
    "dropout": (np.ones((4, 8), "float32"), 0.4),
    "shuffle": (np.arange(32).reshape(4, 8),),
}
FILLS = {
    "zeros": ((4, 8),),
    "ones": ((4, 8),),
    "empty": ((4, 8),),
    "full": ((4, 8), 0.3),
    "eye": (4, 8, 1),
    "identity": (4,),
    "arange": (3, 7, 2),
}
CASES = [(name, random, RANDOM_OPS[name]) for name in RANDOM_OPS]
CASES += [(name, ops, FILLS[name]) for name in FILLS]
INITIALIZERS = {
    "zeros": {},
    "ones": {},
    "constant": {"value": 2},
    "identity": {},
    "random_normal": {"seed": 1},
    "random_uniform": {"seed": 1},
    "truncated_normal": {"seed": 1},
    "glorot_uniform": {"seed": 1},
    "orthogonal": {"seed": 1},
}
LAYOUTS = [
    (("batch", "model"), r"\('batch', 'model'\)"),
    (TensorLayout(("batch", None)), r"TensorLayout\(axes=\('batch', None\)\)"),
]


def as_tensor(x):
    return ops.convert_to_tensor(x) if isinstance(x, np.ndarray) else x


def named(cases):
    return parameterized.named_parameters((case[0], *case) for case in cases)


class LayoutSupportTest(testing.TestCase):
    def assert_refused(self, name, call):
        for layout, described in LAYOUTS:
            message = (
                f"`{name}` cannot lay out its result: the "
                f"{backend.backend()} backend does not distribute tensors. "
                f"Use `layout=None`, or the JAX .* Received: layout={described}"
            )
            with self.assertRaisesRegex(ValueError, message):
                call(layout)

    @named(CASES)
    @pytest.mark.skipif(IS_JAX, reason="compared with JAX beside its modules")
    def test_no_layout_changes_nothing(self, name, module, arguments):
        def call(**layout):
            seed = {"seed": 3} if module is random else {}
            tensors = map(as_tensor, arguments)
            result = getattr(module, name)(*tensors, **seed, **layout)
            return backend.convert_to_numpy(result)

        without = call()
        if name != "empty":
            self.assertAllEqual(call(layout=None), without)
        self.assertEqual(call(layout=None).dtype, without.dtype)
        self.assertEqual(call(layout=None).shape, without.shape)

    @named(CASES)
    def test_layouts_reach_the_backend(self, name, module, arguments):
        of_backend = backend.random if module is random else backend.numpy
        layout = TensorLayout(("batch",))
        with mock.patch.object(of_backend, name) as made:
            result = getattr(module, name)(*arguments, layout=layout)
        self.assertIs(result, made.return_value)
        self.assertIs(made.call_args.kwargs["layout"], layout)

    @named(CASES)
    @pytest.mark.skipif(IS_JAX, reason="JAX distributes tensors")
    def test_layouts_are_refused(self, name, module, arguments):
        op = getattr(module, name)
        self.assert_refused(name, lambda layout: op(*arguments, layout=layout))

    @pytest.mark.skipif(IS_JAX, reason="JAX distributes tensors")
    def test_layouts_are_refused_in_symbolic_calls(self):
        x = layers.Input((), batch_size=1)
        self.assert_refused(
            "full", lambda layout: ops.full((4, 8), ops.sum(x), layout=layout)
        )

    @named(INITIALIZERS.items())
    @pytest.mark.skipif(IS_JAX, reason="JAX distributes tensors")
    def test_initializers(self, name, config):
        initializer = initializers.get({"class_name": name, "config": config})
        value = backend.convert_to_numpy(initializer((8, 8)))
        same = backend.convert_to_numpy(initializer((8, 8), layout=None))
        self.assertAllEqual(same, value)
        for layout, _ in LAYOUTS:
            with self.assertRaisesRegex(ValueError, "does not distribute"):
                initializer((8, 8), layout=layout)

    @pytest.mark.skipif(IS_JAX, reason="JAX distributes tensors")
    def test_variables_ignore_their_layout(self):
        variable = backend.Variable(
            "ones", shape=(4, 8), layout=("batch", None), name="variable"
        )
        self.assertAllEqual(variable, np.ones((4, 8)))

    @named(CASES)
    def test_signatures(self, name, module, _):
        public = inspect.signature(getattr(module, name)).parameters
        self.assertEqual(list(public)[-1], "layout")
        self.assertIsNone(public["layout"].default)
        of_backend = backend.random if module is random else backend.numpy
        own = inspect.signature(getattr(of_backend, name)).parameters
        self.assertEqual(list(own), list(public))

    def test_wrapped_functions(self):
        def make(shape, dtype=None):
            "Makes something."
            return shape, dtype

        make.__module__ = "keras.src.backend.abacus.numpy"
        wrapped = layout_support.unsharded_only(make)
        self.assertEqual(wrapped.__name__, "make")
        self.assertEqual(wrapped.__doc__, "Makes something.")
        self.assertEqual(
            str(inspect.signature(wrapped)),
            "(shape, dtype=None, *, layout=None)",
        )
        self.assertEqual(wrapped(2, dtype="int8"), (2, "int8"))
        self.assertEqual(wrapped(2, layout=None), (2, None))
        with self.assertRaisesRegex(ValueError, "`make`.* abacus backend"):
            wrapped(2, layout=())

    @named(CASES)
    @pytest.mark.skipif(
        backend.backend() != "tensorflow", reason="traces TensorFlow functions"
    )
    def test_traced_by_tensorflow(self, name, module, arguments):
        import tensorflow as tf

        seed = {"seed": 3} if module is random else {}

        @tf.function
        def call():
            return getattr(module, name)(*arguments, **seed, layout=None)

        expected = getattr(module, name)(*arguments, **seed)
        self.assertAllEqual(call(), expected)

    @named(CASES[-len(FILLS) :])
    @pytest.mark.skipif(
        backend.backend() != "torch", reason="traces PyTorch functions"
    )
    def test_traced_by_torch(self, name, module, arguments):
        import torch

        @torch.compile(backend="eager", fullgraph=True)
        def call():
            return getattr(module, name)(*arguments, layout=None)

        expected = getattr(module, name)(*arguments)
        self.assertEqual(call().shape, expected.shape)
        if name != "empty":
            self.assertAllEqual(call(), expected)
