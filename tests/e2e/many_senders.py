"""Programs that send files over one host's agent, all at once: `many_senders.py SENDS.json`, run on a host.

It reads [[group, name, path], …] and prints for each a line {"name", "members": {host: reason or null}}.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from pathlib import Path

from wormcast.client import Agent
from wormcast.client.files import encode_file_start


def send(agent: Agent, group: int, name: str, path: Path) -> dict[str, object]:
    """One message, as `wormcast send` makes it of a file."""
    data = path.read_bytes()
    with agent.open_sender(group) as sender:
        content = encode_file_start(name, len(data)) + data + hashlib.sha256(data).digest()
        stable = sender.send(content)
    members = {each.host: None if each.delivered else each.reason for each in stable.outcomes}
    return {"name": name, "members": members}


def main() -> None:
    """A thread and a connection each."""
    sends = json.loads(Path(sys.argv[1]).read_text())
    start = threading.Barrier(len(sends))
    lock = threading.Lock()
    failed: list[BaseException] = []

    def run(group: int, name: str, path: Path) -> None:
        try:
            with Agent(timeout_s=None) as agent:
                start.wait()
                report = send(agent, group, name, path)
            with lock:
                print(json.dumps(report), flush=True)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=run, args=(g, name, Path(path))) for g, name, path in sends]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
