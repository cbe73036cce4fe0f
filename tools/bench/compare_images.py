#!/usr/bin/env python3
"""Compares the images per second that image_folder reads with torchvision's ImageFolder and DataLoader.

    tools/bench/compare_images.py --dtrain build/release/dtrain [--images 600] [--threads 1,2]

Needs torch, torchvision and Pillow.  Makes images of 500 x 375 with the frequencies of photographs (sums of waves and
some noise), as JPEG (quality 90) and as PNG, in ten classes; both programs resize them to 224 x 224 and read them all
once.  The two are measured in turn, and the best of --repeats is printed, since other work on the machine only slows
down.  torchvision's workers are processes, dtrain's are threads; --threads is the number of both.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import numpy
import torch
import torchvision
from PIL import Image
from torchvision import transforms

SIZE = (375, 500)
NET = 224


def make_images(folder, ending, count):
    """Writes train/<class>/<number>.<ending>."""
    rng = numpy.random.default_rng(1)
    y, x = numpy.mgrid[0 : SIZE[0], 0 : SIZE[1]] / SIZE[1]
    for number in range(count):
        image = numpy.full((*SIZE, 3), 128.0)
        for wave in range(24):
            frequency = rng.normal(size=2) * 2 ** (wave / 5)
            phase = rng.uniform(0, 6.3, size=3)
            angle = (frequency[0] * x + frequency[1] * y)[..., None] * 6.3 + phase
            image += numpy.sin(angle) * 60 / (1 + wave / 3)
        image += rng.normal(size=image.shape) * 4
        place = folder / "train" / str(number % 10) / f"{number:05}.{ending}"
        place.parent.mkdir(parents=True, exist_ok=True)
        options = {"quality": 90} if ending == "jpg" else {}
        Image.fromarray(image.clip(0, 255).astype("uint8")).save(place, **options)


def with_torchvision(folder, workers, count):
    transform = transforms.Compose([transforms.Resize((NET, NET)), transforms.ToTensor()])
    images = torchvision.datasets.ImageFolder(str(folder / "train"), transform)
    loader = torch.utils.data.DataLoader(images, batch_size=32, num_workers=workers)
    begun = time.monotonic()
    seen = sum(len(labels) for _, labels in loader)
    assert seen == count
    return count / (time.monotonic() - begun)


def with_dtrain(dtrain, folder, threads, count):
    config = folder / "config.yaml"
    config.write_text(
        f"model: resnet18\nbatch: 32\ndata: {{name: image_folder, train: {folder}/train, size: [{NET}, {NET}], "
        f"mean: [0.5], deviation: [0.25], threads: {threads}}}\n"
    )
    run = subprocess.run([dtrain, "bench", "data", "--config", str(config)], capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(run.stderr)
    line = json.loads(run.stdout)
    assert line["samples"] == count
    # The time ends when the images are floats in a batch, the result of ToTensor.
    seconds = count / line["load_samples_per_second"] + count / line["fill_samples_per_second"]
    return count / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtrain", required=True)
    parser.add_argument("--images", type=int, default=600)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for ending in ("jpg", "png"):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            make_images(folder, ending, options.images)
            for threads in map(int, options.threads.split(",")):
                ours, theirs = 0, 0
                for _ in range(options.repeats):
                    theirs = max(theirs, with_torchvision(folder, threads, options.images))
                    ours = max(ours, with_dtrain(options.dtrain, folder, threads, options.images))
                print(json.dumps({"format": ending, "threads": threads, "dtrain_per_second": round(ours),
                                  "torchvision_per_second": round(theirs), "ratio": round(ours / theirs, 2)}),
                      flush=True)


if __name__ == "__main__":
    main()
