"""Reads HDF5 files where they are in a zip archive, by the part."""

import io
import os
import shutil
import struct
import tempfile
import zipfile

_BLOCK_BYTES = 2**22


class _Member(io.RawIOBase):
    """A range of bytes of a file."""

    def __init__(self, file, start, size):
        self._file = file
        self._start = start
        self._size = size
        self._position = 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self._position

    def seek(self, offset, whence=os.SEEK_SET):
        base = {
            os.SEEK_SET: 0,
            os.SEEK_CUR: self._position,
            os.SEEK_END: self._size,
        }
        self._position = base[whence] + offset
        return self._position

    def readinto(self, buffer):
        view = memoryview(buffer).cast("B")
        view = view[: max(0, self._size - self._position)]
        left = view
        # One call reads no more than 2 GB, and h5py does not ask how much.
        while left:
            # The archive moves the position of the file for its own purposes.
            count = os.preadv(
                self._file.fileno(), [left], self._start + self._position
            )
            if count == 0:
                raise OSError("The file ends too early.")
            self._position += count
            left = left[count:]
        return len(view)


def stored_member(archive, name):
    """Returns a file object for what a zip archive stores uncompressed.

    Unlike the one that `zipfile` returns, it reads nothing but what it is
    asked for.

    Args:
        archive: A `zipfile.ZipFile` that is open to read.
        name: The name of the member.

    Returns:
        A file object, or `None` if the member is not stored as it is in a
        file on this machine.
    """
    info = archive.getinfo(name)
    is_encrypted = info.flag_bits & 1
    if info.compress_type != zipfile.ZIP_STORED or is_encrypted:
        return None
    if not hasattr(os, "preadv"):  # On Windows.
        return None
    # Others may have the descriptor of a file that they decode.
    if not isinstance(getattr(archive.fp, "raw", archive.fp), io.FileIO):
        return None
    descriptor = archive.fp.fileno()
    # A local header of 30 bytes, with the lengths of what follows it.
    header = os.pread(descriptor, 30, info.header_offset)
    lengths = struct.unpack("<HH", header[26:])
    start = info.header_offset + len(header) + sum(lengths)
    return _Member(archive.fp, start, info.file_size)


def extracted(archive, name):
    """Copies a member of a zip archive to a temporary file.

    HDF5 reads here and there, and what is compressed is read from its start
    each time.

    Args:
        archive: A `zipfile.ZipFile` that is open to read.
        name: The name of the member.

    Returns:
        A file object. The file is deleted when it is closed.
    """
    copy = tempfile.TemporaryFile()
    try:
        with archive.open(name) as file:
            shutil.copyfileobj(file, copy, _BLOCK_BYTES)
    except BaseException:
        copy.close()
        raise
    return copy


def check_sum(archive, name):
    """Reads a member of a zip archive to see whether it is as it was written.

    Args:
        archive: A `zipfile.ZipFile` that is open to read.
        name: The name of the member.

    Raises:
        zipfile.BadZipFile: If its checksum is not the one in the archive.
    """
    with archive.open(name) as file:
        while file.read(_BLOCK_BYTES):
            pass
