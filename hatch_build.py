"""Puts the bundled files into a wheel; an editable install finds them next to the package."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KeptFiles(BuildHookInterface):
    """Adds golden/v1 as mor_ref/golden/v1 to a wheel that is not editable."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds."""
        if version == "standard":
            kept = Path(self.root, "golden", "v1")
            for path in kept.rglob("[!.]*"):  # without what a run keeps for itself
                if path.is_file():
                    place = path.relative_to(kept).as_posix()
                    build_data["force_include"][str(path)] = f"mor_ref/golden/v1/{place}"
