"""Work too long for the event loop, in processes of its own: `pool` runs them, `worker` is what they run,
`jobs` is what they do."""
