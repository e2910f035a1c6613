"""The public functions: they check arguments, make room, and call the engine."""
