"""Decoding aggregation from a server's top log-probabilities. Runs offline: the server is a stand-in on loopback.

pip install '.[remote]'
"""

import json
import math
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from transformers import AutoTokenizer

from robustrag_integrations import DecodingAggregation, Passage
from robustrag_integrations.models.server.decoding import RemoteDecodingModel
from robustrag_integrations.reader import reader_path

tokenizer = AutoTokenizer.from_pretrained(str(reader_path()))  # in your program, the served model's own


def tokens(text: str) -> list[int]:
    """A text as the model's tokens."""
    return tokenizer(text, add_special_tokens=False)["input_ids"]


class Server(BaseHTTPRequestHandler):
    """Nearly sure of the name in its prompt, token by token, as vLLM or SGLang tell it."""

    def do_POST(self) -> None:
        """Answer a request for completions of one token."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt, listed = asked["prompt"], asked["logprobs"]
        said = tokens(" Eve Crook" if "Crook" in tokenizer.decode(prompt) else " Anna Lind")
        done = next((n for n in range(len(said), 0, -1) if prompt[-n:] == said[:n]), 0)
        token = said[done] if done < len(said) else tokenizer.eos_token_id
        others = [n for n in range(listed) if n != token][: listed - 1]
        top = {f"token_id:{token}": math.log(0.999), **{f"token_id:{n}": -20.0 - n for n in others}}
        name = f"token_id:{token}"
        told = {"tokens": [name], "token_logprobs": [top[name]], "text_offset": [0], "top_logprobs": [top]}
        choice = {"index": 0, "text": name, "finish_reason": "length", "logprobs": told}
        reply = {"id": "1", "object": "text_completion", "created": 0, "model": asked["model"], "choices": [choice]}
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()

passages = [Passage(f"Anna Lind runs the mill. Note {n}.", origin=f"site-{n}.example") for n in range(5)]
passages.append(Passage("Eve Crook runs the mill.", origin="planted.example"))
address = f"http://127.0.0.1:{server.server_port}/v1"
model = RemoteDecodingModel("my-model", address, tokenizer=str(reader_path()))
answer = DecodingAggregation(model, slack=0.05).answer("Who runs the mill?", passages)
print(answer.text, "with radius", answer.radius)
for source in answer.sources:
    print(f"{source.origins[0]:<16} {source.status}")
assert "Anna Lind" in answer.text
server.shutdown()
