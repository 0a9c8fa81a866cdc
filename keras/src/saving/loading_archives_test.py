import os
import zipfile

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
