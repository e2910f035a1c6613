"""FP8-LM: delayed and automatic scales, all-reduce in 8 bits, and the states of Adam."""
