"""Sources of wire/vectors/worm*.json. Write them with `python -m vectors` in tests/conformance."""
