"""Numbers shown on the site, computed from the catalogue, the exact model and the engine."""
