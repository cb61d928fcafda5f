"""What the shipped packages may never do: unpickle, evaluate text, run a model's own code, or connect unasked."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("robustrag_integrations", "langchain_robustrag", "llamaindex_robustrag")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def test_the_linter_refuses_pickles_and_evaluated_text_without_exceptions() -> None:
    linted = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '"S"' in linted.split("select = [")[1].split("]")[0]
    for path in MODULES:
        waived = re.findall(r"noqa: *(S\d+)", path.read_text(encoding="utf-8"))
        assert not {"S102", "S301", "S302", "S307", "S506", "S602", "S605"} & set(waived), path


def faults_of(source: str) -> Iterator[str]:
    """How a module's text loads models in ways that run a stranger's code."""
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        name, given = ast.unparse(call.func), {k.arg: ast.unparse(k.value) for k in call.keywords}
        if name in ("torch.load", "torch.jit.load", "torch.hub.load", "np.load", "numpy.load"):
            yield f"calls {name}"
        if given.get("trust_remote_code", "False") != "False":
            yield "trusts remote code"
        safe = (given.get("use_safetensors"), given.get("trust_remote_code")) == ("True", "False")
        if name.startswith("AutoModel") and name.endswith(".from_pretrained") and not safe:
            yield "loads weights that may be pickled, or remote code"


def test_models_are_loaded_from_safe_files_alone() -> None:
    assert MODULES
    assert [f"{path}: {fault}" for path in MODULES for fault in faults_of(path.read_text(encoding="utf-8"))] == []
    for source in ("torch.load(f)", "load(trust_remote_code=x)", "AutoModelForCausalLM.from_pretrained(n)"):
        assert list(faults_of(source)) != [], source


def test_no_file_that_ships_holds_a_pickle() -> None:
    files = [
        p for package in PACKAGES for p in (ROOT / package).rglob("*") if p.is_file() and "__pycache__" not in p.parts
    ]
    assert files
    for file in files:
        assert file.suffix not in {".pkl", ".pickle", ".pt", ".pth", ".joblib", ".npy", ".npz", ".h5", ".onnx"}
        with file.open("rb") as opened:
            start = opened.read(4)
        assert not (start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")), f"{file}: a pickle"
        assert start[:2] != b"PK", f"{file} is an archive, as torch's pickles are"


def test_what_may_sign_or_publish_runs_no_code_of_this_repository() -> None:
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8"))
    assert workflow["permissions"] == {}
    ran = {}
    for name, job in workflow["jobs"].items():
        used = [step["uses"] for step in job["steps"] if "uses" in step]
        assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action) for action in used), used
        commands = [step["run"].split() for step in job["steps"] if "run" in step]
        ran[name] = [*(action.partition("@")[0] for action in used), *(words[0] for words in commands)]
        if "write" in job["permissions"].values():
            assert not {"actions/checkout", "actions/setup-python", "make", "python", "pip"} & set(ran[name]), ran[name]
        else:
            assert job["permissions"] == {"contents": "read"}
    assert "make" in ran["build"]
    assert ran["attest"] == ["actions/download-artifact", "actions/attest-build-provenance"]


def test_a_release_is_built_with_what_is_pinned_by_its_hash() -> None:
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nrelease:")[2].partition("\n\n")[0]
    assert "--require-hashes -r .ci/release.txt" in recipe
    assert not re.search(r"\$\((?:INSTALL|BIN)\)|pip install(?!.*--require-hashes)", recipe)
    pins = re.split(r"\n(?=\S)", (ROOT / ".ci" / "release.txt").read_text(encoding="utf-8").strip())
    assert all("==" in pin and "--hash=sha256:" in pin for pin in pins)
    wanted = {"hatchling", "twine", "uv", "cyclonedx-bom", "pytest"}
    assert wanted <= {pin.partition("==")[0] for pin in pins}


_OFFLINE = """
import pkgutil, socket, sys, warnings
def refused(*args, **named):
    raise SystemExit(f"the network was used: {args[:2]}")
class Refused(socket.socket):
    connect = connect_ex = sendto = refused
socket.socket = Refused
socket.getaddrinfo = socket.create_connection = refused
warnings.simplefilter("ignore")
import robustrag_integrations as robustrag
missing = []
for package in ("robustrag_integrations", "langchain_robustrag", "llamaindex_robustrag"):
    try:
        found = __import__(package)
    except ImportError as error:
        missing.append(package)
        continue
    for module in pkgutil.walk_packages(found.__path__, package + "."):
        if not module.name.endswith("__main__"):
            try:
                __import__(module.name)
            except ImportError as error:
                missing.append(module.name)
answer = robustrag.KeywordAggregation(robustrag.LocalModel.bundled()).answer(
    "Who is the mayor of Velbury?", [f"The mayor of Velbury is Anna Lind. Note {n}." for n in range(4)]
)
print(len(missing), answer.radius)
"""


@pytest.mark.timeout(1200)  # it imports every library there is
def test_every_module_is_imported_and_a_question_answered_without_a_connection() -> None:
    pytest.importorskip("torch")
    done = subprocess.run([sys.executable, "-c", _OFFLINE], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()
