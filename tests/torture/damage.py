"""Bytes and values that nobody would write on purpose, drawn by a seed."""

import json
import math
import random
from typing import Any


def damage(rng: random.Random, content: bytes) -> bytes:
    """``content`` with flipped, lost, added, repeated or zeroed bytes."""
    found = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5, 30])):
        size = len(found)
        place = rng.randrange(min(size, 400) if rng.random() < 0.5 else size) if size else 0
        length = rng.choice([1, 4, 16, 512])
        kind = rng.randrange(7)
        if kind <= 1 and size:
            found[place] ^= 1 << rng.randrange(8)
        elif kind == 2:
            found[place : place + length] = bytes(len(found[place : place + length]))
        elif kind == 3:
            del found[place : size if rng.random() < 0.3 else place + length]
        elif kind == 4:
            found[place:place] = rng.randbytes(length)
        elif kind == 5:
            found[place : place + 8] = rng.choice([b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\x00\x00\x00\x80" * 2])
        else:
            found[place:place] = found[place : place + length] * rng.choice([1, 3])
    return bytes(found)


def odd_value(rng: random.Random, depth: int = 0) -> Any:
    """A JSON value of any type, size and depth."""
    kinds: list[Any] = [None, True, -1, 0, 10**18, 10**400, 0.5, 1e308, -1e308, math.nan, math.inf, "", "x" * 20_000]
    kinds += ["\x1b[2J", "../../etc", "<script>alert(1)</script>", "\\input{a}", "é\u202e", "\ud800", [], {}]
    if depth < 4 and rng.random() < 0.3:
        return [odd_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if depth < 4 and rng.random() < 0.3:
        return {str(odd_value(rng, 9))[:30]: odd_value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return rng.choice(kinds)


def change_value(rng: random.Random, value: Any) -> Any:
    """``value`` with something odd in one place of it."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        if rng.random() < 0.15:
            return {k: v for k, v in value.items() if k != key}
        if rng.random() < 0.15:
            return value | {str(odd_value(rng, 9))[:50]: odd_value(rng)}
        return value | {key: change_value(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.7:
        at = rng.randrange(len(value))
        return [*value[:at], change_value(rng, value[at]), *value[at + 1 :]]
    return odd_value(rng)


def change_lines(rng: random.Random, lines: list[Any]) -> bytes:
    """JSON lines with something odd in one to three of them, or odd bytes between them."""
    lines = list(lines)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        lines[at] = change_value(rng, lines[at])
    texts = [json.dumps(line) for line in lines]
    if rng.random() < 0.1:
        texts.insert(rng.randrange(len(texts) + 1), "[" * 5000 + "]" * 5000)
    content = "".join(text + "\n" for text in texts).encode()
    return damage(rng, content) if rng.random() < 0.3 else content
