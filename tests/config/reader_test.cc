#include "framework/config/reader.h"
#include "framework/config/other_tools.h"
#include "framework/config/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "tests/data/temp_folder.h"
#include "tests/support/message_of.h"

namespace dtrain::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Sample {
  int64_t batch = 0;
  double momentum = 0;
  bool nesterov = false;
  std::string device;
  std::vector<int64_t> at;
  std::vector<double> slowdown;
  std::vector<std::string> inputs;
};

Sample Declare(Document& document) {
  Reader r = document.root();
  Sample s;
  s.batch = r.Int("batch", 64).Min(1).Help("global samples a step");
  s.device = r.String("device", "auto").OneOf({"auto", "cpu", "cuda"});
  s.inputs = r.Strings("inputs", {});
  s.slowdown = r.Numbers("slowdown", {1}).Above(0);
  Reader solver = r.Section("solver", "how weights follow gradients");
  std::string name = solver.String("name", "sgd");
  s.momentum = solver.Number("momentum", 0.9).Min(0).Below(1).Help("velocity kept");
  s.nesterov = solver.Bool("nesterov", false);
  s.at = solver.Section("schedule").Ints("at", {6, 8});
  return s;
}

Sample Read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  Document document = Document::FromText(text, "run.yaml", overrides);
  Sample sample = Declare(document);
  document.Finish();
  return sample;
}

std::string ErrorOf(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return WhatOf<ConfigError>([&] { Read(text, overrides); });
}

TEST(Reader, DefaultsWhereTheDocumentIsSilent) {
  for (const char* text : {"", "# nothing\n", "solver:\n", "---\n{}\n"}) {
    const Sample s = Read(text);
    EXPECT_EQ(s.batch, 64);
    EXPECT_EQ(s.momentum, 0.9);
    EXPECT_EQ(s.device, "auto");
    EXPECT_THAT(s.at, ElementsAre(6, 8));
    EXPECT_THAT(s.slowdown, ElementsAre(1.0));
    EXPECT_TRUE(s.inputs.empty());
  }
}

TEST(Reader, ReadsEveryType) {
  const Sample s = Read(
      "batch: 128\n"
      "device: cpu\n"
      "inputs: [fc3, 'label']\n"
      "slowdown: [1, 1.5]\n"
      "solver:\n"
      "  momentum: 5e-1\n"
      "  nesterov: true\n"
      "  schedule: {at: [1, 0x10]}\n");
  EXPECT_EQ(s.batch, 128);
  EXPECT_EQ(s.device, "cpu");
  EXPECT_EQ(s.momentum, 0.5);
  EXPECT_TRUE(s.nesterov);
  EXPECT_THAT(s.at, ElementsAre(1, 16));
  EXPECT_THAT(s.slowdown, ElementsAre(1.0, 1.5));
  EXPECT_THAT(s.inputs, ElementsAre("fc3", "label"));
}

// The notations of YAML 1.2's core schema.
TEST(Reader, ReadsEveryWayToWriteANumber) {
  const auto read = [](const std::string& text) {
    Document document = Document::FromText("x: " + text, "run.yaml");
    const double number = document.root().Number("x", 0);
    document.Finish();
    return number;
  };
  EXPECT_EQ(read("0o17"), 15);
  EXPECT_EQ(read("0x1aF"), 0x1AF);
  EXPECT_EQ(read("+3"), 3);
  EXPECT_EQ(read("-0"), 0);
  EXPECT_EQ(read("5."), 5);
  EXPECT_EQ(read("-.5"), -0.5);
  EXPECT_EQ(read("+1.25E+1"), 12.5);
  EXPECT_EQ(read("1e-2"), 0.01);
  for (const char* text : {"0o8", "0o", "0x", "0xg", "-0x1", ".", "e3", "1e", "1.2.3", "+-1"}) {
    EXPECT_THAT(WhatOf<ConfigError>([&] { read(text); }), HasSubstr("x must be a number")) << text;
  }
}

