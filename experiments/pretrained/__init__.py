"""The second experiment: a pretrained sentence encoder, evaluated under the recipes."""
