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
    def offer(self) -> Offer:
        """Reads all files once, for hashes. BundleError."""
    def entries(self) -> list[tuple[bytes, str, int]]:
        """Path from its top, kind and length of each entry."""
    def write(self, descriptor: int) -> None:
        """All of it. BundleError: it is cut short."""

def pack(paths: list[bytes], exclude: list[bytes], attributes: bool, owners: bool) -> Packed:
    """Looks at files and directories. ``exclude``: patterns of the shell, of a name or of a path from its top."""

class Offer:
    """The list of a bundle with hashes, and what of it somebody lacks."""

    @property
    def list(self) -> bytes: ...
    def __len__(self) -> int: ...
    def begin(self) -> None:
        """Nobody is known to lack anything."""
    def note_all(self) -> None:
        """Somebody lacks everything."""
    def note(self, answer: bytes) -> bool:
        """What a receiver lacks. False: that is no answer to this, and says nothing."""
    def bundle(self) -> Packed:
        """With what somebody lacks. BundleError."""

class Offered:
    """A list that is offered."""

    @property
    def identity(self) -> bytes:
        """Which list it is."""
    def tops(self) -> list[bytes]: ...
    def stop(self) -> None:
        """What is compared is for nobody any more: ``compare`` ends, now or when it is called."""
    def compare(
        self,
        directory: bytes,
        names: list[list[bytes]],
        *,
        umask: int,
        preserve: bool,
        owners: bool,
        attributes: bool,
        exact: bool,
    ) -> Plan:
        """Looks for what is there of it. ``names``: those that each top may have, the likeliest first. ``exact``: what
        has another mode or time is not as it is to be. BundleError."""

class Plan:
    """What is there of a list."""

    @property
    def identity(self) -> bytes:
        """Of which list it is."""
    @property
    def answer(self) -> bytes: ...
    def close(self) -> None:
        """Nobody needs it any more: others may remove what broken transfers have left."""

def read_offer(descriptor: int, entries: int, list_bytes: int) -> Offered:
    """Reads a list to its end. BundleError."""

class Unpacked:
    """All of a bundle, under a hidden name."""

    def tops(self) -> list[bytes]:
        """Names of what is to be placed."""
    def __len__(self) -> int: ...
    def place(self, index: int, name: bytes, overwrite: bool) -> bool:
        """Moves one to its place. False: the name is taken. OSError."""
    def unchanged(self) -> list[bytes]:
        """Names of what was there already, and stays: to be asked before the rest is placed, none of which may take these.
        BundleError: it is not as it was when the list came."""
    @property
    def planned(self) -> bytes | None:
        """Of which list the plan was by which it was made."""
    def done(self) -> None:
        """All has its names: what broken transfers have left of it goes."""
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
    plans: list[Plan] | None = ...,
) -> Unpacked:
    """Reads a bundle to its end. BundleError: nothing is left of it; of one whose list was offered, something for the
    next transfer. ``plans``: what was there of lists that its sender has offered; None: it has offered none."""

def trim_kept(directory: bytes) -> int:
    """Removes what broken transfers have left and is too old, or too much; gives how many. OSError."""

def remove_left_behind(directory: bytes, name: bytes) -> bool:
    """Removes a hidden directory that a program which was killed has left. False: its program lives. OSError."""
