"""What everybody does with Keras, on the backend that KERAS_BACKEND names."""

import numpy as np
import pytest

import keras
from keras import layers

BACKEND = keras.backend.backend()
FEATURES, CLASSES, BATCH = 6, 3, 16


class Perceptron(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = layers.Dense(12, activation="tanh")
        self.norm = layers.BatchNormalization()
        self.scores = layers.Dense(CLASSES)

    def call(self, x, training=False):
        return self.scores(self.norm(self.hidden(x), training=training))


def functional():
    tokens = keras.Input((FEATURES,), dtype="int32")
    x = layers.Embedding(20, 8)(tokens)
    x = layers.GlobalAveragePooling1D()(x)
    return keras.Model(tokens, layers.Dense(CLASSES)(x))


def sequential():
    image = layers.Reshape((FEATURES, 1))
    return keras.Sequential(
        [
            keras.Input((FEATURES,)),
            image,
            layers.Conv1D(4, 3, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dropout(0.2),
            layers.Dense(CLASSES),
        ]
    )


MODELS = {
    "subclass": Perceptron,
    "functional": functional,
    "sequential": sequential,
}


def samples(count=8 * BATCH):
    """Inputs that are tokens as well, and classes that depend on them."""
    x = np.random.default_rng(5).integers(0, 20, (count, FEATURES))
    return x.astype("float32"), (x[:, 0] + x[:, 1]) // 14


def built(make):
    """A model with the same weights each time, ready to train."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(17)
    model = make()
    model(samples()[0][:1])
    return model


def loss_function():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def weights_of(model):
    return [
        keras.ops.convert_to_numpy(weight.value) for weight in model.weights
    ]


def test_backend_is_the_one_asked_for():
    assert keras.config.backend() == BACKEND
    assert keras.ops.zeros(2) is not None
    assert "layout" in keras.__version__


@pytest.mark.requires_trainable_backend
@pytest.mark.parametrize("name", MODELS)
def test_fit(name):
    model = built(MODELS[name])
    before = weights_of(model)
    x, y = samples()
    model.compile(
        keras.optimizers.Adam(0.05), loss_function(), metrics=["accuracy"]
    )
    history = model.fit(
        x, y, batch_size=BATCH, epochs=8, validation_split=0.25, verbose=0
    ).history
    assert len(history["val_loss"]) == 8
    assert history["loss"][-1] < 0.9 * history["loss"][0]
    assert any((a != b).any() for a, b in zip(before, weights_of(model)))

    loss, accuracy = model.evaluate(x, y, verbose=0)
    scores = model.predict(x, verbose=0)
    assert accuracy == pytest.approx((scores.argmax(-1) == y).mean(), abs=1e-6)
    wanted = loss_function()(y, scores)
    assert loss == pytest.approx(float(wanted), rel=1e-4)


@pytest.mark.parametrize("name", ["functional", "sequential"])
def test_saved_models_predict_the_same(name, tmp_path):
    model = built(MODELS[name])
    x, _ = samples()
    scores = model.predict(x, batch_size=BATCH, verbose=0)
    assert scores.shape == (len(x), CLASSES)
    assert len({tuple(row) for row in scores.round(5)}) > len(x) // 2
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    np.testing.assert_array_equal(
        loaded.predict(x, batch_size=BATCH, verbose=0), scores
    )


def test_weights_load_into_another_model(tmp_path):
    model, other = built(Perceptron), built(Perceptron)
    path = tmp_path / "model.weights.h5"
    model.save_weights(path)
    other.set_weights([weight + 1 for weight in weights_of(other)])
    other.load_weights(path)
    for mine, theirs in zip(weights_of(model), weights_of(other)):
        np.testing.assert_array_equal(theirs, mine)


def test_seeds_repeat_draws():
    def draw():
        initializer = keras.initializers.GlorotUniform(seed=3)
        generator = keras.random.SeedGenerator(4)
        draws = [
            keras.random.normal((2, 3), seed=generator),
            keras.random.normal((2, 3), seed=generator),
            initializer((2, 3)),
        ]
        return [keras.ops.convert_to_numpy(drawn) for drawn in draws]

    first, second, initial = draw()
    assert (first != second).any()
    for one, again in zip((first, second, initial), draw()):
        np.testing.assert_array_equal(again, one)


def jax_loop(model, optimizer, batches):
    import jax

    def loss_of(trainable, rest, x, y):
        scores, rest = model.stateless_call(trainable, rest, x, training=True)
        return loss_function()(y, scores), rest

    @jax.jit
    def step(trainable, rest, slots, x, y):
        differentiate = jax.value_and_grad(loss_of, has_aux=True)
        (loss, rest), gradients = differentiate(trainable, rest, x, y)
        trainable, slots = optimizer.stateless_apply(
            slots, gradients, trainable
        )
        return loss, (trainable, rest, slots)

    variables = (
        model.trainable_variables,
        model.non_trainable_variables,
        optimizer.variables,
    )
    state = [[variable.value for variable in group] for group in variables]
    losses = []
    for x, y in batches:
        loss, state = step(*state, x, y)
        losses.append(float(loss))
    for group, values in zip(variables, state):
        for variable, value in zip(group, values):
            variable.assign(value)
    return losses


def tensorflow_loop(model, optimizer, batches):
    import tensorflow as tf

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_function()(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_weights)
        optimizer.apply(gradients, model.trainable_weights)
        return loss

    return [float(step(x, y)) for x, y in batches]


def torch_loop(model, optimizer, batches):
    import torch

    losses = []
    for x, y in batches:
        model.zero_grad()
        loss = loss_function()(y, model(x, training=True))
        loss.backward()
        weights = model.trainable_weights
        with torch.no_grad():
            optimizer.apply([w.value.grad for w in weights], weights)
        losses.append(loss.item())
    return losses


LOOPS = {"jax": jax_loop, "tensorflow": tensorflow_loop, "torch": torch_loop}


@pytest.mark.requires_trainable_backend
def test_a_loop_of_ones_own_trains_as_fit_does():
    x, y = samples()
    fitted = built(Perceptron)
    fitted.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss_function())
    fitted.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0)

    model = built(Perceptron)
    start = weights_of(model)
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
    batches = [
        (x[i : i + BATCH], y[i : i + BATCH]) for i in range(0, len(x), BATCH)
    ]
    losses = LOOPS[BACKEND](model, optimizer, batches)
    assert len(losses) == len(batches)
    for loop, fit, begun in zip(weights_of(model), weights_of(fitted), start):
        np.testing.assert_allclose(loop, fit, rtol=1e-4, atol=1e-5)
        assert (loop != begun).any()


class Doubling(Perceptron):
    """Trains on twice the loss, in a step of its own."""

    def compute_loss(self, *args, **kwargs):
        return 2 * super().compute_loss(*args, **kwargs)

    def train_step(self, *args):
        logs = super().train_step(*args)
        if BACKEND != "jax":
            return {**logs, "own": 7.0}
        logs, state = logs
        return {**logs, "own": 7.0}, state


@pytest.mark.requires_trainable_backend
def test_a_step_of_ones_own():
    x, y = samples()
    losses = {}
    for make in (Perceptron, Doubling):
        model = built(make)
        model.compile(keras.optimizers.SGD(0.0), loss_function())
        losses[make] = model.fit(
            x, y, batch_size=BATCH, shuffle=False, verbose=0
        ).history
    (own,), (plain,) = (losses[c]["loss"] for c in (Doubling, Perceptron))
    assert own == pytest.approx(2 * plain, rel=1e-4)
    assert losses[Doubling]["own"] == [7.0]
