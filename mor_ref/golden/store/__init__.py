"""Files of golden vectors: written whole, and checked before they are read."""
