"""Files to which whole lines are appended, each durable before the next step. Edge."""

import errno
import os
from pathlib import Path


def append_line(path: Path, line: bytes) -> None:
    """Append a line, given without its end, and wait until it is on the disk. Raises OSError.

    A last line that a kill has cut off stays apart from the new line. An empty line only creates
    the file, which its owner alone can read.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if line:
            end = os.lseek(descriptor, 0, os.SEEK_END)
            cut = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
            content = (b"\n" if cut else b"") + line + b"\n"
            if os.write(descriptor, content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
