"""P4Runtime shell: `artifacts` finds the compiled program, `convert` speaks finsy, `session` keeps one switch."""
