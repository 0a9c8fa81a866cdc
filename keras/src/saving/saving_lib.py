"""Grafts: files are read by the part, loaded all or not at all, and written
by one process for all."""

from keras.src.saving import gathering
from keras.src.saving import loading
from keras.src.saving import npz

save_model = gathering.by_one_process(save_model)
save_weights_only = gathering.by_one_process(save_weights_only)
_load_model_from_dir = loading.without_initial_draws(_load_model_from_dir)
_load_model_from_fileobj = loading.without_initial_draws(
    _load_model_from_fileobj
)
load_weights_only = loading.naming_its_file(load_weights_only)
_load_state = loading.all_or_nothing(_load_state)


class H5IOStore:
    _get_h5_file = loading.reading_parts(_get_h5_file)
    __getitem__ = loading.lazily(__getitem__)
    __setitem__ = gathering.gathered(__setitem__)


class ShardedH5IOStore:
    __setitem__ = gathering.gathered(__setitem__)


class NpzIOStore:
    get = npz.reading_arrays(get)
    has_path = npz.finding_arrays(has_path)
    close = npz.writing_arrays(close)


is_memory_sufficient = loading.unless_read_in_place(is_memory_sufficient)
