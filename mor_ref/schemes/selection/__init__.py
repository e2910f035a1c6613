"""Selection: columns or numbers are kept aside, and the rest is quantized."""
