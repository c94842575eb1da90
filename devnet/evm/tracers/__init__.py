"""What a tracer makes of the hooks in `tracing`: one module a kind, `directory` finds them by name."""
