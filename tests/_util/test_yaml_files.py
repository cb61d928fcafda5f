"""A YAML file is read within bounds: the configuration of an evaluation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("yaml")

from robustrag_integrations.evaluation.run.config import load_config

BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))]
)
REFUSED = [
    (BOMB, "aliases"),
    ("a: &a [*a]", "aliases"),
    ("a: &a {b: 1}\nc: {<<: *a}", "merged keys"),
    ("a: {<<: {b: 1}, b: 2}", "merged keys"),
    ("a: " + "[" * 11 + "]" * 11, "deep nesting"),
    ("a: " + "{a: " * 5000, "deep nesting"),
    ("a: 190:20:30", "'190:20:30' is read as a number"),
    ("a: [1, -1:30]", "'-1:30' is read as a number"),
    ("a: {b: 1:30.5}", "'1:30.5' is read as a number"),
    ("1:30: a", "'1:30' is read as a number"),
    ("a: 1" + ":59" * 5000, "is read as a number"),
    ("a: !!int '1:30'", "is read as a number"),
    ("a: " + "9" * 5000, "is read as a number"),
    ("a: 0x" + "f" * 5000, "is read as a number"),
    ("a: 0b" + "1" * 5000, "is read as a number"),
    ("a: 0" + "7" * 5000, "is read as a number"),
    ("a: 1\nb: 2\na: 3", "the key 'a' is there twice"),
    ("a: 1\n---\na: 2", "not YAML"),
    ("a: !!python/name:os.system", "not YAML"),
    ("? [a, b]\n: c", "not YAML"),
    ("1: a", "must hold keys and values"),
    ("a: " + "x" * 70_000, "larger than 64 KiB"),
]


@pytest.mark.parametrize(("text", "said"), REFUSED, ids=[text[:24] for text, _ in REFUSED])
def test_what_grows_or_is_not_what_it_looks_like_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"file\.yaml: .*{said}"):
        load_config(str(path))


@pytest.mark.parametrize("text", [BOMB, "limit: 1" + ":59" * 5000])
def test_the_command_line_says_what_is_wrong_with_a_config(tmp_path: Path, text: str) -> None:
    (tmp_path / "study.yaml").write_text(text)
    command = [sys.executable, "-m", "robustrag_integrations", "eval", "study.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done.stderr
    assert "study.yaml: " in done.stderr
    assert "Traceback" not in done.stderr
