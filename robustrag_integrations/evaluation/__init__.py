"""Evaluation: data sets, scores with intervals, runs, tables and plots (paper, section V).

`data.load_dataset` reads questions, `robustrag_integrations.attacks.plan_attack` corrupts their retrieval,
`scoring.score_answer` scores what a defence answers, and `summary.summarise` turns the rows of a run into lines.
"""
