# SPDX-License-Identifier: Apache-2.0
"""A client written from spec/telemetry/format.md alone; it imports nothing of sfumato."""

import hashlib
import hmac
import math
import unicodedata
from fractions import Fraction

WHOLE = 2**64


def number(domain, value):
    """The number of what a device holds."""
    if domain["kind"] == "record":
        held = value if isinstance(value, dict) else {}
        found, below = 0, 1
        for name, part in zip(domain["names"], domain["domains"], strict=True):
            found += below * number(part, held.get(name))
            below *= size_of(part)
        return found
    if domain["kind"] == "texts":
        text = value if isinstance(value, str) else ""
        form = unicodedata.normalize("NFC", text).encode()
        return int.from_bytes(hashlib.sha256(form).digest()[:8], "big")
    if domain["kind"] == "words":
        form = unicodedata.normalize("NFC", value) if isinstance(value, str) else ""
        if any(letter not in domain["letters"] for letter in form):
            form = ""
        found = 0
        for i in range(domain["length"]):
            digit = domain["letters"].index(form[i]) + 1 if i < len(form) else 0
            found = found * (len(domain["letters"]) + 1) + digit
        return found
    if domain["kind"] == "listed":
        if isinstance(value, int):
            value = str(value)
        form = unicodedata.normalize("NFC", value) if isinstance(value, str) else None
        listed = domain["values"]
        return listed.index(form) if form in listed else len(listed)
    if not isinstance(value, int | float):
        return 0
    exact = Fraction(value) / Fraction(domain["step"])
    whole = math.floor(exact)
    rest = exact - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1):
        whole += 1
    return min(max(whole, domain["lower"]), domain["upper"]) - domain["lower"]


def size_of(domain):
    """How many values a list or a lattice has."""
    if domain["kind"] == "listed":
        return len(domain["values"]) + 1
    return domain["upper"] - domain["lower"] + 1


def size(most):
    """The least number of bytes that holds a number."""
    count = 1
    while 256**count <= most:
        count += 1
    return count


def lie(word, truth, weight, place):
    """The rule of category and bucket: the truth, or another place."""
    if word < truth:
        return place
    j = (word - truth) // weight
    return j + 1 if j >= place else j


def category(o, v, w):
    return lie(w[0], int(o["truth"]), int(o["other_weight"]), v).to_bytes(
        size(o["values"] - 1), "big"
    )


