"""A small language model as an example for OpenAI's clients. Each function is the base URL of a client:

    client = OpenAI(base_url="http://127.0.0.1:8080/v4/demo/language/chat", api_key=TOKEN)
    client.chat.completions.create(model="bigram", messages=[{"role": "user", "content": "the gateway"}], stream=True)

The model learns the order of words in `corpus.txt`. To use a real model, keep the parameters and results of the functions.
"""

import base64
import hashlib
import math
import random
import re
import struct
import time
from collections import Counter, defaultdict
from pathlib import Path

WORD = re.compile(r"\w+|[.,;:?!]")
FOLLOWERS: dict[str, Counter[str]] = defaultdict(Counter)
DIMENSIONS = 64


def setup():
    """Trains the model. Runs once in each process, before its first call."""
    words = WORD.findall((Path(__file__).parent / "corpus.txt").read_text().lower())
    for word, following in zip(words, words[1:]):
        FOLLOWERS[word][following] += 1


def chat(messages: list, model: str = "bigram", stream: bool = False, max_tokens: int = 40, temperature: float = 1.0, seed: int = 0, run_id: str = ""):
    """POST …/chat/chat/completions"""
    prompt = " ".join(_text(message["content"]) for message in messages)
    words = _generate(prompt, max_tokens, temperature, seed)
    about = {"id": f"chatcmpl-{run_id}", "created": int(time.time()), "model": model}
    if stream:
        return _chat_chunks(about, words)
    text, used = _joined(words)
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": _reason(used, max_tokens), "logprobs": None}
    return {**about, "object": "chat.completion", "choices": [choice], "usage": _usage(prompt, used)}


def complete(prompt: str, model: str = "bigram", stream: bool = False, max_tokens: int = 40, temperature: float = 1.0, seed: int = 0, run_id: str = ""):
    """POST …/complete/completions"""
    words = _generate(prompt, max_tokens, temperature, seed)
    about = {"id": f"cmpl-{run_id}", "object": "text_completion", "created": int(time.time()), "model": model}
    if stream:
        return ({**about, "choices": [_text_choice(word, None)]} for word in words)
    text, used = _joined(words)
    return {**about, "choices": [_text_choice(text, _reason(used, max_tokens))], "usage": _usage(prompt, used)}


def embed(input, model: str = "hashed", encoding_format: str = "float"):
    """POST …/embed/embeddings. Adds a direction for each word, so texts with common words are close."""
    if encoding_format not in ("float", "base64"):
        raise ValueError("encoding_format must be 'float' or 'base64'")
    texts = [input] if isinstance(input, str) else input
    vectors = [_vector(text) if encoding_format == "float" else _packed(_vector(text)) for text in texts]
    data = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    used = sum(len(WORD.findall(text)) for text in texts)
    return {"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": used, "total_tokens": used}}


def respond(input, model: str = "bigram", stream: bool = False, max_output_tokens: int = 40, temperature: float = 1.0, run_id: str = ""):
    """POST …/respond/responses"""
    prompt = input if isinstance(input, str) else " ".join(_text(message["content"]) for message in input)
    words = _generate(prompt, max_output_tokens, temperature, 0)
    response = {"id": f"resp_{run_id}", "object": "response", "created_at": int(time.time()), "model": model, "status": "in_progress", "output": []}
    if stream:
        return _response_events(response, words, prompt)
    text, used = _joined(words)
    return _completed(response, text, prompt, used)


def _chat_chunks(about, words):
    def chunk(delta, reason=None):
        return {**about, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield chunk({"role": "assistant", "content": ""})
    for word in words:
        yield chunk({"content": word})
    yield chunk({}, "stop")


def _response_events(response, words, prompt):
    """Returns the events from which `openai.responses.stream()` builds the response."""
    at = {"item_id": f"msg_{response['id']}", "output_index": 0, "content_index": 0}
    text, used = "", 0

    def events():
        nonlocal text, used
        yield "created", {"response": response}
        yield "in_progress", {"response": response}
        yield "output_item.added", {"output_index": 0, "item": _message(response, [], "in_progress")}
        yield "content_part.added", {**at, "part": _part("")}
        for word in words:
            text, used = text + word, used + 1
            yield "output_text.delta", {**at, "delta": word, "logprobs": []}
        yield "output_text.done", {**at, "text": text, "logprobs": []}
        yield "content_part.done", {**at, "part": _part(text)}
        yield "output_item.done", {"output_index": 0, "item": _message(response, [_part(text)], "completed")}
        yield "completed", {"response": _completed(response, text, prompt, used)}

    for number, (name, event) in enumerate(events()):
        yield {"type": f"response.{name}", "sequence_number": number, **event}


def _completed(response, text, prompt, used):
    read = len(WORD.findall(prompt))
    usage = {"input_tokens": read, "output_tokens": used, "total_tokens": read + used}
    return {**response, "status": "completed", "output": [_message(response, [_part(text)], "completed")], "usage": usage}


def _message(response, content, status):
    return {"id": f"msg_{response['id']}", "type": "message", "role": "assistant", "status": status, "content": content}


def _part(text):
    return {"type": "output_text", "text": text, "annotations": []}


def _generate(prompt, limit, temperature, seed):
    """Yields one word after another. A word begins with a space if needed."""
    chance = random.Random(f"{seed} {prompt}")
    said = WORD.findall(prompt.lower())
    word = next((word for word in reversed(said) if word in FOLLOWERS), ".")
    for at in range(limit):
        following = FOLLOWERS.get(word) or FOLLOWERS["."]
        weights = [count ** (1 / max(temperature, 0.01)) for count in following.values()]
        word = chance.choices(list(following), weights)[0]
        yield word if at == 0 or word in ".,;:?!" else f" {word}"
        if word == "." and at >= limit // 2:
            return


def _joined(words):
    said = list(words)
    return "".join(said), len(said)


def _vector(text):
    vector = [0.0] * DIMENSIONS
    for word in WORD.findall(text.lower()):
        digest = hashlib.sha256(word.encode()).digest()
        for at in range(DIMENSIONS):
            vector[at] += 1 if digest[at % 32] >> (at // 32) & 1 else -1
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]


def _packed(vector):
    """Encodes 32-bit floats, little endian: the default of OpenAI's clients."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _text(content):
    """Returns the text of a message's content, which is a text or a list of parts."""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def _text_choice(text, reason):
    return {"index": 0, "text": text, "finish_reason": reason, "logprobs": None}


def _reason(used, limit):
    return "length" if used >= limit else "stop"


def _usage(prompt, used):
    read = len(WORD.findall(prompt))
    return {"prompt_tokens": read, "completion_tokens": used, "total_tokens": read + used}
