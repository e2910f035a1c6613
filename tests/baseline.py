"""What shows the mistakes of a chapter now, and what the diagnosis says: a baseline for changes.

    PYTHONPATH=tests python -m baseline scales

prints JSON: the suites that show each wrong program of the chapter, the causes that the diagnosis
names for it, and which pairs (suite, cause) of the manifest hold. Programs that are put aside are
not run (`put_aside.py`).
"""

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from importlib import import_module

import structural_faults
import tired_kernels
from put_aside import put_aside
from test_wrong_kernels import SUITES, cases_of, first_difference
from wrong.causes import OF_ENCODER, OF_MX, OF_NVFP4, OF_POLICIES, OF_SCALES

from mor_ref import golden
from mor_ref.definitions.formats import encoding_profiles
from mor_ref.golden import bundled_files
from mor_ref.golden.generation.witnesses import Entries
from mor_ref.golden.suites import SUITES as MADE
from mor_ref.mistakes.catalogue import CAUSES, FORMER_IDS, id_of
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.diagnosing.diagnosis import diagnose
from mor_ref.verify.reporting.text import diagnosis_lines
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in


@dataclass(frozen=True)
class Chapter:
    """A chapter: the modules of its wrong kernels, its causes in the manifest, recipes, suites."""

    wrong: tuple[str, ...]
    names: tuple[str, ...]
    recipes: str
    suites: tuple[str, ...]
    causes: dict[str, str]


def former_ids(*chapters):
    """Return the names in golden/v1 of the mistakes of the model in chapters of the rules."""
    return tuple(
        name for name, now in FORMER_IDS.items() if any(chapter in now for chapter in chapters)
    )


_OF_LIBRARIES_AND_PROCESSORS = (
    *(f"encode_as_{library}" for library in encoding_profiles),
    "nan_payload_kept",
    "nan_payload_kept_on_x86",
)
CHAPTERS = {
    "scales": Chapter(
        ("scaling", "powers", "ratios", "mantissas"),
        former_ids("SCL", "GAM"),
        r"e\dm\d:",
        ("quantize_blocks", "quantize", "policies"),
        OF_SCALES,
    ),
    "encoder": Chapter(
        ("encoders", "stochastic", "decoders"),
        (*former_ids("ENC", "DEC", "ART"), *_OF_LIBRARIES_AND_PROCESSORS),
        r"none$",
        ("encode", "encode_presets", "encode_stochastic", "decode"),
        OF_ENCODER,
    ),
    "mx": Chapter(
        ("mx_scales", "mx_rounded", "mx_elements", "mx_integers", "mx_launches", "mx_specials"),
        former_ids("MXS"),
        r"mx",
        ("mx_blocks", "mx", "mx_large"),
        OF_MX,
    ),
    "nvfp4": Chapter(
        (
            *("nvfp4_scales", "nvfp4_global", "nvfp4_others", "nvfp4_compressed", "nvfp4_ties"),
            *("nvfp4_tables", "nvfp4_launches", "nvfp4_elements", "nvfp4_four_over_six"),
            *("nvfp4_quotients", "nvfp4_differences", "nvfp4_sums"),
        ),
        former_ids("NVF"),
        r"nvfp4",
        ("nvfp4_blocks", "nvfp4_te", "nvfp4_te_row", "nvfp4_torchao", "nvfp4_large"),
        OF_NVFP4,
    ),
    "policies": Chapter(
        ("decisions", "mor_losses", "mor_counts", "mor_means", "mor_outputs"),
        former_ids("MOR"),
        r"policy",
        ("decisions", "acceptance", "unit_sums", "policies", "policies_large"),
        OF_POLICIES,
    ),
}


def suites_showing(kernel):
    """Return the suites that are a mismatch with a kernel, those of few elements first."""
    found = [suite for suite in SUITES if first_difference(kernel, suite)]
    return sorted(found, key=lambda suite: SUITES[suite]["elements"])


def causes_of(kernel, suite):
    """Return the causes that are certain, and the guesses, of a kernel in a suite."""
    candidate = PythonFunction(kernel.name, kernel.run)
    (found,) = verify(candidate, suites_in(bundled_files(), [suite])).diagnosis.suites
    certain = ["+".join(one.deviations) for one in found.explanations if one.is_whole]
    guessed = ["+".join(one.deviations) for one in found.explanations if not one.is_whole]
    return certain, guessed


def judged(name, certain, guessed, causes):
    """Say whether a diagnosis is right, by the causes that are known to be."""
    known = next((right for base, right in causes.items() if re.match(base, name)), None)
    if certain:
        return "right" if known in certain else "certain, and another"
    return "right guess" if known in guessed else "guess" if guessed else "none"


def kernels_in(chapter):
    """Yield each wrong kernel of a chapter: its name, its suites, and its diagnosis.

    One that is registered for each profile and tile counts once.
    """
    programs = set()
    for module in chapter.wrong:
        for kernel in import_module(f"wrong.{module}").KERNELS:
            program = re.sub(r"\.\w+\.\d+x\d+$", "", kernel.name)
            if kernel.mistake and kernel.name not in put_aside() and program not in programs:
                programs.add(program)
                suites = suites_showing(kernel)
                certain, guessed = causes_of(kernel, suites[0])
                yield {
                    "kernel": kernel.name,
                    "suites": suites,
                    "certain": certain,
                    "guessed": guessed,
                    "is": judged(kernel.name, certain, guessed, chapter.causes),
                }


def says(one, evidence):
    """Return whether the diagnosis of a program says what it has to say."""
    (found,) = diagnose([evidence]).suites
    text = "\n".join(diagnosis_lines(found, comparable=True))
    return all(re.search(words, text, re.MULTILINE) for words in one.says)


def structures_in(chapter):
    """Yield each tired kernel and structural fault of a chapter, with whether it is named."""
    for name, tired in tired_kernels.KERNELS.items():
        if re.match(chapter.recipes, tired.recipe):
            yield {"kernel": name, "named": says(tired, tired_kernels.evidence_of(tired))}
    for name, fault in structural_faults.FAULTS.items():
        if fault.suite in chapter.suites:
            yield {"kernel": name, "named": says(fault, structural_faults.evidence_of(fault))}


def pairs_in(chapter):
    """Yield each pair of a suite and a deviation of the manifest, and whether it is shown."""
    for suite, entry in SUITES.items():
        kills = {name: at for name, at in entry["kills"].items() if name in chapter.names}
        entries = Entries(MADE[suite], golden.load(suite)) if kills else None
        for name, at in kills.items():
            shown = entries.differs(CAUSES[id_of(name)], at)
            yield {"suite": suite, "deviation": name, "shown": shown}


def baseline(name):
    """Return the baseline of a chapter."""
    chapter = CHAPTERS[name]
    kernels = list(kernels_in(chapter))
    cases_of.cache_clear()
    structures, pairs = list(structures_in(chapter)), list(pairs_in(chapter))
    return {
        "chapter": name,
        "kernels": len(kernels),
        "pairs of a kernel and a suite": sum(len(one["suites"]) for one in kernels),
        "diagnoses": dict(Counter(one["is"] for one in kernels)),
        "structures named": f"{sum(one['named'] for one in structures)} of {len(structures)}",
        "pairs of the manifest": f"{sum(one['shown'] for one in pairs)} of {len(pairs)}",
        "of kernels": kernels,
        "of structures": structures,
        "of the manifest": pairs,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(baseline(sys.argv[1]), indent=1))
