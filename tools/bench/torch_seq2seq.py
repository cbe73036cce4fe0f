#!/usr/bin/env python3
"""Training steps per second of PyTorch on the attention model of Multi30k: dtrain's peer.

    torch_seq2seq.py --threads 1 [--batch 128] [--length 17] [--steps 5]

A step is forward with teacher forcing 0.5, cross-entropy, backward, clipping to norm 1 and Adam, in
fp32, on one fixed batch of full sentences: the model and the loop of the third tutorial of
github.com/bentrevett/pytorch-seq2seq, decoder word by word.  Prints one JSON line; wall and CPU seconds
of the fastest step (the CPU's are of use where something else runs on the machine).  The same of
dtrain:

    dtrain bench step --model seq2seq_attention --data multi30k --batch 128 --threads 1
"""

import argparse
import json
import random
import time

import torch
from torch import nn

SOURCE_WORDS, TARGET_WORDS, EMBEDDING, HIDDEN = 7853, 5893, 256, 512


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(SOURCE_WORDS, EMBEDDING)
        self.rnn = nn.GRU(EMBEDDING, HIDDEN, bidirectional=True)
        self.fc = nn.Linear(2 * HIDDEN, HIDDEN)
        self.dropout = nn.Dropout(0.5)

    def forward(self, source):
        outputs, last = self.rnn(self.dropout(self.embedding(source)))
        return outputs, torch.tanh(self.fc(torch.cat((last[-2], last[-1]), dim=1)))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.Linear(3 * HIDDEN, HIDDEN)
        self.v = nn.Linear(HIDDEN, 1, bias=False)
        self.embedding = nn.Embedding(TARGET_WORDS, EMBEDDING)
        self.rnn = nn.GRU(2 * HIDDEN + EMBEDDING, HIDDEN)
        self.fc_out = nn.Linear(3 * HIDDEN + EMBEDDING, TARGET_WORDS)
        self.dropout = nn.Dropout(0.5)

    def forward(self, token, state, encoded):
        e = self.dropout(self.embedding(token))
        by_sentence = encoded.permute(1, 0, 2)
        repeated = state.unsqueeze(1).repeat(1, encoded.shape[0], 1)
        energy = torch.tanh(self.attn(torch.cat((repeated, by_sentence), dim=2)))
        weights = torch.softmax(self.v(energy).squeeze(2), dim=1).unsqueeze(1)
        context = torch.bmm(weights, by_sentence).squeeze(1)
        _, state = self.rnn(torch.cat((e, context), dim=1).unsqueeze(0), state.unsqueeze(0))
        state = state.squeeze(0)
        return self.fc_out(torch.cat((state, context, e), dim=1)), state


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--length", type=int, default=17, help="words read and steps of the decoder")
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    encoder, decoder = Encoder(), Decoder()
    parameters = [*encoder.parameters(), *decoder.parameters()]
    for parameter in parameters:
        nn.init.normal_(parameter, 0, 0.01)
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    loss_of = nn.CrossEntropyLoss(ignore_index=1)
    source = torch.randint(4, SOURCE_WORDS, (options.length, options.batch))
    target = torch.randint(4, TARGET_WORDS, (options.length + 1, options.batch))

    def step():
        optimizer.zero_grad()
        encoded, state = encoder(source)
        token, outputs = target[0], []
        for t in range(1, len(target)):
            logits, state = decoder(token, state, encoded)
            outputs.append(logits)
            token = target[t] if random.random() < 0.5 else logits.argmax(1)
        loss = loss_of(torch.cat(outputs), target[1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1)
        optimizer.step()

    step()
    wall, cpu = [], []
    for _ in range(options.steps):
        start = time.perf_counter(), time.process_time()
        step()
        wall.append(time.perf_counter() - start[0])
        cpu.append(time.process_time() - start[1])
    print(json.dumps({
        "framework": "pytorch " + torch.__version__.split("+")[0], "model": "seq2seq_attention",
        "threads": options.threads, "batch": options.batch, "length": options.length,
        "step_seconds": min(wall), "cpu_seconds": min(cpu), "steps": options.steps}))


if __name__ == "__main__":
    main()
