"""Writes wire/vectors/worm.json and worm_switch.json."""

from vectors.files import write_all

if __name__ == "__main__":
    for path in write_all():
        print(f"{path}: {path.stat().st_size} bytes")
