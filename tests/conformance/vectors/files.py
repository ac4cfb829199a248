"""The vector files: where they are, and their text."""

import json
from pathlib import Path
from typing import Any

from vectors import codec_vectors, gather_vectors, switch_vectors, trace_vectors, train_vectors

DIRECTORY = Path(__file__).resolve().parents[3] / "wire" / "vectors"
WORM = DIRECTORY / "worm.json"
SWITCH = DIRECTORY / "worm_switch.json"


def render() -> dict[Path, str]:
    """Text of each file."""
    traces = {"traces": trace_vectors.codec_traces(), "bad_traces": trace_vectors.codec_bad_traces()}
    gathers = {"gathers": gather_vectors.codec_gathers(), "bad_gathers": gather_vectors.codec_bad_gathers()}
    return {
        WORM: _text({**codec_vectors.build(), **traces, **gathers, "trains": train_vectors.codec_trains()}),
        SWITCH: _text(switch_vectors.build()),
    }


def write_all() -> list[Path]:
    """Writes the files and returns their paths."""
    texts = render()
    for path, text in texts.items():
        path.write_text(text)
    return list(texts)


def _text(document: dict[str, Any]) -> str:
    """JSON with one vector, table entry or group a line."""
    lines = ["{"]
    for index, (key, value) in enumerate(document.items()):
        comma = "," if index + 1 < len(document) else ""
        lines.append(f"{json.dumps(key)}: {_block(value)}{comma}")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _block(value: Any) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(json.dumps(item) for item in value) + "\n]"
    if isinstance(value, dict) and any(isinstance(item, dict | list) for item in value.values()):
        inner = ",\n".join(f"{json.dumps(key)}: {_block(item)}" for key, item in value.items())
        return "{\n" + inner + "\n}"
    return json.dumps(value)
