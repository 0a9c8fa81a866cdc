from keras.src.backend.common.random_state_scope import (
    suspending_random_state_scope,
)


class SeedGenerator:
    __init__ = suspending_random_state_scope(__init__)


global_seed_generator = suspending_random_state_scope(global_seed_generator)
