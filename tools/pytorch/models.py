"""The models of configs/models in PyTorch, written for this comparison from the papers.

Every module has the name of the layer in the model file, also those without parameters, so that both
programs can be compared layer by layer.  state_dict() has the names and axes of

    LeNet5      conv1, conv2, fc1, fc2, fc3
    ResNet18    github.com/kuangliu/pytorch-cifar, models/resnet.py
    VGG19BN     github.com/kuangliu/pytorch-cifar, models/vgg.py ('VGG19')
    VGG19GSSP   torchvision.models.vgg19_bn, with its head
    Seq2Seq     github.com/bentrevett/pytorch-seq2seq, tutorial 3
"""

import torch
from torch import nn


class LeNet5(nn.Module):
    sample, classes = (1, 28, 28), 10

    def __init__(self):
        super().__init__()
        self.conv1, self.relu1, self.pool1 = nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)
        self.conv2, self.relu2, self.pool2 = nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)
        self.fc1, self.relu3 = nn.Linear(400, 120), nn.ReLU()
        self.fc2, self.relu4 = nn.Linear(120, 84), nn.ReLU()
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = self.pool1(self.relu1(self.conv1(x)))
        x = self.pool2(self.relu2(self.conv2(x)))
        return self.fc3(self.relu4(self.fc2(self.relu3(self.fc1(x.flatten(1))))))


class Add(nn.Module):
    def forward(self, a, b):
        return a + b


class BasicBlock(nn.Module):
    def __init__(self, planes_in, planes, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(planes_in, planes, 3, stride, 1, bias=False)
        self.bn1, self.relu1 = nn.BatchNorm2d(planes), nn.ReLU()
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or planes_in != planes:
            self.shortcut = nn.Sequential(nn.Conv2d(planes_in, planes, 1, stride, bias=False),
                                          nn.BatchNorm2d(planes))
        self.add, self.relu2 = Add(), nn.ReLU()

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
        return self.relu2(self.add(y, self.shortcut(x)))


class ResNet18(nn.Module):
    sample, classes = (3, 32, 32), 10

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.bn1, self.relu1 = nn.BatchNorm2d(64), nn.ReLU()
        self.layer1 = nn.Sequential(BasicBlock(64, 64, 1), BasicBlock(64, 64, 1))
        self.layer2 = nn.Sequential(BasicBlock(64, 128, 2), BasicBlock(128, 128, 1))
        self.layer3 = nn.Sequential(BasicBlock(128, 256, 2), BasicBlock(256, 256, 1))
        self.layer4 = nn.Sequential(BasicBlock(256, 512, 2), BasicBlock(512, 512, 1))
        self.pool = nn.AvgPool2d(4)
        self.linear = nn.Linear(512, 10)

    def forward(self, x):
        x = self.relu1(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.linear(self.pool(x).flatten(1))


VGG19 = [64, 64, "M", 128, 128, "M"] + [256] * 4 + ["M"] + [512] * 4 + ["M"] + [512] * 4 + ["M"]


def vgg_features():
    layers, planes_in = [], 3
    for planes in VGG19:
        if planes == "M":
            layers.append(nn.MaxPool2d(2))
            continue
        layers += [nn.Conv2d(planes_in, planes, 3, padding=1), nn.BatchNorm2d(planes), nn.ReLU()]
        planes_in = planes
    return nn.Sequential(*layers)


class VGG19BN(nn.Module):
    sample, classes = (3, 32, 32), 10

    def __init__(self):
        super().__init__()
        self.features = vgg_features()
        self.classifier = nn.Linear(512, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class VGG19GSSP(VGG19BN):
    def __init__(self, dropout=0.5):
        super().__init__()
        self.classifier = nn.Sequential(
            nn.Linear(512, 4096), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(dropout), nn.Linear(4096, 10))


PAD = 1


class Encoder(nn.Module):
    def __init__(self, vocabulary, embedding, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.rnn = nn.GRU(embedding, hidden, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(2 * hidden, hidden)

    def forward(self, source):
        lengths = (source != PAD).sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(source), lengths, batch_first=True,
                                                   enforce_sorted=False)
        outputs, last = self.rnn(packed)
        outputs, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True,
                                                      total_length=source.shape[1])
        return outputs, torch.tanh(self.fc(torch.cat((last[0], last[1]), 1)))


class Attention(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.attn = nn.Linear(3 * hidden, hidden)
        self.v = nn.Linear(hidden, 1, bias=False)

    def forward(self, state, outputs, mask):
        states = state.unsqueeze(1).expand(-1, outputs.shape[1], -1)
        energy = torch.tanh(self.attn(torch.cat((states, outputs), 2)))
        scores = self.v(energy).squeeze(2).masked_fill(mask, -torch.inf)
        return torch.softmax(scores, 1)


class Decoder(nn.Module):
    def __init__(self, vocabulary, embedding, hidden):
        super().__init__()
        self.attention = Attention(hidden)
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.rnn = nn.GRU(embedding + 2 * hidden, hidden, batch_first=True)
        self.fc_out = nn.Linear(3 * hidden + embedding, vocabulary)

    def forward(self, tokens, state, outputs, mask):
        embedded = self.embedding(tokens)
        weights = self.attention(state, outputs, mask)
        context = (weights.unsqueeze(1) @ outputs).squeeze(1)
        _, state = self.rnn(torch.cat((embedded, context), 1).unsqueeze(1), state.unsqueeze(0))
        state = state.squeeze(0)
        return self.fc_out(torch.cat((state, context, embedded), 1)), state


class Seq2Seq(nn.Module):
    """The third model of github.com/bentrevett/pytorch-seq2seq, batch first, with pads masked (as in its
    fourth).  In training it is fed the target (teacher forcing 1), in evaluation its own words."""

    vocabularies, places = (7853, 5893), 17

    def __init__(self, source_vocabulary, target_vocabulary, embedding=256, hidden=512):
        super().__init__()
        self.encoder = Encoder(source_vocabulary, embedding, hidden)
        self.decoder = Decoder(target_vocabulary, embedding, hidden)

    def forward(self, source, target):
        outputs, state = self.encoder(source)
        mask, tokens, logits = source == PAD, target[:, 0], []
        for t in range(target.shape[1]):
            if t > 0:
                tokens = target[:, t] if self.training else logits[-1].argmax(1)
            step, state = self.decoder(tokens, state, outputs, mask)
            logits.append(step)
        return torch.stack(logits, 1)


# Models by the name of the model file.  The programs draw different random masks, so dropout is off.
MODELS = {
    "lenet5": LeNet5,
    "resnet18": ResNet18,
    "vgg19_bn": VGG19BN,
    "vgg19_gssp": lambda: VGG19GSSP(dropout=0.0),
    "seq2seq_attention": lambda: Seq2Seq(*Seq2Seq.vocabularies),
}
