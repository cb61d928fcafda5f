"""What the distribution says about its licences, and that all places say the same."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXPRESSION = "Apache-2.0 AND CC-BY-SA-4.0 AND MIT"
NOTICE = "robustrag_integrations/keywords/pipeline/NOTICE.md"
WORDS = "robustrag_integrations/languages/stop_words/NOTICE.md"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [made] = folder.glob("*.whl")
    return zipfile.ZipFile(made)


def test_the_wheel_names_every_licence_and_holds_their_texts(wheel: zipfile.ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = Parser().parsestr(wheel.read(name).decode())
    assert metadata["License-Expression"] == EXPRESSION
    assert metadata.get_all("License-File") == ["LICENSE", "NOTICE", NOTICE, WORDS]
    folder = name.removesuffix("METADATA") + "licenses/"
    assert b"Apache License" in wheel.read(f"{folder}LICENSE")
    assert b"OpenCC" in wheel.read(f"{folder}NOTICE")
    assert b"CC BY-SA 4.0" in wheel.read(f"{folder}{NOTICE}")
    assert b"Permission is hereby granted" in wheel.read(f"{folder}{WORDS}")


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    packages = {"robustrag_integrations", "langchain_robustrag", "llamaindex_robustrag"}
    assert {top for top in tops if not top.endswith(".dist-info")} == packages
    assert NOTICE in wheel.namelist()
    assert f"{Path(NOTICE).parent.as_posix()}/config.cfg" in wheel.namelist()


def test_readme_and_notices_agree_with_the_metadata() -> None:
    assert f'license = "{EXPRESSION}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    [section] = re.findall(
        r"^## Licence\n(.*?)(?:^## |\Z)", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S
    )
    assert EXPRESSION in section
    assert NOTICE in section
    assert WORDS in section
    for file in (NOTICE, "robustrag_integrations/keywords/pipeline/README.md"):
        assert "CC BY-SA 4.0" in (ROOT / file).read_text(encoding="utf-8")