TEST(Reader, ABoundItselfIsAllowedByMinAndMaxAlone) {
  const auto errors = [](const std::string& x) {
    Document document =
        Document::FromText("a: " + x + "\nb: " + x + "\nc: " + x + "\nd: " + x + "\n", "run.yaml");
    Reader r = document.root();
    const double sum = r.Number("a", 0).Min(2) + r.Number("b", 0).Max(2) +
                       r.Number("c", 0).Above(2) + r.Number("d", 0).Below(2);
    EXPECT_GE(sum, 0);
    return document.errors();
  };
  EXPECT_THAT(errors("1"), ElementsAre("run.yaml:1:4: a must be >= 2, found 1",
                                       "run.yaml:3:4: c must be > 2, found 1"));
  EXPECT_THAT(errors("2"), ElementsAre("run.yaml:3:4: c must be > 2, found 2",
                                       "run.yaml:4:4: d must be < 2, found 2"));
  EXPECT_THAT(errors("3"), ElementsAre("run.yaml:2:4: b must be <= 2, found 3",
                                       "run.yaml:4:4: d must be < 2, found 3"));
}

TEST(Reader, ASingleStringIsAListOfOne) {
  EXPECT_THAT(Read("inputs: data").inputs, ElementsAre("data"));
  EXPECT_THAT(Read("solver: {schedule: {at: 4}}").at, ElementsAre(4));
}

TEST(Reader, AScalarSectionIsItsName) {
  Document document = Document::FromText("solver: adam\n", "run.yaml");
  const std::string name = document.root().Section("solver").String("name", "sgd");
  EXPECT_EQ(name, "adam");
}

TEST(Reader, UnknownKeysNameTheNearestAndTheAllowedOnes) {
  EXPECT_EQ(ErrorOf("batch: 8\nsolver:\n  momentun: 0.5\n"),
            "run.yaml:3:3: unknown key 'momentun' in solver 'sgd'\n"
            "    did you mean 'momentum'?  allowed: momentum, name, nesterov, schedule\n"
            "1 error; nothing was started");
  EXPECT_THAT(ErrorOf("solver: {schedule: {att: [1]}}\n"),
              HasSubstr("run.yaml:1:21: unknown key 'att' in solver.schedule\n"
                        "    did you mean 'at'?  allowed: at\n"));
}

// The other keys are no help where the one that is missing must be meant.
TEST(Reader, TheHintForAMisspeltRequiredKeyIsThatKeyAlone) {
  Document document = Document::FromText("data: {trian: a.csv}\n", "run.yaml");
  Reader data = document.root().Section("data");
  const std::string train = data.String("train", "").Required();
  const std::string test = data.String("test", "");
  EXPECT_EQ(WhatOf<ConfigError>([&] { document.Finish(); }),
            "run.yaml:1:8: unknown key 'trian' in data\n"
            "    did you mean 'train'?\n"
            "1 error; nothing was started");
}

