"""Shared exponents, levels, MoFQ and FP8-LM as a careful user would write them in eager torch."""

FLAT = 16  # numbers of a block
HIGHEST, HIGHEST_F16 = 448.0, 65504.0


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
    """Return alphas, ratios, clipped ratios, levels, codes, y, and both factors of gradients.

    Each operation is rounded to the dtype of w.
    """
    import torch

    top = w.abs().amax(dim=1, keepdim=True)
    if kind == "lsq4":
        alpha, lowest, highest = top / torch.tensor(7.0, dtype=w.dtype), -8.0, 7.0
        low, high = lowest, highest
    else:
        alpha, lowest, highest = top, -0.75, 0.75
        low, high = -0.99, 0.99
    alpha = alpha.clamp(min=torch.tensor(1e-5, dtype=w.dtype))
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


def torch_groups(x, groups, steps):
    """Return codes, scales, zero points, ranges, order, xs, y and error sums of PEG's groups.

    The columns stay where they are: each has the scale of its group.
    """
    import torch

    least, most = torch.aminmax(x, dim=0)
    ranges = most - least
    order = torch.argsort(ranges, stable=True)
    low = least[order].view(groups, -1).amin(dim=1).clamp(max=0)
    high = most[order].view(groups, -1).amax(dim=1).clamp(min=1e-8)
    delta = (high - low) / torch.tensor(steps)
    zero = torch.round(-low / delta).clamp(0, steps)
    scale = delta.clamp(min=1e-8)
    group = torch.empty_like(order)
    group[order] = torch.arange(order.numel()) // (order.numel() // groups)
    own_scale, own_zero = scale[group], zero[group]
    xs = x / own_scale
    q = torch.clamp(torch.round(xs) + own_zero, 0, steps)
    codes = q.to(torch.uint8)
    y = (q - own_zero) * own_scale
    magnitudes = x.abs()
    counts = magnitudes > 0
    errors = torch.where(counts, ((x - y).abs() / magnitudes).clamp(max=1), 0)
    sums = torch.zeros(groups).index_add_(0, group, errors.sum(dim=0))
    nonzero = torch.zeros(groups, dtype=torch.int64).index_add_(0, group, counts.sum(dim=0))
    return codes, scale, zero, ranges, order, xs, y, sums, nonzero


def torch_block_mixture(x, block):
    """Return codes, scales, choices, y and both squared errors of blocks of a row."""
    import torch

    blocks = x.reshape(-1, block)
    top = blocks.abs().amax(dim=1, keepdim=True)
    unit = torch.ldexp(torch.ones((), dtype=torch.float64), 21 - torch.frexp(top)[1])
    tried = []
    for largest in (127.0, HIGHEST):
        scale = torch.tensor(largest) / top
        if largest == HIGHEST:
            codes = (blocks * scale).clamp(-largest, largest).to(torch.float8_e4m3fn)
        else:
            codes = torch.round(blocks * scale).clamp(-largest, largest).to(torch.int8)
        y = codes.float() / scale
        u = torch.round((blocks - y).abs().double() * unit).to(torch.int64)
        tried.append((codes.view(torch.uint8), scale, y, (u * u).sum(dim=1, keepdim=True)))
    is_second = tried[1][3] < tried[0][3]
    codes, scale, y = (torch.where(is_second, tried[1][i], tried[0][i]) for i in range(3))
    return codes, scale, is_second, y, tried[0][3], tried[1][3]


def scale_of(amax, largest):
    """Return the scale of FP8-LM of a tensor, a power of two."""
    import torch

    exponent = torch.floor(torch.log2(largest * torch.reciprocal(amax)))
    return torch.ldexp(torch.ones(()), exponent.int())


def as_e4m3(x, scale):
    """Return the codes of x times a scale."""
    import torch

    return (x * scale).clamp_(-HIGHEST, HIGHEST).to(torch.float8_e4m3fn)


def torch_shared_scale(ranks):
    """Return codes, y, the scales of ranks, the shared one, its inverse, and codes of ranks.

    Sums of e4m3 are exact in binary32.
    """
    import torch

    own = [scale_of(x.abs().amax(), HIGHEST) for x in ranks]
    shared = torch.stack(own).amin()
    back = torch.reciprocal(shared) / len(ranks)
    of_ranks = []
    for x, scale in zip(ranks, own, strict=True):
        y = as_e4m3(x, scale).float() * torch.reciprocal(scale)
        of_ranks.append(as_e4m3(y, shared))
    total = torch.zeros_like(ranks[0])  # a sum of -0 alone is +0
    for codes in of_ranks:
        total += codes.float()
    codes = total.clamp_(-HIGHEST, HIGHEST).to(torch.float8_e4m3fn)
    return codes, codes.float() * back, own, shared, back, of_ranks


def torch_adam(state, gradient, numbers, rate, root):
    """Return codes, scales and y of both moments and of the weights after a step.

    `state` has codes and inverse scales of each. No operation is fused.
    """
    import torch

    (m, i), (v, j), (w, k) = state
    m = m.float().mul_(numbers.beta1).mul_(i).add_(gradient * (1 - numbers.beta1))
    v = v.float().mul_(numbers.beta2).mul_(j).add_((gradient * gradient).mul_(1 - numbers.beta2))
    below = v.sqrt().div_(torch.tensor(root)).add_(numbers.eps)
    w = w.float().mul_(k).sub_((m / below).mul_(rate))
    found = []
    for x, largest in ((m, HIGHEST), (v, HIGHEST_F16), (w, HIGHEST_F16)):
        scale = scale_of(x.abs().amax(), largest)
        dtype = torch.float8_e4m3fn if largest == HIGHEST else torch.float16
        codes = x.mul_(scale).clamp_(-largest, largest).to(dtype)
        found.append((codes, scale, codes.float().mul_(torch.reciprocal(scale))))
    return found
