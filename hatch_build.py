"""Puts the kept files into a wheel; an editable install finds them beside the package."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KeptFiles(BuildHookInterface):
    """Adds golden/v1 as mor_ref/golden/v1 to a wheel that is not editable."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds."""
        if version == "standard":
            build_data["force_include"]["golden/v1"] = "mor_ref/golden/v1"
