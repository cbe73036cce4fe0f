// The program on the user's own tables: columns are matched by name, and files of another kind are detected.
#include <gmock/gmock.h>

#include <iterator>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/system/system_fixture.h"

namespace dtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TablesSystemTest : public SystemTest {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  static int64_t WordsIn(const std::string& text) {
    std::istringstream in(text);
    return std::distance(std::istream_iterator<std::string>(in), {});
  }
  // Two classes that depend on the first column; the second is as large and irrelevant.
  static std::string Rows(const std::string& header, bool swapped) {
    std::string text = header;
    for (int i = 0; i < 60; ++i) {
      const std::string a = std::to_string(i % 2 * 4 + i % 3), b = std::to_string(i % 5);
      text += (swapped ? b + "," + a : a + "," + b) + (i % 2 == 0 ? ",low\n" : ",high\n");
    }
    return text;
  }
  void WriteConfig(int outputs) {
    Write("net.yaml", "name: net\nlayers:\n  - {name: fc, type: inner_product, outputs: " +
                          std::to_string(outputs) +
                          "}\n  - {name: loss, type: softmax_cross_entropy, input: [fc, label]}\n"
                          "  - {name: accuracy, type: accuracy, input: [fc, label]}\n");
    Write("run.yaml",
          "model: {name: ./net.yaml}\ndata: {name: csv, train: train.csv}\nbatch: 10\n"
          "epochs: 30\nsolver: {name: sgd, lr: 0.1}\n");
    Write("train.csv", Rows("a,b,kind\n", false));
  }
};

TEST_F(TablesSystemTest, AModelTakesColumnsByTheirNames) {
  WriteConfig(2);
  ASSERT_EQ(Run("train --config run.yaml --output run").code, 0);
  Write("plain.csv", "a,b\n0,4\n6,0\n");
  Write("turned.csv", "kind,b,id,a\nlow,4,x,0\n,0,y,6\n");
  const Outcome plain = Run("predict --weights run plain.csv --top 1");
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_THAT(plain.out, AllOf(HasSubstr("[0]  low"), HasSubstr("[1]  high")));
  EXPECT_THAT(plain.err, Not(HasSubstr("ignored")));
  const Outcome turned = Run("predict --weights run turned.csv --top 1");
  EXPECT_EQ(turned.code, 0) << turned.err;
  EXPECT_THAT(turned.out, AllOf(HasSubstr("[0]  low"), HasSubstr("[1]  high")));
  EXPECT_THAT(turned.err, HasSubstr("turned.csv: ignored columns, which the model does not take: "
                                    "'kind' (the label), 'id'"));
  Write("other.csv", "aa,b\n1,2\n");
  const Outcome missing = Run("predict --weights run other.csv");
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("other.csv: no column is called 'a'"),
                                 HasSubstr("did you mean 'aa'?")));

  Write("test.csv", Rows("b,a,kind\n", true));
  const Outcome other = Run("eval --weights run --set data.test=test.csv --json");
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(other.out, AllOf(HasSubstr("\"accuracy\":1.0"), HasSubstr("\"samples\":60")));
  const Outcome train = Run("eval --weights run --set data.train=test.csv");
  EXPECT_EQ(train.code, 3);
  EXPECT_THAT(train.err, HasSubstr("was trained on other columns: number 1 is 'a' there and 'b' in "
                                   "data.train"));
  // The columns are the same; the classes are not.
  std::string renamed = Rows("a,b,kind\n", false);
  for (size_t at = 0; (at = renamed.find("low", at)) != std::string::npos;) {
    renamed.replace(at, 3, "calm");
  }
  Write("renamed.csv", renamed);
  const Outcome classes = Run("eval --weights run --set data.train=renamed.csv");
  EXPECT_EQ(classes.code, 0) << classes.err;
  EXPECT_THAT(classes.err, HasSubstr("was trained on other classes: number 1 is 'high' there and "
                                     "'calm' in data.train"));
}

