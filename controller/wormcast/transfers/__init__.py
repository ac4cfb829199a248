"""Files that hosts send: what agents report of them, and how it is shown."""
