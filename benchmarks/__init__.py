"""How fast it is, next to other libraries: `make bench` measures, `make bench-page` writes."""
