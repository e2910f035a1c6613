"""The paper's experiment on small models: arms, training, records and statistics."""
