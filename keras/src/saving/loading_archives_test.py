import os
import zipfile
from unittest import mock

import numpy as np

from keras.src import testing
from keras.src.saving import loading_archives


class LoadingArchivesTest(testing.TestCase):
    def test_reads_what_zipfile_reads(self):
        path = os.path.join(self.get_temp_dir(), "a.zip")
        data = np.random.default_rng(0).bytes(5000)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("first", b"abc")
            archive.writestr("second", data)
            archive.writestr("third", data, zipfile.ZIP_DEFLATED)
        with zipfile.ZipFile(path) as archive:
            member = loading_archives.stored_member(archive, "second")
            self.assertEqual(member.read(), data)
            self.assertEqual(member.seek(-7, os.SEEK_END), 4993)
            self.assertEqual(member.read(100), data[-7:])
            self.assertEqual(member.read(1), b"")
            member.seek(10)
            self.assertEqual(member.read(5), data[10:15])
            self.assertIsNone(loading_archives.stored_member(archive, "third"))

    def test_reads_all_although_the_system_reads_less_at_a_time(self):
        path = os.path.join(self.get_temp_dir(), "a.zip")
        data = np.random.default_rng(0).bytes(5000)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("stored", data)
        real = os.preadv

        def at_most_700(descriptor, buffers, offset):
            return real(descriptor, [buffers[0][:700]], offset)

        with zipfile.ZipFile(path) as archive:
            member = loading_archives.stored_member(archive, "stored")
            with mock.patch.object(os, "preadv", at_most_700):
                out = bytearray(4321)
                self.assertEqual(member.readinto(out), 4321)
                self.assertEqual(bytes(out), data[:4321])
                self.assertEqual(member.read(), data[4321:])
            member.seek(0)
            os.truncate(path, 3000)
            with self.assertRaisesRegex(OSError, "ends too early"):
                member.readinto(out)

    def test_checksum(self):
        path = os.path.join(self.get_temp_dir(), "a.zip")
        data = np.random.default_rng(0).bytes(5000)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("stored", data)
            archive.writestr("deflated", data, zipfile.ZIP_DEFLATED)
        with zipfile.ZipFile(path) as archive:
            loading_archives.check_sum(archive, "stored")
            loading_archives.check_sum(archive, "deflated")
        with open(path, "r+b") as file:
            file.seek(3000)
            file.write(b"damaged")
        with zipfile.ZipFile(path) as archive:
            loading_archives.check_sum(archive, "deflated")
            with self.assertRaisesRegex(zipfile.BadZipFile, "'stored'"):
                loading_archives.check_sum(archive, "stored")
