"""Evaluation: data sets, scores with intervals, runs and tables (paper, section V).

- `data`: what is asked. `data.datasets.load_dataset` reads questions; `attacks.plan_attack` corrupts their
  retrieval.
- `run`: making rows, from a configuration to a journal of finished rows.
- `score`: from rows to numbers. `score.scoring.score_answer` scores what a defence answers, and
  `score.summary.summarise` turns the rows of a run into lines.
- `show`: tables and the report page.
"""
