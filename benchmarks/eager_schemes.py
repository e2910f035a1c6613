"""Shared exponents, levels, MoFQ and FP8-LM as a careful user would write them in eager torch."""

FLAT = 16  # numbers of a block
HIGHEST = 448.0


def torch_shared(x, bits, *, shifts):
    """Return exponents, shifts, signs, magnitudes, codes and y of finite numbers."""
    import torch

    blocks = x.reshape(-1, FLAT // 2, 2)
    fields = blocks.view(torch.int32) >> 23 & 255
    pairs = fields.amax(dim=2)
    top = pairs.amax(dim=1, keepdim=True)
    tau = (top - pairs).clamp(max=1) if shifts else torch.zeros_like(pairs)
    unit = torch.ldexp(torch.ones(()), top - 127 - tau + 1 - bits)[:, :, None]
    magnitude = torch.round(blocks.abs() / unit).clamp(max=(1 << bits) - 1)
    sign = (torch.signbit(blocks) & (fields > 0)).to(torch.uint8)
    y = torch.copysign(magnitude * unit, blocks)
    small = magnitude.to(torch.uint8)
    return top.to(torch.uint8), tau.to(torch.uint8), sign, small, sign << bits | small, y


def torch_levels(w, kind):
    """Return alphas, ratios, clipped ratios, levels, codes, y, and both factors of gradients."""
    import torch

    top = w.abs().amax(dim=1, keepdim=True)
    if kind == "lsq4":
        alpha, lowest, highest = top / torch.tensor(7.0), -8.0, 7.0
        low, high = lowest, highest
    else:
        alpha, lowest, highest = top, -1.0, 1.0
        low, high = -0.99, 0.99
    alpha = torch.where(alpha > 1e-5, alpha, torch.tensor(1e-5))
    ratio = w / alpha
    clipped = ratio.clamp(low, high)
    if kind == "lsq4":
        level = torch.round(clipped)
        codes = level.to(torch.int8) & 15
    else:
        level = (torch.round(clipped * 2 - 0.5) + 0.5) / 2
        codes = (level * 2 + 1.5).to(torch.uint8)
    below, above = ratio < low, ratio > high
    term = torch.where(below, lowest, torch.where(above, highest, level - ratio))
    return alpha, ratio, clipped, level, codes, level * alpha, term, ~(below | above)


def torch_fp8lm(x, scale):
    """Return codes, the way back, and y."""
    import torch

    back = torch.reciprocal(torch.tensor(scale))
    codes = (x * scale).clamp(-HIGHEST, HIGHEST).to(torch.float8_e4m3fn)
    return codes, back, codes.float() * back


def torch_mixture(x):
    """Return codes, the scale and y of int8 or e4m3, and the squared error of each, as integers."""
    import torch

    top = x.abs().amax()
    unit = torch.ldexp(torch.ones((), dtype=torch.float64), 21 - torch.frexp(top)[1])
    tried = []
    for largest in (127.0, HIGHEST):
        scale = torch.tensor(largest) / top  # a number itself would be multiplied by a reciprocal
        if largest == HIGHEST:
            codes = (x * scale).clamp(-largest, largest).to(torch.float8_e4m3fn)
        else:
            codes = torch.round(x * scale).clamp(-largest, largest).to(torch.int8)
        y = codes.float() / scale
        u = torch.round((x - y).abs().double() * unit).to(torch.int64)
        tried.append((codes.view(torch.uint8), scale, y, (u * u).sum()))
    chosen = int(tried[1][3] < tried[0][3])
    return *tried[chosen][:3], tried[0][3], tried[1][3]