TEST_F(TablesSystemTest, FilesOfAnotherKindAreReportedApart) {
  WriteConfig(2);
  ASSERT_EQ(Run("train --config run.yaml --set epochs=1 --output run").code, 0);
  Write("image.csv", "\x89PNG\r\n\x1a\n and more");
  fs::create_directory(folder_ / "folder");
  const Outcome outcome = Run("predict --weights run image.csv folder");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("image.csv: this is an image; the model takes rows of 2 numbers"),
                    HasSubstr("folder: this is a folder; the model takes rows of 2 numbers")));
  ASSERT_EQ(Run("train --config $CONFIGS/quickstart.yaml --set data.train_samples=64 "
                "--set data.test_samples=64 --set epochs=1 --output digits")
                .code,
            0);
  const Outcome table = Run("predict --weights digits train.csv");
  EXPECT_EQ(table.code, 3);
  EXPECT_THAT(table.err, HasSubstr("train.csv: this is a table; the model takes images of "
                                   "1 x 28 x 28"));
  // Two images of this size.
  const auto idx = [](char rows, char columns) {
    return std::string("\0\0\x08\x03\0\0\0\x02\0\0\0", 11) + rows + std::string(3, '\0') + columns +
           std::string(static_cast<size_t>(2 * rows * columns), '\x7f');
  };
  for (const auto& [rows, columns] : {std::pair(14, 28), std::pair(28, 14)}) {
    Write("small.idx", idx(static_cast<char>(rows), static_cast<char>(columns)));
    const Outcome small = Run("predict --weights digits small.idx");
    EXPECT_EQ(small.code, 3);
    EXPECT_THAT(small.err, HasSubstr("small.idx: grey images of " + std::to_string(rows) + " x " +
                                     std::to_string(columns) + ", the model takes 1 x 28 x 28"));
  }
  Write("both.idx", idx(28, 28));
  std::istringstream as_json(Run("predict --weights digits --json --top 10 both.idx").out);
  std::string expected;
  int number = 0;
  for (std::string line; std::getline(as_json, line); ++number) {
    const auto answer = nlohmann::json::parse(line);
    EXPECT_EQ(answer["file"], "both.idx[" + std::to_string(number) + "]");
    double sum = 0, before = 1;
    expected += answer["file"].get<std::string>();
    for (const auto& one : answer["classes"]) {
      const double probability = one["probability"];
      EXPECT_LE(probability, before) << "the most probable class comes first";
      before = probability;
      sum += probability;
      expected += fmt::format("  {} {:.2f} %", one["class"].get<std::string>(), 100 * probability);
    }
    expected += "\n";
    EXPECT_EQ(answer["classes"].size(), 10U);
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  EXPECT_EQ(number, 2);
  EXPECT_EQ(Run("predict --weights digits --top 10 both.idx").out, expected);
  EXPECT_EQ(WordsIn(Run("predict --weights digits both.idx").out), 2 * (1 + 3 * 3))
      << "three classes each, with a name and a percentage";
  const Outcome nothing = Run("predict --weights nothing train.csv");
  EXPECT_EQ(nothing.code, 6);
  EXPECT_THAT(nothing.err, HasSubstr(".safetensors"));
}

TEST_F(TablesSystemTest, OutputsThatAreNoClassAreWarnedOfOnce) {
  WriteConfig(5);
  const std::string warning =
      "net.yaml:3:37: the data (csv, run.yaml:2:8) has 2 classes, layer 'fc' has 5 outputs: 3 of "
      "them are never a label";
  for (const std::string command : {"check", "train --output run", "train --dry-run --output run2",
                                    "train --workers 2 --output run3"}) {
    const Outcome outcome = Run(command + " --config run.yaml");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const size_t first = outcome.err.find(warning);
    EXPECT_NE(first, std::string::npos) << command << ": " << outcome.err;
    EXPECT_EQ(outcome.err.find("never a label", first + warning.size()), std::string::npos)
        << command << ": " << outcome.err;
  }
  WriteConfig(1);
  const Outcome refused = Run("check --config run.yaml");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("layer 'fc' (inner_product): the data (csv, run.yaml:2:8) "
                                     "has 2 classes, but the layer has 1 output: set outputs: 2"));
}

}  // namespace
}  // namespace dtrain
