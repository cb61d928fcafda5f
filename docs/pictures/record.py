"""Runs what the picture shows: one attack on the bundled reader."""

from __future__ import annotations

from typing import Any


def record_attack(passages: int = 7) -> dict[str, Any]:
    """The first question of the demonstration under prompt injection, by vanilla RAG and by keyword aggregation."""
    from robustrag_integrations.cli.demonstration import defenses_of, demonstrate, plantings_on
    from robustrag_integrations.cli.models import load_model
    from robustrag_integrations.corpus import BM25Index, split
    from robustrag_integrations.evaluation.data.world import asked_about, read_world, world_folder

    folder = world_folder()
    case = next(iter(asked_about(folder)))
    found = BM25Index(split(read_world(folder))).search(case.question, passages)
    [attack] = [a for a in plantings_on(case, found, []) if a.name == "prompt injection"]
    defenses = defenses_of(load_model("bundled", None, max_context_tokens=256), choices=False)
    chosen = {name: defenses[name] for name in ("vanilla", "keyword")}
    vanilla, robust = (o.answer for o in demonstrate(case, found, [attack], chosen))
    group_of = {rank: group for group in robust.groups for rank in group.positions}
    rows = [
        {
            "text": passage.text,
            "planted": passage.text in attack.planted,
            "says": group_of[rank].response,
            "status": group_of[rank].status,
        }
        for rank, passage in enumerate(attack.on(found))
    ]
    return {
        "question": case.question,
        "wanted": case.incorrect,
        "passages": rows,
        "vanilla": vanilla.text,
        "answer": robust.text,
        "radius": robust.radius,
    }
