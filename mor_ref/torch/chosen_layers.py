"""The layers of a model that a recipe is for: by patterns of their names, or by a function."""

from collections.abc import Callable, Iterable, Mapping

from torch import nn

from mor_ref.definitions.roles import is_layer

Chosen = Iterable[str] | Callable[[str, nn.Module], bool]

USUALLY_EXCLUDED = ("lm_head",)


def chosen_layers(
    there: Mapping[str, nn.Module], include: Chosen | None, exclude: Chosen
) -> dict[str, nn.Module]:
    """Return the layers that are included and not excluded, by name.

    A pattern that matches nothing is refused: it is a wrong name. The default patterns may match
    nothing.
    """
    kept = there if include is None else _matching("include", include, there)
    if exclude is USUALLY_EXCLUDED:
        left_out: Mapping[str, nn.Module] = {
            name: one for name, one in there.items() if is_layer(name, USUALLY_EXCLUDED)
        }
    else:
        left_out = _matching("exclude", exclude, there)
    found = {name: one for name, one in kept.items() if name not in left_out}
    if not found:
        raise ValueError(
            f"include is {include!r} and exclude is {exclude!r}, which leave none of "
            f"{_listed(there)}; give other patterns"
        )
    return found


def _matching(
    argument: str, chosen: Chosen, there: Mapping[str, nn.Module]
) -> dict[str, nn.Module]:
    if callable(chosen):
        return {name: one for name, one in there.items() if chosen(name, one)}
    given = [chosen] if isinstance(chosen, str) else chosen
    patterns = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(one, str) for one in patterns):
        raise TypeError(
            f"{argument} is {chosen!r}; give patterns of names, or a function of the name and the "
            "module"
        )
    for pattern in patterns:
        if not any(is_layer(name, (pattern,)) for name in there):
            raise ValueError(
                f"{argument} has {pattern!r}, which matches none of {_listed(there)}; give a name, "
                "or a part of it between dots"
            )
    return {name: one for name, one in there.items() if is_layer(name, patterns)}


def _listed(there: Mapping[str, nn.Module]) -> str:
    """Return some names, the first and the last among them."""
    names = list(there)
    return ", ".join(names if len(names) <= 6 else [*names[:4], "...", names[-1]])
