"""Weights and batches that follow from names and counters, to the bit, in any language
(tests/support/counted_model.h is the C++ side).  Integers are unsigned; they wrap at 64 bits.

    mix(x):   x += 0x9E3779B97F4A7C15
              x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
              x = (x ^ (x >> 27)) * 0x94D049BB133111EB
              return x ^ (x >> 31)                                  (SplitMix64, Steele et al. 2014)
    stream(text) = FNV-1a of 32 bits over its bytes: h = 2166136261, each byte: h = (h ^ byte) * 16777619
    bits(text, i) = mix(stream(text) * 2^32 + i)
    unit(text, i) = (bits(text, i) >> 44) / 2^19 - 1                20 bits, in [-1, 1)

    Element i, in row-major order, of the parameter or statistic called NAME:
      two axes or more   unit(NAME, i) * 2^-e, where fan_in = all extents but the first, multiplied, and
                         e is the smallest whole number with 6 * 4^e >= fan_in: Kaiming's deviation
                         within a factor of two
      ...running_var     1 + unit(NAME, i) / 4
      ...weight          1 + unit(NAME, i) / 4     of one axis: a normalisation's
      any other          unit(NAME, i) / 8         biases, running means
    label of sample n:   (bits("label", n) >> 33) mod classes
    element i of the image of sample n, P elements an image:
                         (unit("data", P n + i) + unit("pattern <label>", i)) / 2
    sentence n of a field of sentences, "source" or "target", of V words, L places:
                         1 + (bits("FIELD words", n) >> 33) mod (L - 2) words, word i of which is
                         4 + (bits(FIELD, L n + i) >> 33) mod (V - 4)
    k-th direction of the gradient called NAME: element i is unit(NAME + " direction <k>", i)

Every number is exact in fp32, so both programs start from the same bits.
"""

import numpy as np


def stream(text):
    h = 2166136261
    for byte in text.encode():
        h = (h ^ byte) * 16777619 & 0xFFFFFFFF
    return h


def numbered_bits(stream, count):
    """Returns the bits of a stream that is a number instead of a text: mix(stream * 2^32 + i)."""
    with np.errstate(over="ignore"):
        x = np.arange(count, dtype=np.uint64) + np.uint64(stream << 32)
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def bits(text, count):
    return numbered_bits(stream(text), count)


def numbered_unit(stream, shape):
    count = int(np.prod(shape, dtype=np.int64))
    whole = (numbered_bits(stream, count) >> np.uint64(44)).astype(np.float64)
    return (whole / 2**19 - 1).reshape(shape)


def unit(text, shape):
    return numbered_unit(stream(text), shape)


def exponent(fan_in):
    e = 0
    while 6 * 4**e < fan_in:
        e += 1
    return e


def tensor(name, shape):
    """Returns a parameter or batch-norm statistic, as float64 numbers that are exact in float32."""
    if len(shape) >= 2:
        return unit(name, shape) * 2.0 ** -exponent(int(np.prod(shape[1:])))
    if name.endswith("running_var") or name.endswith("weight"):
        return 1 + unit(name, shape) / 4
    return unit(name, shape) / 8


def labels(samples, classes):
    return ((bits("label", samples) >> np.uint64(33)) % np.uint64(classes)).astype(np.int32)


def images(samples, shape, classes):
    patterns = np.stack([unit(f"pattern {c}", shape) for c in range(classes)])
    return (unit("data", (samples, *shape)) + patterns[labels(samples, classes)]) / 2


def sentences(field, samples, vocabulary, places):
    numbers = 4 + (bits(field, samples * places) >> np.uint64(33)) % np.uint64(vocabulary - 4)
    lengths = 1 + (bits(f"{field} words", samples) >> np.uint64(33)) % np.uint64(places - 2)
    return [row[:n] for row, n in zip(numbers.reshape(samples, places).astype(np.int32), lengths)]


def padded(sentences, before, behind, places):
    rows = np.ones((len(sentences), places), dtype=np.int32)  # <pad>
    for row, words in zip(rows, sentences):
        both = [*before, *words, *behind]
        row[:len(both)] = both
    return rows


def projections(name, gradient, count=3):
    flat = gradient.reshape(-1)
    return [float(flat @ unit(f"{name} direction {k}", flat.shape)) for k in range(count)]
