"""Files that something is wrong with: errors tell what, and change nothing."""

import io
import json
import os
import zipfile
from unittest import mock

import h5py
import numpy as np
import pytest

from keras.src import backend
from keras.src import layers
from keras.src import models
from keras.src import saving
from keras.src.backend.common.h5_array import H5Array
from keras.src.distribution import distribution_lib
from keras.src.saving import saving_lib
from keras.src.saving.loading_testing import Files
from keras.src.saving.loading_testing import make_distribution
from keras.src.saving.loading_testing import make_model
from keras.src.saving.loading_testing import randomize
from keras.src.saving.loading_testing import values

if backend.backend() != "jax":
    pytest.skip("Other backends lay nothing out.", allow_module_level=True)

LAST = "layers/dense_1/vars"


def text(error):
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


def overwrite(file, position, data):
    with open(file, "r+b") as f:
        f.seek(position)
        f.write(data)


def rewrite(archive, change):
    """Writes a zip archive anew, with `change(name, data)` of each member."""
    with zipfile.ZipFile(archive) as f:
        members = {name: f.read(name) for name in f.namelist()}
    with zipfile.ZipFile(archive, "w") as f:
        for name, data in members.items():
            f.writestr(name, change(name, data))


class LoadingFaultsTest(Files):
    def assert_refused(self, model, file, *names, error=ValueError):
        before = values(model)
        with self.assertRaises(error) as raised:
            model.load_weights(file)
        for name in names:
            self.assertIn(name, text(raised.exception))
        self.assert_same(before, values(model))
        for variable in model.weights:
            self.assertIs(type(variable), backend.Variable)

    def test_truncated(self):
        for name in ("a.weights.h5", "a.keras"):
            model = make_model()
            file = self.saved(model, name)
            os.truncate(file, os.path.getsize(file) // 2)
            randomize(model)
            self.assert_refused(
                model, file, name, error=(OSError, zipfile.BadZipFile)
            )
        with self.assertRaisesRegex(ValueError, "a.keras"):
            saving.load_model(file)

    def test_truncated_among_several(self):
        model = make_model()
        file = self.saved(model, "a.weights.json", max_shard_size=3e-6)
        with open(file) as f:
            shards = json.load(f)["weight_map"].values()
        last = sorted(s if isinstance(s, str) else s[-1] for s in shards)[-1]
        shard = os.path.join(os.path.dirname(file), last)
        os.truncate(shard, os.path.getsize(shard) // 2)
        randomize(model)
        self.assert_refused(model, file, last, error=OSError)

    def test_wrong_shape_in_the_last_layer(self):
        model = make_model()
        file = self.saved(model, "a.weights.h5")
        with h5py.File(file, "a") as f:
            group = f["layers/dense_1/vars"]
            del group["0"]
            group["0"] = np.zeros((16, 9))
        randomize(model)
        self.assert_refused(
            model, file, "a.weights.h5", "last/kernel", "(16, 8)", "(16, 9)"
        )

    def test_missing_variables(self):
        model = make_model()
        file = self.saved(model, "a.weights.h5")
        with h5py.File(file, "a") as f:
            del f["layers/dense_1"]
        randomize(model)
        self.assert_refused(model, file, "a.weights.h5", "last", "kernel")
        file = self.saved(model, "b.weights.h5")
        with h5py.File(file, "a") as f:
            f.move("layers/dense_1/vars/1", "layers/dense_1/vars/7")
        self.assert_refused(model, file, "b.weights.h5", "'1'", "last")

    def test_dtype_that_cannot_be_cast(self):
        model = make_model()
        file = self.saved(model, "a.weights.h5")
        with h5py.File(file, "a") as f:
            group = f["layers/dense_1/vars"]
            del group["1"]
            group["1"] = np.array([b"abc"] * 8)
        randomize(model)
        self.assert_refused(model, file, "a.weights.h5", "last/bias")

    def test_part_file_that_is_missing(self):
        model = make_model()
        file = self.saved(model, "a.weights.json", max_shard_size=3e-6)
        with open(file) as f:
            names = json.load(f)["weight_map"][f"/{LAST}"]
        name = names if isinstance(names, str) else names[-1]
        os.remove(os.path.join(os.path.dirname(file), name))
        randomize(model)
        self.assert_refused(
            model, file, name, "/gamma", error=FileNotFoundError
        )

    def test_map_of_part_files_that_is_damaged(self):
        model = make_model()
        file = self.saved(model, "a.weights.json", max_shard_size=3e-6)
        os.truncate(file, os.path.getsize(file) // 2)
        randomize(model)
        self.assert_refused(model, file, "a.weights.json")

    def test_damaged_bytes_in_an_archive(self):
        model = make_model()
        file = self.saved(model, "a.keras")
        with zipfile.ZipFile(file) as archive:
            info = archive.getinfo("model.weights.h5")
        overwrite(file, info.header_offset + info.file_size // 2, b"damaged")
        randomize(model)
        error = zipfile.BadZipFile
        self.assert_refused(model, file, "a.keras", "CRC", error=error)
        with self.assertRaisesRegex(error, "a.keras.*CRC"):
            saving.load_model(file)

    def compressed(self, model, **options):
        """A file whose last kernel is compressed, and where that is in it."""
        file = self.saved(model, "a.weights.h5")
        with h5py.File(file, "a") as f:
            kernel = f[f"{LAST}/0"][:]
            del f[f"{LAST}/0"]
            dataset = f[LAST].create_dataset(
                "0", data=kernel, chunks=(4, 8), **options
            )
            return file, dataset.id.get_chunk_info(2).byte_offset

    @pytest.mark.multi_device
    def test_damaged_chunks(self):
        for columns in (None, 8, 2):
            for options in ({"compression": "gzip"}, {"fletcher32": True}):
                distribution_lib.set_distribution(
                    columns and make_distribution(columns)
                )
                model = make_model()
                file, start = self.compressed(model, **options)
                model.load_weights(file)
                overwrite(file, start, b"damaged")
                randomize(model)
                self.assert_refused(
                    model, file, file, f"{LAST}/0", "last/kernel", error=OSError
                )

    def test_values_that_lie_beyond_the_end_of_the_file(self):
        model = make_model()
        file = self.saved(model, "a.weights.h5")
        with h5py.File(file) as f:
            offset = f[f"{LAST}/0"].id.get_offset()
        with open(file, "rb") as f:
            data = f.read()
        offset = offset.to_bytes(8, "little")
        self.assertEqual(data.count(offset), 1)
        beyond = (len(data) + 8).to_bytes(8, "little")
        overwrite(file, data.index(offset), beyond)
        randomize(model)
        self.assert_refused(model, file, "a.weights.h5", "last/kernel")

    def test_failure_in_the_middle_tells_what_has_changed(self):
        model = make_model()
        file = self.saved(model, "a.weights.h5")
        new = values(model)
        randomize(model)
        old = values(model)
        read = H5Array.read

        def fail_for_last(self, parts):
            if LAST in self._name:
                raise OSError("The disk is gone.")
            read(self, parts)

        with (
            mock.patch.object(H5Array, "read", fail_for_last),
            self.assertRaisesRegex(OSError, "last/kernel") as raised,
        ):
            model.load_weights(file)
        message = text(raised.exception)
        self.assertIn("a.weights.h5", message)
        (changed,) = [m for m in message.splitlines() if "new values" in m]
        for i, variable in enumerate(model.weights):
            is_new = repr(variable.path) in changed
            self.assertEqual(is_new, "last" not in variable.path)
            np.testing.assert_array_equal(
                np.asarray(variable.value), (new if is_new else old)[i]
            )

    def test_npz(self):
        def fault(name, data):
            if not name.endswith(".npz"):
                return data
            with np.load(io.BytesIO(data)) as arrays:
                arrays = dict(arrays)
            entry = "layers/dense_1/1"
            if kind == "missing":
                del arrays[entry]
            elif kind == "shape":
                arrays[entry] = np.zeros(7)
            elif kind == "dtype":
                arrays[entry] = np.array(["abc"] * 8)
            written = io.BytesIO()
            np.savez(written, **arrays)
            size = written.tell() // (2 if kind == "truncated" else 1)
            return written.getvalue()[:size]

        model = make_model()
        for kind, names, error in (
            ("missing", ["'last' expected 2", "bias"], ValueError),
            ("shape", ["last/bias", "(7,)"], ValueError),
            ("dtype", ["last/bias"], ValueError),
            ("truncated", [], zipfile.BadZipFile),
        ):
            file = self.path(f"{kind}.keras")
            saving_lib.save_model(model, file, weights_format="npz")
            rewrite(file, fault)
            with self.assertRaises(error) as raised:
                saving.load_model(file)
            for name in [f"{kind}.keras", *names]:
                self.assertIn(name, text(raised.exception))

    def test_skip_mismatch(self):
        model = make_model()
        randomize(model)
        file = self.saved(model, "a.weights.h5")
        other = make_model(units=12)
        before = values(other)
        with self.assertWarnsRegex(UserWarning, "could not be loaded"):
            other.load_weights(file, skip_mismatch=True)
        self.assert_same(values(other)[:1], values(model)[:1])
        self.assert_same(values(other)[1:2], before[1:2])

    def test_values_that_a_users_method_assigned_come_back(self):
        class Own(layers.Dense):
            def load_own_variables(self, store):
                super().load_own_variables(store)
                self.bias.assign(2 * self.bias.value)

        Own.load_own_variables.__module__ = "users"

        def make():
            return models.Sequential(
                [layers.Input((4,)), Own(4, name="own"), layers.Dense(3)]
            )

        model = make()
        model.compile("sgd", "mse")
        for variable in model.weights:
            variable.assign(np.ones(variable.shape))
        file = self.saved(model, "a.weights.h5")
        other = make()
        other.load_weights(file)
        self.assertAllClose(other.layers[0].bias.value, 2 * np.ones(4))
        with h5py.File(file, "a") as f:
            del f["layers/dense/vars/1"]
        model.layers[0].bias.assign(np.full(4, 5.0))
        self.assert_refused(model, file, "a.weights.h5")
