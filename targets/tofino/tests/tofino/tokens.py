"""Words of P4 sources, and what the preprocessor makes of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<string>"[^"]*")
  | (?P<number>\d+w(?:0x[0-9a-fA-F_]+|\d+)|0x[0-9a-fA-F_]+|\d+)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<mark>&&&|\|-\||\+\+|<<|&&|\|\||==|!=|<=|>=|[-+~!&|^<>=(){}\[\];:,.@])
    """,
    re.VERBOSE | re.DOTALL,
)


class SyntaxProblem(Exception):
    """Source that this reader does not know; the text names file, line and token."""


@dataclass(frozen=True)
class Token:
    """One word of the source and where it stands."""

    kind: str
    text: str
    where: str


class Sources:
    """Files that are read one after another. Each is read once; names that one defines hold in the next."""

    def __init__(self) -> None:
        self.seen: set[Path] = set()
        self.defined: set[str] = set()

    def tokens(self, path: Path) -> Iterator[Token]:
        """Tokens of a file and of what it includes by "name". Raises SyntaxProblem."""
        if path in self.seen:
            return
        self.seen.add(path)
        text = path.read_text()
        live = [True]  # whether the text counts, for the file and each condition that is open
        at = 0
        while at < len(text):
            where = f"{path.name}:{text.count(chr(10), 0, at) + 1}"
            if text[at] == "#":
                directive = text[at:].partition("\n")[0]
                at += len(directive)
                included = re.fullmatch(r'#include "([^"]+)"\s*', directive)
                if included is None:
                    self._condition(directive, live, where)
                elif live[-1]:
                    yield from self.tokens((path.parent / included.group(1)).resolve())
                continue
            if not live[-1]:
                following = text.find("\n#", at)
                at = len(text) if following < 0 else following + 1
                continue
            found = TOKEN.match(text, at)
            if found is None:
                raise SyntaxProblem(f"{where}: {text[at : at + 10]!r} is no token")
            at = found.end()
            if found.lastgroup != "space":
                yield Token(str(found.lastgroup), found.group(), where)
        if len(live) != 1:
            raise SyntaxProblem(f"{path.name}: a condition is open at its end")

    def _condition(self, directive: str, live: list[bool], where: str) -> None:
        """Names are defined without a value, and asked for one by one."""
        found = re.fullmatch(
            r"#(define|ifdef|ifndef|else|endif|include)(?: +(\w+|<[\w.]+>))?\s*(?://.*)?", directive
        )
        word, name = found.groups() if found else ("", "")
        if word in ("ifdef", "ifndef") and name:
            live.append(live[-1] and (name in self.defined) == (word == "ifdef"))
        elif word == "else" and len(live) > 1:
            live[-1] = live[-2] and not live[-1]
        elif word == "endif" and len(live) > 1:
            live.pop()
        elif word == "define" and name:
            if live[-1]:
                self.defined.add(name)
        elif word != "include":
            raise SyntaxProblem(f"{where}: directive {directive!r} is not known")
