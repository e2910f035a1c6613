"""How fast it is, beside what else there is: `make bench` measures, `make bench-page` tells."""
