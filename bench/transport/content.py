"""What is sent: a file, many small files, a directory of which a part changes. All in memory, so that no disk is measured."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import time
from pathlib import Path

SMALL_BYTES = 4_096
A_FOLDER = 200
"""Files in a folder."""
SIZES = (4_096, 64 << 20)
"""Of mixed files: any magnitude in between is as likely."""
CHANGED = 0.01
A_DAY_S = 86_400


def file(path: Path, size: int) -> Path:
    """Random bytes."""
    with path.open("wb") as out:
        for start in range(0, size, 1 << 20):
            out.write(os.urandom(min(1 << 20, size - start)))
    return path


def small_files(root: Path, count: int) -> Path:
    """So many files of 4 KB."""
    for number in range(count):
        folder = root / f"d{number // A_FOLDER}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}").write_bytes(os.urandom(SMALL_BYTES))
    return root


def mixed_files(root: Path, size: int) -> Path:
    """Files of 4 KB to 64 MiB, so many bytes together; none has more than an eighth."""
    draw, left, number = random.Random(1), size, 0
    low, high = SIZES[0], max(SIZES[0], min(SIZES[1], size // 8))
    while left > 0:
        length = min(left, round(low * (high / low) ** draw.random()))
        folder = root / f"d{number // A_FOLDER}"
        folder.mkdir(parents=True, exist_ok=True)
        path = file(folder / f"f{number}", length)
        # Of the day before: what changes later has another time of change, to the second.
        os.utime(path, (time.time() - A_DAY_S,) * 2)
        left, number = left - length, number + 1
    return root


def change(root: Path, size: int) -> None:
    """New bytes in files that are a hundredth of all bytes together."""
    draw, wanted = random.Random(2), int(size * CHANGED)
    paths = [path for path in sorted(root.rglob("f*")) if path.is_file()]
    draw.shuffle(paths)
    for path in paths:
        length = path.stat().st_size
        if length <= wanted:
            file(path, length)
            wanted -= length


def copy(source: Path, target: Path, *, names: bool = False) -> None:
    """The same files; with `names` other names of them, which none that is measured writes into."""
    subprocess.run(["cp", "-al" if names else "-a", str(source), str(target)], check=True)


def digest(root: Path) -> str:
    """Of a file, or of all files below a directory with their names."""
    if root.is_file():
        with root.open("rb") as one:
            return hashlib.file_digest(one, "sha256").hexdigest()
    every = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        every.update(f"{path.relative_to(root)} {digest(path)}\n".encode())
    return every.hexdigest()
