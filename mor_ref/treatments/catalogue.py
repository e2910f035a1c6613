"""The catalogue of treatments, which a user adds to."""

from mor_ref.definitions.catalogue import Catalogue
from mor_ref.treatments.floats import Delayed, Mor, Mx, Nvfp4, Scaled, Unquantized
from mor_ref.treatments.schemes import Integers, Levels, Mixture, Row, Shared
from mor_ref.treatments.treatment import Treatment

TREATMENTS: Catalogue[Treatment] = Catalogue(
    "treatment",
    Treatment,
    (
        Unquantized(),
        Mor(),
        Scaled(),
        Delayed(),
        Mx(),
        Nvfp4(),
        Shared(),
        Levels(),
        Integers(),
        Mixture(),
        Row(),
    ),
)