TEST(Reader, AMisspeltRequiredKeyIsOneError) {
  const auto error_of = [](const std::string& text) -> std::string {
    Document document = Document::FromText(text, "run.yaml");
    Reader data = document.root().Section("data");
    const std::string name = data.String("name", "").Required();
    const int64_t limit = data.Int("limit", 0);
    try {
      document.Finish();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return name + std::to_string(limit);
  };
  EXPECT_EQ(error_of("data: {nam: mnist}\n"),
            "run.yaml:1:8: unknown key 'nam' in data\n"
            "    did you mean 'name'?\n"
            "1 error; nothing was started");
  EXPECT_EQ(error_of("data: {limt: 3}\n"),
            "run.yaml:1:7: the key data.name is missing\n"
            "1 error; nothing was started");
}

TEST(Reader, AMisspeltSectionDoesNotLackItsKeys) {
  Document document = Document::FromText("modeel: {name: lenet5}\n", "run.yaml");
  const std::string name = document.root().Section("model").String("name", "").Required();
  EXPECT_EQ(name, "");
  EXPECT_THROW(document.Finish(), ConfigError);
  EXPECT_THAT(document.errors(), ElementsAre("run.yaml:1:1: unknown key 'modeel'\n"
                                             "    did you mean 'model'?  allowed: model"));
}

TEST(Reader, AnErrorOfARepeatedBlockIsReportedOnce) {
  Document document = Document::FromText("layers: [{name: a, pad: x}, {name: b}]\n", "run.yaml");
  document.Rewrite([](Tree& root, Diagnostics&) {
    Tree& layers = root.entries[0].value;
    layers.items[1] = layers.items[0];
  });
  for (Reader& layer : document.root().List("layers")) {
    const int64_t pad = layer.Int("pad", 0);
    EXPECT_EQ(pad, 0);
  }
  EXPECT_EQ(document.errors().size(), 1u);
}

// A block that is used several times gives its layers another name each time.
TEST(Reader, AnErrorOfABlockIsReportedOnceForLayersOfAnyName) {
  Document document = Document::FromText("layers: [{name: a, pda: 1}, {name: b}]\n", "run.yaml");
  document.Rewrite([](Tree& root, Diagnostics&) {
    Tree& layers = root.entries[0].value;
    layers.items[1].entries.push_back(layers.items[0].entries[1]);
  });
  for (Reader& layer : document.root().List("layers")) {
    const std::string name = layer.String("name", "");
    const int64_t pad = layer.Int("pad", 0);
    EXPECT_NE(name, std::to_string(pad));
  }
  EXPECT_THAT(WhatOf<ConfigError>([&] { document.Finish(); }),
              AllOf(HasSubstr("unknown key 'pda' in layers[0] 'a'"), HasSubstr("\n1 error;")));
}

TEST(Reader, KeysOfOtherToolsAreSuggested) {
  EXPECT_EQ(ErrorOf("batch_size: 8\nnesterov: true\n"),
            "run.yaml:1:1: unknown key 'batch_size'\n"
            "    did you mean 'batch'?  allowed: batch, device, inputs, slowdown, solver\n"
            "run.yaml:2:1: unknown key 'nesterov'\n"
            "    did you mean 'solver.nesterov'?\n"
            "2 errors; nothing was started");
}

TEST(Reader, ValuesOfOtherToolsAreSuggested) {
  const std::vector<std::string> allowed = {
      "allreduce",     "batch_norm", "concat", "convolution", "gru",
      "inner_product", "pooling",    "ps_asp", "sgd",         "softmax_cross_entropy"};
  const auto meant = [&](const std::string& value) {
    const std::string hint = SuggestChoice(value, allowed);
    const size_t begin = hint.find('\'') + 1;
    return hint.starts_with("did you mean") ? hint.substr(begin, hint.find('\'', begin) - begin)
                                            : "";
  };
  for (const char* name : {"conv2d", "Conv2d", "nn.Conv2d", "torch.nn.Conv2d"}) {
    EXPECT_EQ(meant(name), "convolution");
  }
  for (const char* name : {"linear", "Dense", "fc", "nn.Linear"}) {
    EXPECT_EQ(meant(name), "inner_product");
  }
  for (const char* name : {"batchnorm2d", "BatchNorm", "BN"}) EXPECT_EQ(meant(name), "batch_norm");
  for (const char* name : {"maxpool", "MaxPool2d", "AvgPool2d"}) EXPECT_EQ(meant(name), "pooling");
  EXPECT_EQ(KeyOfOtherTools("labels", {"train", "train_labels"}), "train_labels");
  EXPECT_EQ(KeyOfOtherTools("sep", {"train", "separator"}), "separator");
  EXPECT_EQ(KeyOfOtherTools("path", {"train", "separator"}), "train");
  EXPECT_EQ(meant("CrossEntropyLoss"), "softmax_cross_entropy");
  EXPECT_EQ(meant("GRU"), "gru");
  EXPECT_EQ(meant("SGD"), "sgd");
  EXPECT_EQ(meant("momentum"), "sgd");
  EXPECT_EQ(meant("ddp"), "allreduce");
  EXPECT_EQ(meant("all-reduce"), "allreduce");
  EXPECT_EQ(meant("async"), "ps_asp");
  EXPECT_EQ(meant("local_sgd"), "");
  EXPECT_EQ(meant("poling"), "pooling");
  // The suggestion names only allowed choices.
  EXPECT_EQ(SuggestChoice("adam_w", {"adam", "adamw"}),
            "did you mean 'adamw'?  allowed: adam, adamw");
  EXPECT_EQ(SuggestChoice("linear", {"polynomial", "step"}),
            "did you mean 'polynomial'?  allowed: polynomial, step");
}

TEST(Reader, WhatIsAllowedIsReportedOnce) {
  EXPECT_EQ(ErrorOf("zebra: 1\nhippopotamus: 2\n"),
            "run.yaml:1:1: unknown key 'zebra'\n"
            "    allowed: batch, device, inputs, slowdown, solver\n"
            "run.yaml:2:1: unknown key 'hippopotamus'\n"
            "    allowed: the same as above\n"
            "2 errors; nothing was started");
}

TEST(Reader, AWrongNameLeavesTheKeysBesideItInPeace) {
  for (const bool by_caller : {false, true}) {
    Document document = Document::FromText("solver: {name: adamm, beta: 1}\n", "run.yaml");
    Reader solver = document.root().Section("solver");
    const std::string name =
        by_caller ? solver.String("name", "sgd") : solver.String("name", "sgd").OneOf({"sgd"});
    if (by_caller) solver.AddError("name", "unknown solver '" + name + "'");
    EXPECT_THROW(document.Finish(), ConfigError);
    EXPECT_EQ(document.errors().size(), 1u);
  }
}

TEST(Reader, AnUnknownSectionIsOneError) {
  EXPECT_EQ(ErrorOf("zebra:\n  a: 1\n  b: [x, {y: 2}]\n"),
            "run.yaml:1:1: unknown key 'zebra'\n"
            "    allowed: batch, device, inputs, slowdown, solver\n"
            "1 error; nothing was started");
}

TEST(Reader, AllErrorsComeAtOnceInTheOrderOfTheFile) {
  EXPECT_EQ(ErrorOf("solver:\n"
                    "  schedule: {at: [1, two]}\n"
                    "  nesterov: yes\n"
                    "  momentum: 1.5\n"
                    "  momentum: 0.5\n"
                    "device: gpu\n"
                    "batch: 010\n"
                    "<<: {a: 1}\n"
                    "slowdown: [1, 0, 1e400]\n"
                    "bach: 1\n"),
            "run.yaml:2:22: solver.schedule.at[1] must be an integer, found 'two'\n"
            "run.yaml:3:13: solver.nesterov must be true or false, found 'yes'\n"
            "run.yaml:4:13: solver.momentum must be >= 0 and < 1, found 1.5\n"
            "run.yaml:5:3: repeated key 'momentum'\n"
            "    first given at run.yaml:4:3\n"
            "run.yaml:6:9: device has no choice 'gpu'\n"
            "    did you mean 'cuda'?  allowed: auto, cpu, cuda\n"
            "run.yaml:7:8: batch must not begin with 0, found '010'\n"
            "    write 10\n"
            "run.yaml:8:1: merge keys (<<) are not part of YAML 1.2\n"
            "    write the keys out\n"
            "run.yaml:9:18: slowdown[2] is outside the range of 64-bit numbers, found '1e400'\n"
            "run.yaml:10:1: unknown key 'bach'\n"
            "    did you mean 'batch'?  allowed: batch, device, inputs, slowdown, solver\n"
            "9 errors; nothing was started");
}

TEST(Reader, TheDefaultStandsInForAWrongValue) {
  Document document = Document::FromText("batch: -3\n", "run.yaml");
  EXPECT_EQ(Declare(document).batch, 64);
  EXPECT_THAT(document.errors(), ElementsAre("run.yaml:1:8: batch must be >= 1, found -3"));
  // One wrong element is enough, wherever it stands.
  for (const char* text : {"slowdown: [0, 2]\n", "slowdown: [2, 0]\n", "slowdown: [x, 2]\n"}) {
    Document list = Document::FromText(text, "run.yaml");
    EXPECT_THAT(Declare(list).slowdown, ElementsAre(1.0)) << text;
    EXPECT_EQ(list.errors().size(), 1u) << text;
  }
}

struct Mistyped {
  std::string text;
  std::string message;
};

class MistypedValue : public ::testing::TestWithParam<Mistyped> {};

TEST_P(MistypedValue, IsRefused) {
  EXPECT_THAT(ErrorOf(GetParam().text), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, MistypedValue,
    ::testing::Values(
        Mistyped{"batch: 6.5", "1:8: batch must be an integer, found '6.5'\n1 error"},
        Mistyped{"batch: 64.0", "batch must be an integer, found '64.0'\n    write 64\n"},
        Mistyped{"batch: 64.", "batch must be an integer, found '64.'\n    write 64\n"},
        Mistyped{"batch: 1e3", "batch must be an integer, found '1e3'\n    write 1000\n"},
        Mistyped{"batch: '64'", "batch must be an integer, found '64'"},
        Mistyped{"batch: ten", "batch must be an integer, found 'ten'"},
        Mistyped{"batch: 0b11", "batch must be an integer, found '0b11'"},
        Mistyped{"batch: 6_4", "batch must be an integer, found '6_4'"},
        Mistyped{"batch: true", "batch must be an integer, found 'true'"},
        Mistyped{"batch:", "batch must be an integer, found nothing"},
        Mistyped{"batch: ~", "batch must be an integer, found nothing"},
        Mistyped{"batch: [1]", "batch must be an integer, found a list"},
        Mistyped{"batch: {a: 1}", "batch must be an integer, found a section"},
        Mistyped{"batch: 9223372036854775808", "batch does not fit into 64 bits"},
        Mistyped{"batch: -00", "batch must not begin with 0, found '-00'\n    write 0\n"},
        Mistyped{"solver: {momentum: .nan}", "momentum must be a finite number, found '.nan'"},
        Mistyped{"solver: {momentum: -.inf}", "momentum must be a finite number, found '-.inf'"},
        Mistyped{"solver: {momentum: nan}", "solver.momentum must be a number, found 'nan'"},
        Mistyped{"solver: {momentum: 1e-400}", "momentum is outside the range of 64-bit numbers"},
        Mistyped{"solver: {momentum: 00.5}", "momentum must not begin with 0, found '00.5'"},
        Mistyped{"solver: {momentum: 0.5e}", "solver.momentum must be a number, found '0.5e'"},
        Mistyped{"solver: {nesterov: no}", "solver.nesterov must be true or false, found 'no'"},
        Mistyped{"solver: {nesterov: 0}", "solver.nesterov must be true or false, found '0'"},
        Mistyped{"solver: {nesterov: 'true'}", "must be true or false, found 'true'"},
        Mistyped{"device: 5", "device must be a string, found '5'\n    put it in quotes: \"5\""},
        Mistyped{"device: false", "device must be a string, found 'false'"},
        Mistyped{"device: null", "device must be a string, found nothing"},
        Mistyped{"inputs: {a: 1}", "inputs must be a list of strings, found a section"},
        Mistyped{"inputs: [a, 1]", "1:13: inputs[1] must be a string, found '1'"},
        Mistyped{"solver: {schedule: {at: x}}", "schedule.at must be an integer, found 'x'"},
        Mistyped{"solver: {schedule: {at: 1.5}}", "schedule.at must be an integer, found '1.5'"},
        Mistyped{"slowdown: 2", "slowdown must be a list of numbers, found '2'\n    write [2]"},
        Mistyped{"slowdown: [1, x]", "1:15: slowdown[1] must be a number, found 'x'"},
        Mistyped{"slowdown: [1, -1]", "1:15: slowdown[1] must be > 0, found -1"},
        Mistyped{"solver: [a]", "1:9: solver must be a section of keys, found a list"},
        Mistyped{"solver: 5", "1:9: solver.name must be a string, found '5'"},
        Mistyped{"? [a]\n: 1", "1:3: a key must be a word"},
        Mistyped{"a: &x 1", "1:4: anchors and aliases are not read\n    write the value out"},
        Mistyped{"batch: *x", "not valid YAML"},
        Mistyped{"batch: 1\ndevice: @x", "run.yaml:2:9: not valid YAML"},
        Mistyped{"batch: !!int 3", "1:8: the tag tag:yaml.org,2002:int is not read"},
        Mistyped{"- 1\n- 2", "run.yaml:1:1: expected keys and values, as in 'batch: 64'\n1 error"},
        Mistyped{"just words", "run.yaml:1:1: expected keys and values"},
        Mistyped{"batch: 1\n---\nbatch: 2\n", "3:1: a second YAML document begins here"}));

TEST(Reader, AnAliasIsReportedOnceAndReadsAsTheDefault) {
  Document document = Document::FromText("solver: {momentum: &m 0.5}\nbatch: *m\n", "run.yaml");
  EXPECT_EQ(Declare(document).batch, 64);
  EXPECT_EQ(document.errors().size(), 2u);
}

TEST(Reader, ASyntaxErrorIsReportedAlone) {
  const std::string error = ErrorOf("batch: 0\nsolver: {momentum: 0.5\ndevice: gpu\n");
  EXPECT_THAT(error, ::testing::MatchesRegex("run.yaml:[0-9]+:[0-9]+: not valid YAML: .*\n"
                                             "1 error; nothing was started"));
}

TEST(Reader, ATabInAnIndentationIsNamedByItsLine) {
  for (const char* text :
       {"batch: 8\nsolver:\n\tmomentum: 0.5\n", "solver:\n  nesterov: true\n\tmomentum: 0.5\n",
        "batch: 8\ninputs:\n\t- a\n", "solver:\n  nesterov: true\n  \tmomentum: 0.5\n"}) {
    EXPECT_EQ(ErrorOf(text),
              "run.yaml:3:1: not valid YAML: this line is indented with a tab\n"
              "    indent it with spaces\n"
              "1 error; nothing was started")
        << text;
  }
  // Elsewhere a tab is a space.
  EXPECT_EQ(Read("batch:\t8\nslowdown: [1,\n\t2]\n").batch, 8);
  EXPECT_THAT(ErrorOf("solver: {momentum: 0.5,\n\tnesterov: true\n"),
              ::testing::Not(::testing::HasSubstr("tab")));
}

TEST(Reader, AMissingKeyIsPlacedAtItsMapping) {
  const auto error_of = [](const std::string& text) -> std::string {
    Document document = Document::FromText(text, "model.yaml");
    const std::string name =
        document.root().Section("model").String("name", "").Required().Help("which net to train");
    try {
      document.Finish();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of("\nmodel: {}\n"),
              HasSubstr("model.yaml:2:8: the key model.name is missing\n    which net to train\n"));
  EXPECT_THAT(error_of("# none\n"), HasSubstr("model.yaml:1:1: the key model.name is missing"));
  EXPECT_EQ(error_of("model: lenet5"), "");
  EXPECT_THAT(error_of("model: [a]"), ::testing::Not(HasSubstr("missing")));
}

TEST(Reader, ErrorsOfTheCallerStandAtTheirKey) {
  Document document = Document::FromText("cluster:\n  workers: 8\nbatch: 4\n", "run.yaml");
  Reader r = document.root();
  const int64_t batch = r.Int("batch", 64);
  Reader cluster = r.Section("cluster");
  const int64_t workers = cluster.Int("workers", 1);
  EXPECT_EQ(batch, 4);
  EXPECT_EQ(workers, 8);
  EXPECT_EQ(cluster.Where("workers"), "run.yaml:2:3");
  EXPECT_EQ(cluster.Where(), "run.yaml:2:3");
  EXPECT_EQ(r.Where("seed"), "run.yaml:1:1");
  EXPECT_EQ(r.Line("batch"), "line 3");
  EXPECT_EQ(r.Line("cluster"), "line 1");
  EXPECT_EQ(r.Line("seed"), "by default");
  EXPECT_EQ(cluster.path(), "cluster");
  EXPECT_TRUE(r.Has("batch"));
  EXPECT_FALSE(r.Has("seed"));
  r.AddError("batch", "too few for " + cluster.Line("workers"), "take more");
  r.AddError("batch", "too few for " + cluster.Line("workers"), "take more");
  EXPECT_THAT(document.errors(), ElementsAre("run.yaml:3:1: too few for line 2\n    take more"));
}

TEST(Reader, ListsOfSections) {
  Document document = Document::FromText(
      "layers:\n"
      "  - {name: conv1, outputs: 6}\n"
      "  - relu\n"
      "  - {name: fc, outputs: 0, output: 3}\n",
      "model.yaml");
  std::vector<std::string> names;
  for (Reader& layer : document.root().List("layers")) {
    names.push_back(layer.String("name", ""));
    const int64_t outputs = layer.Int("outputs", 1).Min(1);
    EXPECT_GE(outputs, 1);
  }
  EXPECT_THAT(names, ElementsAre("conv1", "relu", "fc"));
  try {
    document.Finish();
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "model.yaml:4:25: layers[2].outputs must be >= 1, found 0\n"
                 "model.yaml:4:28: unknown key 'output' in layers[2] 'fc'\n"
                 "    did you mean 'outputs'?  allowed: name, outputs\n"
                 "2 errors; nothing was started");
  }
}

TEST(Reader, AListOfSectionsMustBeAList) {
  Document document = Document::FromText("layers: {name: conv1}\n", "model.yaml");
  EXPECT_TRUE(document.root().List("layers").empty());
  EXPECT_THAT(document.errors(), ElementsAre("model.yaml:1:9: layers must be a list of sections"));
}

TEST(Reader, AKeyMayBeReadTwice) {
  Document document = Document::FromText("solver: {name: 5, lr: x}\n", "run.yaml");
  for (int i = 0; i < 2; ++i) {
    Reader solver = document.root().Section("solver");
    const std::string name = solver.String("name", "sgd");
    const double rate = solver.Number("lr", 0.1);
    EXPECT_EQ(name, "sgd");
    EXPECT_EQ(rate, 0.1);
  }
  EXPECT_EQ(document.errors().size(), 2u);
  EXPECT_EQ(document.EffectiveYaml(), "solver:\n  name: sgd\n  lr: 0.1\n");
}

TEST(Document, AnUnreadableFileIsAConfigError) {
  const auto error_of = [](const std::string& path) -> std::string {
    try {
      Document::FromFile(path);
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      EXPECT_EQ(error.hint(), "give the path of a YAML file");
      return error.what();
    }
    return "";
  };
  const TempFolder folder;
  const std::string missing = folder / "missing.yaml", own = folder.path();
  EXPECT_EQ(error_of(missing), "cannot read " + missing + ": No such file or directory");
  EXPECT_EQ(error_of(own), "cannot read " + own + ": it is a folder");
}

}  // namespace
}  // namespace dtrain::config
