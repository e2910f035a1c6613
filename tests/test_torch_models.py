"""Models that nobody here wrote: classes of transformers, randomly initialised."""

import pytest
from extras import imported, is_there, needs

pytestmark = [needs("torch"), needs("transformers")]
IS_THERE = is_there("torch") and is_there("transformers")
torch = imported("torch") if IS_THERE else None
if IS_THERE:
    from mor_ref.torch import LinearLike, advance, convert, revert, state


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 32, "intermediate_size": 64, "vocab_size": 50}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2}
    return LlamaForCausalLM(LlamaConfig(**sizes, **heads, tie_word_embeddings=True))


def bert():
    from transformers import BertConfig, BertForMaskedLM

    sizes = {"hidden_size": 32, "intermediate_size": 64, "vocab_size": 50}
    return BertForMaskedLM(BertConfig(**sizes, num_attention_heads=4, num_hidden_layers=2))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_embd": 32, "n_positions": 32, "vocab_size": 50}
    return GPT2LMHeadModel(GPT2Config(**sizes, n_layer=2, n_head=4))


def arguments_for(make):
    if make is gpt2:
        from transformers.pytorch_utils import Conv1D

        return {"layers": {Conv1D: LinearLike(transposed=True)}}
    return {}


COUNTS = {llama: 2 * 7, bert: 2 * 6 + 2, gpt2: 2 * 4}  # of layers without the head


def trained(make, recipe, checkpointing=False):
    torch.manual_seed(0)
    model = make()
    names = convert(model, recipe, **arguments_for(make))
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.005)
    tokens = torch.randint(0, 50, (4, 16), generator=torch.Generator().manual_seed(1))
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        advance(model)
        losses.append(loss.item())
    return model, names, losses


@pytest.mark.tier("full")
@pytest.mark.parametrize("make", COUNTS)
@pytest.mark.parametrize("recipe", ["mor_tensor", "nvfp4_random"])
def test_a_model_of_transformers_trains(make, recipe):
    model, names, losses = trained(make, recipe)
    assert len(names) == COUNTS[make]
    assert not any("lm_head" in name for name in names)
    assert losses[-1] < losses[0]
    keys, weights = list(model.state_dict()), list(model.parameters())
    revert(model)
    assert not any(hasattr(module, "mor_ref_layer") for module in model.modules())
    assert list(model.state_dict()) == keys
    assert list(map(id, model.parameters())) == list(map(id, weights))


@pytest.mark.tier("full")
@pytest.mark.filterwarnings("ignore:.gradient_checkpointing_enable:FutureWarning")
@pytest.mark.parametrize("recipe", ["mor_two_way", "fp8_delayed"])
def test_gradient_checkpointing_of_transformers_changes_nothing(recipe):
    """TRN-005 and TRN-007."""
    plain, _, losses = trained(llama, recipe)
    again, _, same = trained(llama, recipe, checkpointing=True)
    assert losses == same
    assert state(plain) == state(again)
    assert all(map(torch.equal, plain.parameters(), again.parameters()))
