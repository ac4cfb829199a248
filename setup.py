"""What pyproject.toml cannot say: the Rust parts of a wheel, and where the .proto files for them are.

An editable install has no Rust parts: setup/build puts them into .venv. Nor has one with WORMCAST_WITHOUT_RUST:
packaging/package.py adds those that are built already.
"""

import importlib.util
import os
import sys
from pathlib import Path

from setuptools import setup
from setuptools_rust import Binding, RustBin, RustExtension

# The bindings are for this Python and every newer one.
WHEEL = {"bdist_wheel": {"py_limited_api": "cp311"}}

if "editable_wheel" in sys.argv or "WORMCAST_WITHOUT_RUST" in os.environ:
    setup(options=WHEEL)
else:
    # Found without importing it, which would need what it depends on.
    finsy = importlib.util.find_spec("finsy")
    if "WORMCAST_PROTO_DIR" not in os.environ and finsy is not None:
        os.environ["WORMCAST_PROTO_DIR"] = str(Path(finsy.submodule_search_locations[0]) / "proto")
    options = {"cargo_manifest_args": ["--locked"], "debug": False}
    setup(
        options=WHEEL,
        rust_extensions=[
            RustExtension(
                "wormcast_planner",
                "planner/python/Cargo.toml",
                binding=Binding.PyO3,
                py_limited_api=True,
                **options,
            ),
            RustExtension(
                "wormcast_bundle",
                "hostagent/bundle/python/Cargo.toml",
                binding=Binding.PyO3,
                py_limited_api=True,
                **options,
            ),
            RustBin("wormcast-switch", "switch/Cargo.toml", **options),
            RustBin("wormcast-agent", "hostagent/Cargo.toml", **options),
        ]
    )
