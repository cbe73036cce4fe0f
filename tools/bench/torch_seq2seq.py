"""The attention model of Multi30k as PyTorch users write it; torch_step.py measures it against dtrain.

Model and loop are those of the third tutorial of github.com/bentrevett/pytorch-seq2seq with its published
vocabularies: words on the first axis, no packing, and a decoder that runs word by word with teacher
forcing 0.5.  Sentences have the length with which dtrain times its models.
"""

import random

import torch
from torch import nn

SOURCE_WORDS, TARGET_WORDS, EMBEDDING, HIDDEN, LENGTH = 7853, 5893, 256, 512, 17


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


class Seq2Seq(nn.Module):
    """Maps (source [S, N], target [T + 1, N]) to logits [T * N, words]."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Encoder(), Decoder()
        for parameter in self.parameters():
            nn.init.normal_(parameter, 0, 0.01)

    def forward(self, pair):
        source, target = pair
        encoded, state = self.encoder(source)
        token, outputs = target[0], []
        for t in range(1, len(target)):
            logits, state = self.decoder(token, state, encoded)
            outputs.append(logits)
            token = target[t] if random.random() < 0.5 else logits.argmax(1)
        return torch.cat(outputs)


def make_batch(sentences):
    """Returns ((source, target), labels): random words without padding."""
    source = torch.randint(4, SOURCE_WORDS, (LENGTH, sentences))
    target = torch.randint(4, TARGET_WORDS, (LENGTH + 1, sentences))
    return (source, target), target[1:].flatten()
