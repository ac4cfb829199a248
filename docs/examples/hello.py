"""A message through the agent of this host.

hello.py receive GROUP        prints one message
hello.py send GROUP TEXT      sends one, and says which members have it
"""

import sys

from wormcast.client import Agent, MessageData, MessageEnd

action, group, *rest = sys.argv[1:]
with Agent() as agent:
    if action == "send":
        with agent.open_sender(group) as sender:
            for member in sender.send(rest[0].encode()).outcomes:
                print(f"host {member.host}: {'has it' if member.delivered else member.reason}")
    else:
        with agent.open_receiver(group) as receiver:
            text = b""
            while not isinstance(event := receiver.next_event(), MessageEnd):
                text += event.data if isinstance(event, MessageData) else b""
            # Only now the sender may count on this member.
            event.message.confirm()
            print(f"host {event.message.origin} says: {text.decode()}")
