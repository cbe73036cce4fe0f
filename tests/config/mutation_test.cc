// For any text the reader returns values or throws ConfigError.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/config/reader.h"
#include "framework/core/error.h"
#include "framework/core/random.h"
#include "tests/support/message_of.h"

namespace dtrain::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

void ReadMutated(const std::string& text, const std::vector<std::string>& overrides) {
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
      ReadMutated(text, {"solver.at=" + text.substr(random.Below(100, text.size()), 9)});
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
    EXPECT_THROW(ReadMutated(text, {}), ConfigError) << open;
  }
}

// The reader refuses such texts while it parses them, before they cost seconds.
TEST(Mutation, WhatNobodyWroteIsRefused) {
  const auto error_of = [](const std::string& text) {
    return WhatOf<ConfigError>([&] { ReadMutated(text, {}); });
  };
  std::string keys;
  for (int i = 0; i < 20'000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  EXPECT_THAT(error_of(keys), HasSubstr("run.yaml:10001:1: there are more than 10000 keys"));
  const auto nested = [](size_t levels) {
    return "a: " + std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_THAT(error_of(nested(63)), Not(HasSubstr("nested")));
  EXPECT_THAT(error_of(nested(64)), HasSubstr("lists and sections are nested more than 64 deep"));
}

TEST(Mutation, ThirtyErrorsAreReportedAndTheOthersCounted) {
  std::string keys;
  for (int i = 0; i < 100; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  const std::string error = WhatOf<ConfigError>([&] { ReadMutated(keys, {}); });
  EXPECT_THAT(error, AllOf(HasSubstr("run.yaml:30:1: unknown key 'k29'"), Not(HasSubstr("'k30'")),
                           HasSubstr("... and 70 more\n100 errors; nothing was started")));
}

TEST(Mutation, BytesThatAreNoTextAreErrors) {
  for (const std::string text :
       {"a: f\xff\n", "a: \"f\\0g\"\n", "\xc3: 1\n", "a: [\xed\xa0\x80]\n"}) {
    EXPECT_THAT(WhatOf<ConfigError>([&] { ReadMutated(text, {}); }), HasSubstr("this is no text"))
        << text;
  }
}

}  // namespace
}  // namespace dtrain::config
