"""Several files and directories as the content of one message."""

PARTIAL_PREFIX: str
"""Names of what is not whole begin with this."""

class BundleError(Exception):
    """Why nothing was made of it: a code ("no_space", "storage", "damaged", "refused", "changed", "broken") and a
    text."""

class Packed:
    """What is to be sent, as it was found."""

    @property
    def size(self) -> int:
        """Bytes of the list and of what comes behind it."""
    @property
    def list_bytes(self) -> int: ...
    @property
    def left_out(self) -> list[bytes]:
        """Sockets, pipes and devices, which are not sent."""
    def __len__(self) -> int: ...
    def entries(self) -> list[tuple[bytes, str, int]]:
        """Path from its top, kind and length of each entry."""
    def write(self, descriptor: int) -> None:
        """All of it. BundleError: it is cut short."""

def pack(paths: list[bytes], exclude: list[bytes], attributes: bool, owners: bool) -> Packed:
    """Looks at files and directories. ``exclude``: patterns of the shell, of a name or of a path from its top."""

class Unpacked:
    """All of a bundle, under a hidden name."""

    def tops(self) -> list[bytes]:
        """Names of what is to be placed."""
    def __len__(self) -> int: ...
    def place(self, index: int, name: bytes, overwrite: bool) -> bool:
        """Moves one to its place. False: the name is taken. OSError."""
    def sync(self) -> None:
        """The names given are on the disk."""
    def close(self) -> None:
        """Removes what was not placed."""

def unpack(
    descriptor: int,
    directory: bytes,
    entries: int,
    list_bytes: int,
    size: int,
    *,
    umask: int,
    preserve: bool,
    owners: bool,
    attributes: bool,
    sync: bool,
) -> Unpacked:
    """Reads a bundle to its end. BundleError: nothing is left of it."""

def remove_left_behind(directory: bytes, name: bytes) -> bool:
    """Removes a hidden directory that a program which was killed has left. False: its program lives. OSError."""