def hashed(o, v, w):
    h = ((w[0] * v + w[1]) % WHOLE // 2**32) * o["buckets"] // 2**32
    bucket = lie(w[2], int(o["truth"]), int(o["other_weight"]), h)
    seed = w[0].to_bytes(8, "big") + w[1].to_bytes(8, "big")
    return seed + bucket.to_bytes(size(o["buckets"] - 1), "big")


def bit(o, v, w):
    m = 0
    while 2**m < o["values"]:
        m += 1
    row = w[0] // 2 ** (64 - m)
    sign = bin(row & v).count("1") % 2
    said = sign if w[1] < int(o["truth"]) else 1 - sign
    return (2 * row + said).to_bytes(size(2 ** (m + 1) - 1), "big")


def unary(o, v, w):
    payload = bytearray(-(-o["values"] // 8))
    for i in range(o["values"]):
        if w[i] < int(o["kept"] if i == v else o["added"]):
            payload[i // 8] |= 1 << i % 8
    return bytes(payload)


def digits(x, q, count):
    """The digits of a number, the most significant first."""
    found = []
    for _ in range(count):
        found.append(x % q)
        x //= q
    return found[::-1]


def undigits(listed, q):
    x = 0
    for digit in listed:
        x = x * q + digit
    return x


def free(x, q):
    f = 0
    while (q ** (f + 1) - 1) // (q - 1) <= x:
        f += 1
    return f


def vector(x, q):
    f = free(x, q)
    return x - (q**f - 1) // (q - 1) + q**f


def projective(o, v, w):
    q, t, near, far = o["prime"], o["dimension"], int(o["near"]), int(o["far"])
    s = (q ** (t - 1) - 1) // (q - 1)
    c = digits(vector(v, q), q, t)[::-1]
    fv = free(v, q)
    if w[0] < near * s:
        rest, product = vector(w[0] // near, q), 0
    else:
        rest, product = (w[0] - near * s) // far, 1
    cut = q ** (t - 1 - fv)
    upper, lower = rest // cut, rest % cut
    u = digits(upper, q, fv)
    x = (product - sum(c[i] * u[i] for i in range(fv))) % q
    found = digits((upper * q + x) * cut + lower, q, t)
    leading = next(digit for digit in found if digit)
    inverse = next(k for k in range(1, q) if k * leading % q == 1)
    scaled = undigits([digit * inverse % q for digit in found], q)
    f = 0
    while q ** (f + 1) <= scaled:
        f += 1
    point = scaled - q**f + (q**f - 1) // (q - 1)
    return point.to_bytes(size((q**t - 1) // (q - 1) - 1), "big")


def mean(o, v, w):
    moves = o["values"] - 1
    share, low, high = int(o["share"]), int(o["low"]), int(o["high"])
    near, far, window = int(o["near"]), int(o["far"]), o["window"]
    if w[0] >= share:
        said = 1 if w[1] < low + (high - low) // moves * v else 0
    elif w[1] < near * window:
        said = 2 + v + w[1] // near
    else:
        j = (w[1] - near * window) // far
        said = 2 + j + (window if j >= v else 0)
    return said.to_bytes(size(window + o["values"] if share else 1), "big")


def levels(o, v, w):
    parts = o["parts"]
    level = w[0] * len(parts) // WHOLE
    sizes = [len(encode(part, 0, [0] * draws_of(part))) for part in parts]
    payload = encode(parts[level], v // o["branching"] ** level, w[1:])
    return bytes([level]) + payload + bytes(max(sizes) - len(payload))


def packed(ones):
    payload = bytearray(-(-len(ones) // 8))
    for i, one in enumerate(ones):
        payload[i // 8] |= one << i % 8
    return bytes(payload)


def rappor(o, v, w):
    cohort = w[0] * o["cohorts"] // WHOLE
    digest = hashlib.sha256(cohort.to_bytes(4, "big") + v.to_bytes(8, "big")).digest()
    own = set()
    for i in range(o["hashes"]):
        own.add(int.from_bytes(digest[4 * i : 4 * i + 4], "big") * o["bits"] // 2**32)
    weights = [int(o["kept"] if i in own else o["added"]) for i in range(o["bits"])]
    ones = [int(w[1 + i] < weight) for i, weight in enumerate(weights)]
    return cohort.to_bytes(2, "big") + packed(ones)


def blurred(o, answer, u):
    ones = []
    for i in range(o["bits"]):
        held = answer[2 + i // 8] >> i % 8 & 1
        ones.append(int(u[i] < int(o["one"] if held else o["zero"])))
    return answer[:2] + packed(ones)


def attributes(o, v, w):
    parts = o["parts"]
    place = w[0] * len(parts) // WHOLE
    sizes = [len(encode(part, 0, [0] * draws_of(part))) for part in parts]
    for part in parts[:place]:
        v //= part["values"]
    payload = encode(parts[place], v % parts[place]["values"], w[1:])
    return bytes([place]) + payload + bytes(max(sizes) - len(payload))


def bucket(v, row, buckets):
    digest = hashlib.sha256(b"sfumato telemetry sketch 1" + row.to_bytes(4, "big")).digest()
    a, b, c = (int.from_bytes(digest[8 * i : 8 * i + 8], "big") for i in range(3))
    return (a * (v // 2**32) + b * (v % 2**32) + c) % WHOLE * buckets // WHOLE


def sketch(o, v, w):
    row = w[0] * o["rows"] // WHOLE
    held = bucket(v, row, o["part"]["values"])
    return row.to_bytes(2, "big") + encode(o["part"], held, w[1:])


def prefixes(o, v, w):
    parts = o["parts"]
    place = w[0] * len(parts) // WHOLE
    sizes = [len(encode(part, 0, [0] * draws_of(part))) for part in parts]
    reported = min(o["length"], (place + 1) * o["step"])
    payload = encode(parts[place], v // o["symbols"] ** (o["length"] - reported), w[1:])
    return bytes([place]) + payload + bytes(max(sizes) - len(payload))


def fragments(o, v, w):
    few, whole = o["parts"]
    step, length = o["step"], o["length"]
    place = w[0] * -(-length // step) // WHOLE
    width = min(step, length - place * step)
    cut = v // o["symbols"] ** (length - place * step - width) % o["symbols"] ** width
    marked = bucket(v, 65536, 256) * o["symbols"] ** step + cut
    first = encode(few, marked, w[1:])
    return bytes([place]) + first + encode(whole, v, w[1 + draws_of(few) :])


def large(domain):
    """Whether 4 bytes do not hold the number of every value."""
    if domain["kind"] == "words":
        return (len(domain["letters"]) + 1) ** domain["length"] > 2**32
    return domain["kind"] == "texts"


def draws_of(oracle):
    """How many words an oracle takes."""
    if oracle["kind"] == "sketch":
        return 1 + draws_of(oracle["part"])
    if oracle["kind"] == "rappor":
        return 1 + oracle["bits"]
    if oracle["kind"] in ("levels", "attributes", "prefixes"):
        return 1 + max(draws_of(part) for part in oracle["parts"])
    if oracle["kind"] == "fragments":
        return 1 + sum(draws_of(part) for part in oracle["parts"])
    return DRAWS.get(oracle["kind"], oracle["values"])


ORACLES = {
    "sketch": sketch,
    "prefixes": prefixes,
    "fragments": fragments,
    "rappor": rappor,
    "attributes": attributes,
    "mean": mean,
    "levels": levels,
    "category": category,
    "hashed": hashed,
    "bit": bit,
    "unary": unary,
    "projective": projective,
}
DRAWS = {"category": 1, "hashed": 3, "bit": 2, "projective": 1, "mean": 2}


def encode(oracle, value, words):
    """The payload of the number of a value."""
    return ORACLES[oracle["kind"]](oracle, value, words)


class FourthClient:
    """The client of the section of that name, for a task that was checked."""

    def __init__(self, task, body, secret):
        self.task = task
        self.hash = hashlib.sha256(body).digest()
        self.secret = secret
        self.first = None
        self.period, self.used = -1, 0
        self.epoch, self.answer = None, None

    def keyed(self, label, *numbers):
        text = label + self.hash + b"".join(n.to_bytes(4, "big") for n in numbers)
        return hmac.new(self.secret, text, "sha256").digest()

    def report(self, value, seconds, words):
        task, oracle = self.task, self.task["oracle"]
        period = (seconds - task["start"]) // task["period"]
        if period >= task["periods"] or seconds >= task["expires"]:
            return None
        epoch = period // task["memory"] if task["memory"] else period
        if self.first is None:
            self.first = max(epoch + 1, 0)
            return None
        used = self.used if period == self.period else 0
        if period < 0 or epoch < self.first or period < self.period or used >= task["reports"]:
            return None
        v = number(task["domain"], value)
        if task["memory"]:
            if self.epoch != epoch:
                draws = draws_of(oracle)
                parts = [v // 2**32, v % 2**32] if large(task["domain"]) else [v]
                blocks = [
                    self.keyed(b"sfumato telemetry answer 1", epoch, *parts, i)
                    for i in range(-(-draws // 4))
                ]
                every = b"".join(blocks)
                made = [int.from_bytes(every[8 * i : 8 * i + 8], "big") for i in range(draws)]
                self.epoch, self.answer = epoch, encode(oracle, v, made)
            payload = self.answer
            if oracle["kind"] == "rappor":
                payload = blurred(oracle, payload, words)
        else:
            payload = encode(oracle, v, words)
        name = self.keyed(b"sfumato telemetry id 1", period, used)[:16]
        self.period, self.used = period, used + 1
        return b"\x01" + self.hash[:8] + period.to_bytes(4, "big") + name + payload
