#!/usr/bin/env python3
"""Compares dtrain with onnxruntime on real data, with trained and exported weights.

    python3 tools/onnx/compare.py --build build/release --data DIR [MODEL ...]

For each model it trains some steps, runs `dtrain export --format onnx` and onnx.checker with full shape inference, and
compares the logits of onnxruntime with dtrain's on test images, in batches of 1, 3 and 64.  The bound is 1e-5 of the
largest logit, or 1e-5 if that is below 1.  `layers` is a model of all layers that no other model has.  lenet5's images
are also given to `dtrain predict`, which tests mean and deviation in the metadata.  The two graphs of
seq2seq_attention are decoded greedily and must give the same words as `dtrain translate`, with trained weights and
with noise on them.  The exit code is 1 if a bound is exceeded.  Needs onnx, onnxruntime, numpy, safetensors, and a
build with tests (the program step_dump).  --keep DIR keeps the runs, and uses them again.
"""

import argparse
import gzip
import html
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import numpy as np
import onnx
import onnxruntime
from safetensors.numpy import load_file, save_file

BOUND = 1e-5
BATCHES = (1, 3, 64)
IMAGE_MODELS = {"lenet5": "mnist", "lenet5_caffe": "mnist", "resnet20": "cifar10", "resnet18": "cifar10",
                "vgg19_bn": "cifar10", "vgg19_gssp": "cifar10", "layers": "mnist"}
TRANSLATION = "seq2seq_attention"

# The layers that no shipped model has.
LAYERS = """name: layers
sample: [1, 28, 28]
layers:
  - {name: c1, type: convolution, outputs: 12, kernel: [3, 5], pad: [1, 2], stride: 2}
  - {name: l1, type: lrn}
  - {name: a1, type: gelu}
  - {name: c2, type: convolution, outputs: 12, kernel: 3, pad: 2, dilation: 2, groups: 4, bias: false}
  - {name: g2, type: group_norm, groups: 3}
  - {name: a2, type: silu}
  - {name: sum, type: eltwise, input: [a1, a2]}
  - {name: max, type: eltwise, operation: max, input: [a1, a2, sum]}
  - {name: product, type: eltwise, operation: product, input: [a1, max, sum]}
  - {name: g3, type: group_norm, groups: 12, affine: false}
  - {name: p1, type: pooling, adaptive: [5, 4]}
  - {name: a3, type: leaky_relu, slope: 0.1, input: p1}
  - {name: p2, type: pooling, method: average, adaptive: [3, 4]}
  - {name: n2, type: layer_norm, axes: 3}
  - {name: p3, type: pooling, method: average, kernel: 3, stride: 1, pad: 1}
  - {name: n3, type: layer_norm, affine: false}
  - {name: steps, type: inner_product, axis: 2, outputs: 6}
  - {name: tanh, type: gelu, approximate: tanh}
  - {name: left, type: inner_product, outputs: 20}
  - {name: la, type: sigmoid}
  - {name: right, type: inner_product, outputs: 20, bias: false, input: tanh}
  - {name: ra, type: tanh}
  - {name: both, type: concat, input: [la, ra]}
  - {name: scale, type: lrn, local_size: 3}
  - {name: bn, type: batch_norm}
  - {name: drop, type: dropout, ratio: 0.3}
  - {name: fc, type: inner_product, outputs: 10}
  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}
"""


