// Whatever the text, the reader answers with values or with a ConfigError.
#include <gtest/gtest.h>

#include "framework/config/reader.h"
#include "framework/core/error.h"
#include "framework/core/random.h"

namespace dtrain::config {
namespace {

constexpr char kText[] =
    "model: {name: lenet5}  # comment\n"
    "batch: 64\n"
    "solver:\n"
    "  name: sgd\n"
    "  at: [1, 2.5, 'x']\n"
    "  lr: &a 0.1\n"
    "layers:\n"
    "  - {name: \"a\\n\", input: [b, c]}\n"
    "  - |\n"
    "    text\n";

// Deletes, repeats or replaces single bytes.
std::string Mutate(std::string text, const Random& random) {
  static constexpr std::string_view kBytes = "{}[]:,-#&*!|>'\"%@`\n\t ~<?0aé\xff\0";
  const uint64_t changes = 1 + random.Below(0, 8);
  for (uint64_t i = 1; i <= changes; ++i) {
    const uint64_t at = random.Below(4 * i, text.size());
    switch (random.Below(4 * i + 1, 3)) {
      case 0:
        text.erase(at, 1);
        break;
      case 1:
        text.insert(at, 1, text[at]);
        break;
      default:
        text[at] = kBytes[random.Below(4 * i + 2, kBytes.size())];
    }
  }
  return text;
}

void Read(const std::string& text, const std::vector<std::string>& overrides) {
  Document document = Document::FromText(text, "run.yaml", overrides);
  Reader r = document.root();
  const std::string model = r.Section("model").String("name", "");
  const int64_t batch = r.Int("batch", 1).Min(1);
  Reader solver = r.Section("solver");
  const double rate = solver.Number("lr", 1);
  const std::vector<double> at = solver.Numbers("at", {});
  for (Reader& layer : r.List("layers")) {
    const std::vector<std::string> input = layer.Strings("input", {});
    EXPECT_LT(input.size(), 100u);
  }
  EXPECT_TRUE(model.size() + at.size() < 1000 && batch > 0 && rate == rate);
  document.Finish();
  EXPECT_NO_THROW(Document::FromText(document.EffectiveYaml(), "again.yaml"));
}

TEST(Mutation, NoTextBreaksTheReader) {
  int refused = 0;
  constexpr int kTexts = 5000;
  for (int i = 0; i < kTexts; ++i) {
    const Random random(i, Purpose::kSelfTest);
    const std::string text = Mutate(kText, random);
    try {
      Read(text, {"solver.at=" + text.substr(random.Below(100, text.size()), 9)});
    } catch (const ConfigError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, kTexts / 2);
}

TEST(Mutation, DeepNestingIsRefused) {
  for (const char* open : {"[", "{a: ", "- "}) {
    std::string text;
    for (int i = 0; i < 20000; ++i) text += open;
    EXPECT_THROW(Read(text, {}), ConfigError) << open;
  }
}

}  // namespace
}  // namespace dtrain::config
