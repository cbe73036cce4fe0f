#!/usr/bin/env python3
"""Makes tests/golden/seq2seq_layers.json: PyTorch's values of small recurrent layers and the decoder.

    python3 tools/pytorch/seq2seq_layers.py > tests/golden/seq2seq_layers.json   (needs torch and numpy)

GRU and LSTM are torch.nn's, with inputs from pack_padded_sequence.  The decoder is that of the third
tutorial model of github.com/bentrevett/pytorch-seq2seq, written here from its formulas, with padding of
the source masked as in the fourth.

Numbers that can be computed are not stored: with unit(stream, i) of lenet_sgd.py,

    input k, element i                   unit(500 + k, i)
    tokens of input k, element i         2 + bits(520 + k, i) >> 33 mod (classes - 2), 1 behind the end
    parameter p (in dtrain's order)      unit(540 + p, i) / 2
    gradient by the output               unit(560, i)
    projection of a gradient             sum of gradient[i] * unit(580, i)

All of it is computed in double.
"""

import json
import sys

import numpy as np
import torch
from torch import nn

from counted import numbered_bits, numbered_unit


def unit(stream, shape):
    return torch.from_numpy(numbered_unit(stream, shape))


def tokens(k, classes, lengths, steps):
    drawn = (numbered_bits(520 + k, len(lengths) * steps) >> np.uint64(33)) % np.uint64(classes - 2)
    grid = torch.from_numpy((drawn.astype(np.int64) + 2).reshape(len(lengths), steps))
    for row, length in enumerate(lengths):
        grid[row, length:] = 1
    return grid


def projection(gradient):
    return (gradient * unit(580, tuple(gradient.shape))).sum().item()


def fill(parameters):
    with torch.no_grad():
        for p, parameter in enumerate(parameters):
            parameter.copy_(unit(540 + p, tuple(parameter.shape)) / 2)


def report(case, inputs, parameters, output):
    output.backward(unit(560, tuple(output.shape)))
    case["output"] = output.flatten().tolist()
    case["input_gradients"] = [projection(x.grad) for x in inputs]
    case["param_gradients"] = [projection(p.grad) for p in parameters]
    return case


def recurrent(kind, module, keys, shape, lengths):
    module = module.double()
    parameters = list(module.parameters())
    fill(parameters)
    x = unit(500, shape).requires_grad_()
    packed = nn.utils.rnn.pack_padded_sequence(
        x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    y, _ = nn.utils.rnn.pad_packed_sequence(module(packed)[0], batch_first=True,
                                            total_length=shape[1])
    case = {"type": kind, "keys": keys, "inputs": [list(shape), list(shape[:2])],
            "classes": [0, 9], "lengths": lengths}
    return report(case, [x], parameters, y)


class Decoder(nn.Module):
    """Parameters in the order of dtrain's attention_decoder."""

    def __init__(self, hidden, embedding, context, attention, vocabulary):
        super().__init__()
        self.attn = nn.Linear(hidden + context, attention)
        self.v = nn.Linear(attention, 1, bias=False)
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.rnn = nn.GRU(embedding + context, hidden)
        self.fc_out = nn.Linear(hidden + context + embedding, vocabulary)

    def step(self, token, state, encoded, mask):
        e = self.embedding(token)
        repeated = state.unsqueeze(1).expand(-1, encoded.shape[1], -1)
        energy = torch.tanh(self.attn(torch.cat((repeated, encoded), dim=2)))
        scores = self.v(energy).squeeze(2).masked_fill(~mask, -1e10)
        context = torch.bmm(scores.softmax(dim=1).unsqueeze(1), encoded).squeeze(1)
        _, state = self.rnn(torch.cat((e, context), dim=1).unsqueeze(0), state.unsqueeze(0))
        state = state.squeeze(0)
        return self.fc_out(torch.cat((state, context, e), dim=1)), state

    def forward(self, encoded, state, source, target, taught):
        logits = []
        for t in range(target.shape[1]):
            own = t > 0 and not taught
            token = logits[-1].argmax(1) if own else target[:, t]
            y, state = self.step(token, state, encoded, source != 1)
            logits.append(y)
        return torch.stack(logits, dim=1)


def decoder(taught):
    n, s, t, c, h, e, a, v = 3, 4, 5, 6, 4, 3, 5, 11
    lengths = [4, 2, 3]
    module = Decoder(h, e, c, a, v).double()
    parameters = list(module.parameters())
    fill(parameters)
    encoded, state = unit(500, (n, s, c)).requires_grad_(), unit(501, (n, h)).requires_grad_()
    source, target = tokens(2, 9, lengths, s), tokens(3, v, [t] * n, t)
    y = module(encoded, state, source, target, taught)
    keys = f"{{hidden: {h}, embedding: {e}, attention: {a}, teacher_forcing: {int(taught)}}}"
    case = {"type": "attention_decoder", "keys": keys,
            "inputs": [[n, s, c], [n, h], [n, s], [n, t]], "classes": [0, 0, 9, v],
            "lengths": lengths}
    return report(case, [encoded, state], parameters, y)


def main():
    torch.set_num_threads(1)
    shape, lengths = (3, 5, 3), [5, 2, 4]
    cases = [
        recurrent("gru", nn.GRU(3, 4, batch_first=True), "{hidden: 4}", shape, lengths),
        recurrent("gru", nn.GRU(3, 4, 2, batch_first=True, bidirectional=True),
                  "{hidden: 4, layers: 2, bidirectional: true}", shape, lengths),
        recurrent("lstm", nn.LSTM(3, 4, batch_first=True), "{hidden: 4}", shape, lengths),
        recurrent("lstm", nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True),
                  "{hidden: 4, layers: 2, bidirectional: true}", shape, lengths),
        decoder(taught=True),
        decoder(taught=False),
    ]
    json.dump({"made_by": "tools/pytorch/seq2seq_layers.py, torch " + torch.__version__.split("+")[0],
               "cases": cases}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
