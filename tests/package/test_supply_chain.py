"""What the shipped packages may never do: unpickle, evaluate text, run a model's own code, or connect unasked."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("robustrag_integrations", "langchain_robustrag", "llamaindex_robustrag")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

# Modules whose very import means that something is unpickled or run.
_IMPORTS = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "jsonpickle", "code"}
_CALLS = {"eval", "exec", "compile", "execfile", "__import__"}
# Functions that unpickle or run what they are given, unless told otherwise.
_ATTRIBUTES = {
    "yaml.load", "yaml.unsafe_load", "yaml.full_load", "yaml.load_all", "os.system", "os.popen", "pandas.read_pickle",
    "numpy.load", "np.load", "torch.load", "torch.jit.load", "torch.package.PackageImporter", "torch.hub.load",
}  # fmt: skip


def faults_of(source: str) -> Iterator[str]:
    """What a module's text does that it may not."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (f"imports {a.name}" for a in node.names if a.name.split(".")[0] in _IMPORTS)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _IMPORTS:
            yield f"imports from {node.module}"
        elif isinstance(node, ast.Call):
            yield from _faults_of_call(node)


def _faults_of_call(call: ast.Call) -> Iterator[str]:
    name = ast.unparse(call.func)
    given = {k.arg: ast.unparse(k.value) for k in call.keywords}
    if name in _CALLS:
        yield f"calls {name}"
    if name in _ATTRIBUTES and not _made_safe(name, given):
        yield f"calls {name}"
    if given.get("trust_remote_code", "False") != "False":
        yield "trusts remote code"
    if given.get("weights_only", "True") != "True":
        yield "loads more than weights"
    if given.get("shell", "False") != "False":
        yield "starts a shell"
    if name.startswith("AutoModel") and name.endswith(".from_pretrained"):
        if given.get("use_safetensors") != "True":
            yield "loads weights that may be pickled"
        if given.get("trust_remote_code") != "False":
            yield "does not say that remote code is not trusted"


def _made_safe(name: str, given: dict[str | None, str]) -> bool:
    if name == "torch.load":
        return given.get("weights_only") == "True"
    if name in ("numpy.load", "np.load"):
        return given.get("allow_pickle", "False") == "False"
    return name.startswith("yaml.") and given.get("Loader", "").endswith("SafeLoader")


def test_nothing_is_unpickled_evaluated_or_trusted() -> None:
    assert MODULES
    assert [f"{path}: {fault}" for path in MODULES for fault in faults_of(path.read_text(encoding="utf-8"))] == []


def test_the_search_finds_what_it_looks_for() -> None:
    for source in (
        "import pickle",
        "from pickle import loads",
        "def f():\n    import marshal",
        "eval(x)",
        "yaml.load(f)",
        "yaml.load(f, Loader=yaml.Loader)",
        "torch.load(f)",
        "torch.load(f, weights_only=False)",
        "np.load(f, allow_pickle=True)",
        "load(trust_remote_code=True)",
        "AutoTokenizer.from_pretrained(n, trust_remote_code=trusted)",
        "AutoModelForCausalLM.from_pretrained(n, trust_remote_code=False)",
        "AutoModelForCausalLM.from_pretrained(n, use_safetensors=True)",
        "subprocess.run(c, shell=True)",
    ):
        assert list(faults_of(source)) != [], source


def test_the_search_lets_safe_loading_pass() -> None:
    safe = "torch.load(f, weights_only=True)\nyaml.load(f, Loader=yaml.SafeLoader)\nyaml.safe_load(f)\nre.compile('a')"
    assert list(faults_of(safe)) == []


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