class Compare:
    def __init__(self, options, folder):
        self.options, self.folder, self.failed = options, folder, False
        self.build = pathlib.Path(options.build).resolve()

    def dtrain(self, *words, text=None):
        done = subprocess.run([self.build / "dtrain", *map(str, words)], input=text, text=True, capture_output=True)
        if done.returncode != 0:
            sys.exit(f"dtrain {' '.join(map(str, words))}: {done.stderr}")
        return done.stdout

    def tell(self, name, what, good):
        self.failed |= not good
        print(f"{name:18} {what:70} {'' if good else 'WRONG'}", flush=True)

    def trained(self, name, data, *settings):
        """Returns a run's folder; trains the run if it does not exist."""
        run = self.folder / name
        if (run / "summary.json").exists():
            return run
        model = name
        if name == "layers":
            model = self.folder / "layers.yaml"
            model.write_text(LAYERS)
        config = self.folder / f"{name}_config.yaml"
        config.write_text(f"model: {{name: {model}}}\ndata: {{name: {data}, root: {self.options.data}, limit: 2000}}\n")
        sets = ["max_steps=12", "solver.lr=0.02", *settings]
        self.dtrain("train", "--config", config, "--output", run, *[w for s in sets for w in ("--set", s)])
        return run

    def session(self, path):
        onnx.checker.check_model(str(path), full_check=True)
        return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    # --- images
    def images(self, data, count):
        """Returns uint8 [count, C, H, W] of the test split."""
        folder = pathlib.Path(self.options.data) / data
        if data == "mnist":
            file = next(folder.rglob("t10k-images*"))
            raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            return np.frombuffer(raw, np.uint8, count * 784, 16).reshape(count, 1, 28, 28)
        return np.frombuffer(cifar_test(folder), np.uint8, count * 3073).reshape(count, 3073)[:, 1:].reshape(
            count, 3, 32, 32)

    def own_logits(self, name, run, x):
        source, result = self.folder / "step_in.safetensors", self.folder / "step_out.safetensors"
        model = self.folder / "model.yaml"
        model.write_text(self.model_yaml)
        save_file({**self.weights, "input.data": x, "input.label": np.zeros(len(x), np.int32),
                   "terms": np.array([len(x)], np.float32)}, source)
        subprocess.run([self.build / "step_dump", "evaluate", model, source, result], check=True, capture_output=True)
        return load_file(result)["logits"].reshape(len(x), -1)

    def compare_images(self, name):
        data = IMAGE_MODELS[name]
        run = self.trained(name, data)
        exported, plain = self.folder / f"{name}.onnx", self.folder / f"{name}.safetensors"
        self.dtrain("export", "--weights", run, "--format", "onnx", "--output", exported)
        self.dtrain("export", "--weights", run, "--output", plain)
        self.weights = {k: v for k, v in load_file(plain).items() if not k.endswith("num_batches_tracked")}
        self.model_yaml = safetensors_metadata(plain)["model_yaml"]
        session = self.session(exported)
        meta = session.get_modelmeta().custom_metadata_map
        shape = (-1, 1, 1)
        mean, deviation = (np.array(json.loads(meta[k]), np.float32).reshape(shape) for k in ("mean", "deviation"))
        pixels = self.images(data, sum(BATCHES))
        first = 0
        for batch in BATCHES:
            x = np.ascontiguousarray((pixels[first:first + batch] / np.float32(255) - mean) / deviation, np.float32)
            first += batch
            theirs, = session.run(["logits"], {"data": x})
            ours = self.own_logits(name, run, x)
            largest = float(np.abs(ours).max())
            apart = float(np.abs(ours - theirs).max())
            self.tell(name, f"batch {batch:2}: logits up to {largest:.3g}, apart {apart:.2g}",
                      apart <= BOUND * max(1, largest))
        if data == "mnist":
            self.compare_predict(name, run, pixels[:64], theirs_of=lambda p: session.run(
                ["logits"], {"data": ((p / np.float32(255) - mean) / deviation).astype(np.float32)})[0])

    def compare_predict(self, name, run, pixels, theirs_of):
        file = self.folder / "images-idx3-ubyte"
        file.write_bytes(np.array([0x803, len(pixels), 28, 28], ">u4").tobytes() + pixels.tobytes())
        lines = self.dtrain("predict", "--weights", run, "--json", "--top", 10, file).splitlines()
        ours = np.zeros((len(pixels), 10))
        for row, line in zip(ours, lines):
            for each in json.loads(line)["classes"]:
                row[each["number"]] = each["probability"]
        logits = theirs_of(pixels).astype(float)
        theirs = np.exp(logits - logits.max(1, keepdims=True))
        theirs /= theirs.sum(1, keepdims=True)
        apart = float(np.abs(ours - theirs).max())
        self.tell(name, f"predict: {len(lines)} images, probabilities apart {apart:.2g}",
                  apart <= BOUND and len(lines) == len(pixels))

    # --- translation
    def compare_translation(self):
        run = self.trained(TRANSLATION, "multi30k", f"max_steps={self.options.translation_steps}", "solver.name=adam",
                           "solver.lr=0.002", "data.limit=20000")
        self.compare_words(run, "trained")
        self.compare_words(self.shaken(run), "shaken")

    def shaken(self, run):
        """Returns the model with noise on its weights: a few training steps give few words, noise gives many.  More
        noise would make the recurrence chaotic, so that the last bit of fp32 would change the thirtieth word."""
        plain, noisy = self.folder / "plain.safetensors", self.folder / "shaken.safetensors"
        self.dtrain("export", "--weights", run, "--output", plain)
        rng = np.random.default_rng(2)
        weights = {k: v + rng.normal(0, 0.13, v.shape).astype(v.dtype) for k, v in load_file(plain).items()}
        metadata = {k: v for k, v in safetensors_metadata(plain).items() if not k.endswith("sha256")}
        save_file(weights, noisy, metadata=metadata)
        return noisy

    def compare_words(self, run, kind):
        self.dtrain("export", "--weights", run, "--format", "onnx", "--output", self.folder / "seq2seq.onnx")
        encoder, decoder = (self.session(self.folder / f"seq2seq.{part}.onnx") for part in ("encoder", "decoder"))
        meta = encoder.get_modelmeta().custom_metadata_map
        source_words, target_words = (json.loads(meta[k]) for k in ("source_vocabulary", "target_vocabulary"))
        numbers = {word: i for i, word in enumerate(source_words)}
        marks = {k: int(meta[k]) for k in ("unknown", "pad", "start", "end")}
        # Test sentences of one word up to all of them; dtrain's tokenizer does not change tokenised ones.
        file = next((pathlib.Path(self.options.data) / "multi30k").rglob("test_2016_flickr*.tok.de.gz"))
        text = gzip.decompress(file.read_bytes()).decode().splitlines()
        lines = [l.split()[:1 + 2 * (i % 12)] for i, l in enumerate(text[:sum(BATCHES)])]
        config = self.folder / f"{TRANSLATION}_config.yaml"
        typed = "".join(" ".join(line) + "\n" for line in lines)
        ours = self.dtrain("translate", "--config", config, "--weights", run, text=typed).splitlines()
        first = 0
        for batch in BATCHES:
            part = lines[first:first + batch]
            theirs = self.greedy(encoder, decoder, [[numbers.get(w, marks["unknown"]) for w in l] for l in part], marks)
            said = [html.unescape("".join(target_words[i] for i in answer)) for answer in theirs]
            mine = ours[first:first + batch]
            equal = sum(a == b.replace(" ", "") for a, b in zip(said, mine))
            words = len({i for answer in theirs for i in answer})
            what = f"{kind}, batch {batch:2}: {equal} of {batch} translations equal, {words} different words"
            self.tell(TRANSLATION, what, equal == batch)
            first += batch

    @staticmethod
    def greedy(encoder, decoder, sentences, marks, longest=50):
        length = max(map(len, sentences)) + 2
        source = np.full((len(sentences), length), marks["pad"], np.int64)
        for row, words in zip(source, sentences):
            row[:len(words) + 2] = [marks["start"], *words, marks["end"]]
        outputs, state = encoder.run(["encoder_outputs", "state"], {"source": source})
        token = np.full(len(sentences), marks["start"], np.int64)
        answers, open_ones = [[] for _ in sentences], set(range(len(sentences)))
        for _ in range(longest):
            logits, state = decoder.run(["logits", "next_state"], {"encoder_outputs": outputs, "state": state,
                                                                   "source": source, "token": token})
            logits[:, [marks["pad"], marks["start"]]] = -np.inf  # never an output word
            token = logits.argmax(1)
            for i in list(open_ones):
                if token[i] == marks["end"]:
                    open_ones.discard(i)
                else:
                    answers[i].append(int(token[i]))
            if not open_ones:
                break
        return answers


def cifar_test(folder):
    for file in folder.rglob("test_batch.bin"):
        return file.read_bytes()
    with tarfile.open(next(folder.rglob("*.tar.*"))) as archive:
        member = next(m for m in archive if m.name.endswith("test_batch.bin"))
        return archive.extractfile(member).read()


def safetensors_metadata(path):
    raw = path.read_bytes()
    return json.loads(raw[8:8 + int.from_bytes(raw[:8], "little")])["__metadata__"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--data", required=True)
    parser.add_argument("--keep")
    parser.add_argument("--translation-steps", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(options.keep or made)
        folder.mkdir(parents=True, exist_ok=True)
        compare = Compare(options, folder)
        for name in options.models or [*IMAGE_MODELS, TRANSLATION]:
            if name == TRANSLATION:
                compare.compare_translation()
            else:
                compare.compare_images(name)
    sys.exit(compare.failed)


if __name__ == "__main__":
    main()
