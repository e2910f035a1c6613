"""Selections: by hand, by the code of PB-LLM and of bitsandbytes, and what uses them."""

import numpy as np
import pytest
from extras import imported, needs

import mor_ref
from mor_ref.schemes.selection.exact import llm_int8, pb_llm, selected

SHARES = (0.0, 0.07, 0.29, 0.5, 0.9, 1.0)


def weights(seed, shape=(12, 50)):
    """Return numbers of long tails, some of equal magnitude, and a row of zeros."""
    random = np.random.default_rng(seed)
    w = random.standard_normal(shape) * np.exp(random.standard_normal(shape))
    w[1, 5:9], w[1, 9:13], w[3] = 0.5, -0.5, 0
    return w.astype(np.float32)


def with_specials(seed):
    x = weights(seed) * np.float32(3)
    x[0, 3], x[2, 7], x[4, 11], x[5, 6], x[6, 8] = np.nan, np.inf, -np.inf, 6, -6
    return x


def test_selection_by_rank():
    """SEL-001: the place of a share, equal magnitudes, and NaN at the end."""
    x = np.array([[3.0, -1.0, 2.0, -2.0], [0.0, -0.0, 1.0, 9.0]], np.float32)
    for share, chosen in ((0, [0, 1, 2, 3, 6, 7]), (0.4, [0, 2, 3, 7]), (0.5, [0, 7]), (1, [])):
        assert np.flatnonzero(mor_ref.select(x, "rank", share)).tolist() == chosen
    nan = np.array([np.nan, 1.0, np.inf], np.float32)
    assert mor_ref.select(nan, "rank", 0.5).tolist() == [True, False, False]
    assert mor_ref.select(nan, "rank", 0.7).all()
    # 100 * 0.3 is below 30, and 30 as rounded; 100 * 0.29 is below 29.
    assert mor_ref.select(np.arange(100.0), "rank", 0.3).argmax() == 31
    assert mor_ref.select(np.arange(100.0), "rank", 0.29).argmax() == 29
    assert mor_ref.select(np.zeros((0, 3), np.float32), "rank", 0.5).shape == (0, 3)
    for seed in range(3):
        w = with_specials(seed)
        for share in SHARES:
            expected = selected(w.tolist(), "rank", share)
            assert mor_ref.select(w, "rank", share).tolist() == expected


def test_selection_by_column():
    """SEL-002: the limit itself, both signs, infinities, and no NaN."""
    x = np.array([[6, -6, 5.9999995, np.nan, np.inf], [0, 1, 2, 3, 4]], np.float32)
    assert mor_ref.select(x)[0].tolist() == [True, True, False, False, True]
    assert mor_ref.select(x)[1].tolist() == mor_ref.select(x)[0].tolist()
    tenth = np.array([[0.1, 0.099999994]], np.float32)  # the limit is a number of binary32
    assert mor_ref.select(tenth, limit=0.1).tolist() == [[True, False]]
    for seed in range(3):
        w = with_specials(seed)
        for limit in (0.1, 6.0, 1e38):
            expected = selected(w.tolist(), "column", limit)
            assert mor_ref.select(w, "column", limit).tolist() == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("size",), "by is 'size', which is not known; take one of rank"),
        (("rank", 1.5), "a share from 0 to 1 by rank: got 1.5; give 0.9"),
        (("rank", float("nan")), "got nan; give 0.9"),
        (("column", 1e39), "got 1e[+]39"),
        (("column", 0), "positive and finite by column: got 0"),
        (("column", True), "limit is True; give a number, such as 6.0"),
    ],
)
def test_refusals(arguments, words):
    with pytest.raises((TypeError, ValueError), match=words):
        mor_ref.select([1.0], *arguments)


@pytest.mark.parametrize("share", SHARES)
def test_pb_llm(share):
    """SEL-003: y of two quantizers, as a user puts them together."""
    w = weights(7)
    high = mor_ref.select(w, "rank", share)
    integers = mor_ref.quantize_affine(
        w, "uint8", profile="onnxruntime", symmetric=False, block="row"
    )
    y = integers.y.copy()
    y[~high] = mor_ref.quantize_levels(w[~high], "elastic1").y
    expected = np.array(pb_llm(w.tolist(), share, "uint8"), np.float32)
    assert y.tobytes() == expected.tobytes()


def int8_parts(x, limit):
    """Return which numbers LLM.int8 selects, and the record of the others."""
    rest = np.where(np.abs(x) >= np.float32(limit), np.float32(0), x)
    return mor_ref.select(x, "column", limit), mor_ref.quantize_affine(
        rest, profile="bnb_int8_row", block="row"
    )


def test_llm_int8():
    """SEL-004: y of the columns that stay, and of the others."""
    for limit in (2.5, 6.0, 1e9):
        x = weights(8) * np.float32(3)
        high, found = int8_parts(x, limit)
        expected = np.array(llm_int8(x.tolist(), limit), np.float32)
        assert np.where(high, x, found.y).tobytes() == expected.tobytes()


@pytest.mark.tier("full")
@needs("torch")
def test_the_code_of_pb_llm():
    """SEL-001 and SEL-003: the authors' lines, at revision fe85da9, with exact means."""
    torch = imported("torch")
    for seed, share in ((1, 0.29), (2, 0.5), (3, 0.9), (4, 0.07)):
        w = torch.tensor(weights(seed, (64, 300)))
        saliency = torch.abs(w)
        threshold = torch.sort(saliency.flatten())[0][int(saliency.numel() * share)]
        low = saliency <= threshold
        assert (low.numpy() == ~mor_ref.select(w.numpy(), "rank", share)).all()
        least = torch.minimum(w.min(1)[0], torch.zeros(64))
        most = torch.maximum(w.max(1)[0], torch.zeros(64))
        is_zero = (least == 0) & (most == 0)
        least[is_zero], most[is_zero] = -1, 1
        scale = ((most - least) / torch.tensor(255)).unsqueeze(1)
        zero = torch.round(-least.unsqueeze(1) / scale)
        q = torch.clamp(torch.round(w / scale) + zero, 0, torch.tensor(255))
        mean = mor_ref.quantize_levels(w[low].numpy(), "elastic1").alpha[0].item()
        y = torch.where(low, w.sign() * mean, scale * (q - zero))
        expected = np.array(pb_llm(w.tolist(), share, "uint8"), np.float32)
        assert (y.numpy() == expected).all()


@needs("torch", "bitsandbytes")
def test_the_code_of_llm_int8():
    """SEL-002 and SEL-004: columns, codes and maxima of bitsandbytes."""
    torch = imported("torch")
    imported("bitsandbytes")
    for seed, limit in ((1, 6.0), (2, 2.5), (3, 0.1), (4, 1e9)):
        x = weights(seed, (128, 500)) * np.float32(3)
        codes, scale, columns = torch.ops.bitsandbytes.int8_vectorwise_quant(
            torch.tensor(x), threshold=limit
        )
        high, found = int8_parts(x, limit)
        assert np.flatnonzero(high[0]).tolist() == columns.tolist()
        assert (np.where(high, 0, found.codes) == codes.numpy()).all()
        assert (found.scale.reshape(-1) == scale.numpy()).all()
