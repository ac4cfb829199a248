"""Packages for arm64 are made on a machine of another kind, where Debian's cross compiler is installed.

The native module is built as it is in the packages. Two small programs stand in for the static ones, which take many
minutes: test_packages.py runs those of dist/arm64, where setup/arm64 has made them.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TARGET = "aarch64-unknown-linux-gnu"
COMPILER = "aarch64-linux-gnu-gcc"
AARCH64 = 183
"""Of ELF, the number of this processor."""


def missing() -> str | None:
    """What this machine lacks to build for arm64; None: nothing, or it is one."""
    if os.uname().machine == "aarch64":
        return "this is an arm64 machine: test_packages.py tests its packages"
    lacking = [tool for tool in (COMPILER, "qemu-aarch64", "dpkg-deb") if shutil.which(tool) is None]
    if lacking:
        return f"{', '.join(lacking)}: not installed (setup/arm64)"
    for rustc in ("rustc", "/usr/bin/rustc"):
        if shutil.which(rustc):
            asked = [rustc, "--print", "target-libdir", "--target", TARGET]
            libraries = Path(subprocess.run(asked, capture_output=True, text=True).stdout.strip() or "/none")
            if libraries.is_dir():
                return None
    return f"no Rust here has a standard library for {TARGET} (setup/arm64)"


NEEDS = missing()
spec = importlib.util.spec_from_file_location("wormcast_package", ROOT / "packaging" / "package.py")
assert spec is not None
assert spec.loader is not None
package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)


def processors(directory: Path) -> dict[str, int]:
    """The processor of each program and library in a directory, as ELF numbers them."""
    found = {}
    for path in directory.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                head = file.read(20)
            if head[:4] == b"\x7fELF":
                found[str(path.relative_to(directory))] = int.from_bytes(head[18:20], "little")
    return found


def libc_minor(text: str) -> int:
    """Of `… manylinux_2_N_aarch64 …`, N."""
    match = re.search(r"manylinux_2_(\d+)_aarch64", text)
    assert match is not None, text
    return int(match[1])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the module, and with what stands for the programs."""
    cargo = ["cargo", "build", "--locked", "--release", "--target", TARGET]
    cargo += [word for crate in package.MODULE_CRATES for word in ("--package", crate)]
    subprocess.run([ROOT / "setup" / "arm64", "run", *cargo], check=True, cwd=ROOT)
    directory = tmp_path_factory.mktemp("built")
    for module in package.MODULES:
        library = f"libwormcast_{module}.so"
        shutil.copy(ROOT / "target" / "arm64" / TARGET / "release" / library, directory)
    source = directory / "stand-in.c"
    source.write_text("int main(void) { return 0; }\n")
    for program in package.PROGRAMS:
        subprocess.run([COMPILER, "-static", "-o", directory / program, source], check=True)
    return directory


@pytest.mark.skipif(NEEDS is not None, reason=str(NEEDS))
@pytest.mark.timeout(1800)
def test_packages_for_arm64_are_made_here(built: Path, tmp_path: Path) -> None:
    wheel = package.make_wheel(tmp_path, built, "aarch64")
    libc = int(os.confstr("CS_GNU_LIBC_VERSION").split(".")[1])
    assert wheel.name.startswith("wormcast-")
    assert "-cp311-abi3-" in wheel.name
    assert 17 <= libc_minor(wheel.name) <= libc
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "wheel")
        tags = archive.read(next(name for name in archive.namelist() if name.endswith("/WHEEL"))).decode()
    assert libc_minor(tags) == libc_minor(wheel.name)
    binaries = processors(tmp_path / "wheel")
    modules = (f"wormcast_{module}.abi3.so" for module in package.MODULES)
    assert {Path(name).name for name in binaries} == {*modules, *package.IN_WHEEL}
    assert set(binaries.values()) == {AARCH64}

    archive = package.make_programs(tmp_path, built, "aarch64")
    names = subprocess.run(["tar", "-tf", archive], check=True, capture_output=True, text=True).stdout
    assert archive.name.endswith("-linux-arm64.tar.xz")
    assert "/completions/bash/wormcast-switch" in names

    # With the libraries of the lock file, each of which needs a wheel for arm64.
    deb = package.make_deb(tmp_path, built, wheel, "aarch64")
    asked = ["dpkg-deb", "--field", deb, "Architecture"]
    assert subprocess.run(asked, check=True, capture_output=True, text=True).stdout == "arm64\n"
    subprocess.run(["dpkg-deb", "--extract", deb, tmp_path / "deb"], check=True)
    binaries = processors(tmp_path / "deb")
    assert {f"usr/bin/{program}" for program in package.PROGRAMS} <= set(binaries)
    assert any("/numpy/" in name for name in binaries)
    assert set(binaries.values()) == {AARCH64}
    assert (tmp_path / "deb/usr/share/bash-completion/completions/wormcast").stat().st_size > 0


def test_other_processors_are_refused(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "packaging" / "package.py", "--target", "riscv64gc-unknown-linux-gnu"]
    done = subprocess.run([*command, "--out", tmp_path], capture_output=True, text=True)
    assert done.returncode == 2
    assert "is for none of: x86_64, aarch64" in done.stderr


def test_the_image_is_made_of_a_wheel_without_a_compiler() -> None:
    """`setup/arm64 image` asks for these stages: what Docker's builder makes for it are these and no others."""
    text = (ROOT / "packaging" / "docker" / "Dockerfile").read_text().replace("\\\n", "")
    stages = dict(re.findall(r"^FROM \S+ AS (\S+)\n(.*?)(?=^FROM|\Z)", text, re.M | re.S))
    # Docker's older builder makes all stages before the one it is asked for.
    assert list(stages)[-1] == "wheel"
    assert "COPY --from" not in stages["wheel"]
    assert re.findall(r"COPY --from=(\S+)", stages["wormcast"]) == ["furnished"]
    assert "FROM ${FURNISHED} AS furnished\n" in text
    asked = (ROOT / "setup" / "arm64").read_text()
    assert "--target wheel" in asked
    assert "--build-arg FURNISHED=" in asked
