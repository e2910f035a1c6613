"""The recipe of each arm, as `mor_ref.torch.convert` takes it."""

from experiments.runs import Arm
from mor_ref.definitions.scales import Scaling
from mor_ref.torch import Mor, Operand, Recipe, recipes


def recipe_of(arm: Arm) -> Recipe:
    """Return the named recipe of an arm, with the scales that the arm asks for."""
    recipe: Recipe = recipes[arm.recipe]
    if arm.scaling == "gam":
        return recipe
    return _scaled_by(arm.name, arm.scaling)


def _scaled_by(name: str, scaling: Scaling) -> Recipe:
    """Return mor_block with other scales than GAM, which the paper compares."""
    operand = Operand(Mor("tensor", (128, 128), scaling))
    return Recipe(name, operand, operand, operand)
