"""Files as messages (hostagent/API.md §8): a header, the content, its SHA-256.

"WCFILE1\\n"   8 bytes
length         4 bytes, big endian: of the header that follows, at most 4096
header         JSON object: "name" (string), "size" (0 to 2^63 - 1, absent if not known before),
               "mode" (permissions) and "mtime_ns" (absent if it has none), "bundle" (of several files: how
               many "entries", and the "list_bytes" of the list that its content begins with), "offer" (true: the
               content is the list alone, with hashes), "offered" (true: it went before), "lag_bytes" (so many
               may wait for a receiver at most, or its agent gives the file up; absent: it has its time), "late" (true:
               who is too slow gets it later), "more" (true: another try follows for who fails), "again" (true: it is one)
content
sha256         32 bytes, of the content
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

MAGIC = b"WCFILE1\n"
HEADER_BYTES_MAX = 4096
NAME_BYTES_MAX = 200
SIZE_BYTES_MAX = (1 << 63) - 1
"""Of a file: what Linux can count in one."""
PERMISSIONS = 0o777
MTIME_NS_MAX = (1 << 63) - 1
"""In the year 2262."""
DIGEST_BYTES = 32
LAG_BYTES_MIN = 64 << 10
"""So many bytes of a file may always wait for its receiver."""

_LENGTH = struct.Struct(">I")


class FileFormatError(Exception):
    """A message that is not a file, or not the file it claims to be."""


@dataclass(frozen=True)
class Bundle:
    """Several files, directories and links in place of one file."""

    entries: int
    list_bytes: int
    """The content begins with so many bytes that say what comes."""


@dataclass(frozen=True)
class FileHeader:
    """What a file message says of itself. Nothing of it is to be trusted."""

    name: str
    size: int | None
    mode: int | None = None
    """Permissions for owner, group and others: nothing that gives the rights of another user."""
    mtime_ns: int | None = None
    """When the content was changed last, in nanoseconds since 1970."""
    bundle: Bundle | None = None
    offer: bool = False
    """It is the list that goes before a bundle, and no file."""
    offered: bool = False
    """The list has gone before: receivers may have some of it."""
    lag_bytes: int | None = None
    """A receiver that lets more bytes wait loses the file; None: the others wait for it."""
    late: bool = False
    """A receiver that is too slow gets it later."""
    more: bool = False
    """Another try follows for receivers that fail."""
    again: bool = False
    """It is not the first try."""


def encode_file_start(
    name: str,
    size: int | None,
    mode: int | None = None,
    mtime_ns: int | None = None,
    bundle: Bundle | None = None,
    *,
    offer: bool = False,
    offered: bool = False,
    lag_bytes: int | None = None,
    late: bool = False,
    more: bool = False,
    again: bool = False,
) -> bytes:
    """Everything before the content. ``name`` is cut to what the header has room for, ``mode`` to the
    permissions; a time that the header cannot tell is left out."""
    fields: dict[str, object] = {"name": safe_file_name(name)}
    if size is not None:
        fields["size"] = size
    if mode is not None:
        fields["mode"] = mode & PERMISSIONS
    if mtime_ns is not None and 0 <= mtime_ns <= MTIME_NS_MAX:
        fields["mtime_ns"] = mtime_ns
    if bundle is not None:
        fields["bundle"] = {"entries": bundle.entries, "list_bytes": bundle.list_bytes}
    if lag_bytes is not None:
        fields["lag_bytes"] = lag_bytes
    flags = {"offer": offer, "offered": offered, "late": late, "more": more, "again": again}
    fields |= {name: True for name, given in flags.items() if given}
    header = json.dumps(fields).encode()
    return MAGIC + _LENGTH.pack(len(header)) + header


class FileDecoder:
    """Takes a message apart as it comes.

    The digest is at the end, so the last 32 bytes that have come are held back.
    """

    def __init__(self) -> None:
        self.header: FileHeader | None = None
        self.size = 0
        """Bytes of content handed out so far."""
        self._held = bytearray()
        self._hash = hashlib.sha256()

    def feed(self, data: bytes) -> bytes:
        """The content in ``data``, as far as it is known to be content."""
        self._held += data
        if self.header is None and not self._take_header():
            return b""
        ready = len(self._held) - DIGEST_BYTES
        if ready <= 0:
            return b""
        content = bytes(memoryview(self._held)[:ready])
        del self._held[:ready]
        self._hash.update(content)
        self.size += len(content)
        if self.header is not None and self.header.size is not None and self.size > self.header.size:
            raise FileFormatError(f"more content than the {self.header.size} bytes announced")
        return content

    def finish(self) -> str:
        """At the end of the message: the digest in hex. FileFormatError if anything is amiss."""
        if self.header is None or len(self._held) != DIGEST_BYTES:
            raise FileFormatError("the message is not a file: it is too short")
        if self.header.size is not None and self.size != self.header.size:
            raise FileFormatError(f"{self.size} bytes of content, {self.header.size} announced")
        digest = self._hash.digest()
        if digest != self._held:
            raise FileFormatError(
                f"the SHA-256 of the content is {digest.hex()}, the sender's was {self._held.hex()}"
            )
        return digest.hex()

    def _take_header(self) -> bool:
        start = len(MAGIC) + _LENGTH.size
        if not MAGIC.startswith(self._held[: len(MAGIC)]):
            raise FileFormatError("the message is not a file sent by `wormcast send`")
        if len(self._held) < start:
            return False
        (length,) = _LENGTH.unpack_from(self._held, len(MAGIC))
        if length > HEADER_BYTES_MAX:
            raise FileFormatError(f"a file header of {length} bytes; at most {HEADER_BYTES_MAX}")
        if len(self._held) < start + length:
            return False
        self.header = parse_header(bytes(self._held[start : start + length]))
        del self._held[: start + length]
        return True


def safe_file_name(name: str) -> str:
    """A plain file name made of ``name``, whoever chose it: no directories, no control
    characters, not longer than NAME_BYTES_MAX bytes, never empty or hidden."""
    return _plain(name.replace("\\", "/").rsplit("/", 1)[-1].encode(errors="replace").decode())


def safe_top_name(name: bytes) -> str:
    """The same of a file or directory in a bundle. Bytes that are no text in this encoding stay as they are."""
    return _plain(os.fsdecode(name))


def _plain(name: str) -> str:
    kept = (one if one.isprintable() or "\udc80" <= one <= "\udcff" else "_" for one in name)
    text = "".join(kept)
    while len(os.fsencode(text)) > NAME_BYTES_MAX:
        text = text[:-1]
    return text.strip().lstrip(".") or "unnamed"


def other_names(name: str) -> Iterator[str]:
    """``name``, then names like it for when it is taken: a.txt, a.1.txt, a.2.txt …"""
    yield name
    stem, dot, suffix = name.rpartition(".")
    if not stem:
        stem, dot, suffix = name, "", ""
    for number in range(1, 10_000):
        yield f"{stem}.{number}{dot}{suffix}"


def parse_header(raw: bytes | str) -> FileHeader:
    """The header of a file. FileFormatError if it is damaged."""
    try:
        fields = json.loads(raw)
        name = fields["name"]
        size, mode, mtime_ns, lag_bytes = (
            fields.get(field) for field in ("size", "mode", "mtime_ns", "lag_bytes")
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise FileFormatError("the header of the file is damaged") from None
    numbers = (size, mode, mtime_ns, lag_bytes)
    if not isinstance(name, str) or not all(one is None or type(one) is int for one in numbers):
        raise FileFormatError("the header of the file is damaged")
    if size is not None and not 0 <= size <= SIZE_BYTES_MAX:
        raise FileFormatError(f"a size of {size!s:.40} bytes is announced; possible: 0 to {SIZE_BYTES_MAX}")
    if mode is not None and not 0 <= mode <= PERMISSIONS:
        raise FileFormatError(f"a mode of {mode!s:.40} is announced; possible: 0 to {PERMISSIONS}")
    if mtime_ns is not None and not 0 <= mtime_ns <= MTIME_NS_MAX:
        raise FileFormatError(f"a time of {mtime_ns!s:.40} ns is announced; possible: 0 to {MTIME_NS_MAX}")
    if lag_bytes is not None and not LAG_BYTES_MIN <= lag_bytes <= SIZE_BYTES_MAX:
        raise FileFormatError(
            f"{lag_bytes!s:.40} bytes may wait for a receiver; possible: {LAG_BYTES_MIN} to {SIZE_BYTES_MAX}"
        )
    bundle = _bundle(fields.get("bundle"), size)
    offer = fields.get("offer") is True
    if offer and (bundle is None or bundle.list_bytes != size):
        raise FileFormatError("what is offered is not the list of several files")
    offered, *tries = (fields.get(name) is True for name in ("offered", "late", "more", "again"))
    return FileHeader(safe_file_name(name), size, mode, mtime_ns, bundle, offer, offered, lag_bytes, *tries)


def _bundle(value: object, size: int | None) -> Bundle | None:
    if value is None:
        return None
    fields = value if isinstance(value, dict) else {}
    entries, list_bytes = fields.get("entries"), fields.get("list_bytes")
    # Whether there are so many is known when they are there.
    if type(entries) is not int or type(list_bytes) is not int or size is None or not 0 <= list_bytes <= size:
        raise FileFormatError("what the header says of several files is damaged")
    return Bundle(entries, list_bytes)
