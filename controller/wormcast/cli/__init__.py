"""The `wormcast` command: `main` is its entry; commands load when they are used."""
