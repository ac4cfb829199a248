"""The REST API, version 1: `app` makes it, `models` are its bodies, `views` its answers."""
