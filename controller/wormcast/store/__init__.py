"""What the controller remembers across restarts: `database`."""
