"""Detection of models whose rows depend on each other by design, and of models that change as they run."""

from __future__ import annotations

import torch

from robustrag_integrations.models.local.causal_lm import CausalLM

_DYNAMIC_QUANTISATION = ("torch.ao.nn.quantized.dynamic", "torch.ao.nn.intrinsic.quantized.dynamic")
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")


def why_coupled(lm: CausalLM) -> str | None:
    """Return the reason why a model's rows depend on each other's content by design; None if none is known.

    The isolation probe may miss such coupling: its neighbours need not hold the largest activation of a batch, nor send
    their tokens to the target's experts.
    """
    for module in lm.model.modules():
        kind = type(module)
        if kind.__module__.startswith(_DYNAMIC_QUANTISATION):
            return f"{_name_of(module, lm.model)} quantises activations with a scale taken over all rows"
        if kind.__name__ == "Linear8bitLt":
            return f"{_name_of(module, lm.model)} picks the columns that it does not quantise by looking at all rows"
    if any((getattr(lm.config, field, None) or 0) > 1 for field in _EXPERTS):
        return "it is a mixture of experts: which tokens an expert reads together depends on all rows"
    return None


def _name_of(module: torch.nn.Module, model: torch.nn.Module) -> str:
    """Return a module's name in a model, and its class."""
    return f"{next(name for name, one in model.named_modules() if one is module)} ({type(module).__name__})"


def adapts_as_it_runs(model: torch.nn.Module) -> str | None:
    """Return the name of a module that changes with its input, as observing fake quantisation does; None if none."""
    watching = ((name, getattr(module, "observer_enabled", None)) for name, module in model.named_modules())
    return next((name for name, on in watching if isinstance(on, torch.Tensor) and bool(on.any())), None)
