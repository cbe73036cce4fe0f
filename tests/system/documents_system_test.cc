// Tests that the documents for users are correct: every command works, every key is explained.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/data/image_files.h"
#include "tests/system/document_commands.h"
#include "tests/system/documents.h"

namespace dtrain {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

constexpr char kPath[] = "export PATH=\"$PWD/build/release:$PATH\"";
constexpr char kGlossary[] = "framework/results/README.md";

// A command that writes a file from the document needs no row.
bool WritesAFile(const std::string& command) { return command.starts_with("cat >"); }

TEST(Documents, EveryCommandIsRunOrSaysWhyNot) {
  std::set<std::string> documented;
  for (const std::string& document : kDocuments) {
    for (const std::string& command : CommandsOfDocument(document)) {
      if (!WritesAFile(command) && command != kPath) documented.insert(command);
    }
  }
  std::set<std::string> known;
  for (const auto& [command, more] : kCommandsRun) known.insert(command);
  for (const auto& [command, why] : kCommandsNotRun) {
    EXPECT_TRUE(known.insert(command).second) << "run and not run: " << command;
  }
  EXPECT_THAT(documented, UnorderedElementsAreArray(known))
      << "a command of a document, and a row of document_commands.h, for each";
}

TEST(Documents, TheReadmeIsReadInTenMinutes) {
  EXPECT_LT(Slurp(DTRAIN_SOURCE_DIR "/README.md").size(), 12'000u);
}

// Adds "a.b" for nested objects and "a[].b" for lists of objects.
void AddKeys(const nlohmann::json& json, const std::string& before, std::set<std::string>& keys) {
  for (const auto& [key, value] : json.items()) {
    const std::string name = before + key;
    if (value.is_object()) {
      AddKeys(value, name + ".", keys);
    } else if (value.is_array() && !value.empty() && value[0].is_object()) {
      for (const auto& element : value) AddKeys(element, name + "[].", keys);
    } else {
      keys.insert(name);
    }
  }
}

// Returns the names in the first cells of the tables of a glossary section.
std::set<std::string> KeysDocumentedIn(const std::string& section) {
  std::set<std::string> keys;
  for (const std::string& line : SectionOfDocument(kGlossary, section)) {
    if (line.starts_with("| `")) keys.merge(Backquoted(line.substr(0, line.find(" | ", 2))));
  }
  return keys;
}

std::set<std::string> NamesDocumentedIn(const std::string& section) {
  std::string text;
  for (const std::string& line : SectionOfDocument(kGlossary, section)) text += line + "\n";
  return Backquoted(text);
}

class DocumentsSystemTest : public SystemTest {
 protected:
  // Creates a folder as a user has it, with images of two classes, and of three other ones.
  void SetUp() override {
    SystemTest::SetUp();
    fs::create_directories(folder_ / "build");
    fs::create_symlink(DTRAIN_BINARY_DIR, folder_ / "build/release");
    for (const char* name : {"launch", "tools"}) {
      fs::create_symlink(fs::path(DTRAIN_SOURCE_DIR) / name, folder_ / name);
    }
    for (const char* name :
         {"images/cat", "images/dog", "others/bat", "others/cat", "others/dog", "more"}) {
      fs::create_directories(folder_ / name);
      for (int i = 0; i < 30; ++i) {
        std::ofstream(folder_ / name / (std::to_string(i) + ".png"))
            << PngOf(NoisyPixels(20, 20, 3, static_cast<uint64_t>(i)), 20, 20, PNG_FORMAT_RGB);
      }
    }
    std::ofstream(folder_ / "cat.jpg") << JpegOf(SmoothPixels(30, 40, 3), 30, 40, 3);
  }

  int RunInShell(const std::string& command) {
    std::ofstream(folder_ / "command.sh")
        << "cd '" << folder_.string() << "'\nunset DTRAIN_DATA\n"
        << "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
           "OMPI_MCA_rmaps_base_oversubscribe=1\n"
        << kPath << "\n"
        << command << "\n";
    const int status = std::system(("bash '" + (folder_ / "command.sh").string() + "' >'" +
                                    (folder_ / "said").string() + "' 2>&1 </dev/null")
                                       .c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  void RunAllCommands() {
    std::set<std::string> done;
    for (const std::string& document : kDocuments) {
      for (const std::string& command : CommandsOfDocument(document)) {
        if (!done.insert(command).second) continue;
        const auto row = kCommandsRun.find(command);
        if (row == kCommandsRun.end() && !WritesAFile(command)) continue;
        const std::string more = row == kCommandsRun.end() ? "" : row->second;
        const auto code = kCodes.find(command);
        EXPECT_EQ(RunInShell(command + more), code == kCodes.end() ? 0 : code->second)
            << document << ": " << command << more << "\n"
            << Slurp(folder_ / "said");
      }
    }
  }

  // Returns the keys in all files of this name that the commands have written, as one JSON document or one object a
  // line.
  std::set<std::string> KeysWrittenTo(const std::string& file) {
    std::set<std::string> keys;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "runs")) {
      if (entry.path().filename() != file) continue;
      std::istringstream lines(Slurp(entry.path()));
      nlohmann::json json;
      while (lines >> std::ws && !lines.eof()) {
        lines >> json;
        AddKeys(json, "", keys);
      }
    }
    EXPECT_THAT(keys, Not(IsEmpty())) << file;
    return keys;
  }

  // Returns the keys of what strategies count: `list` explains them.
  std::set<std::string> CountersListed() {
    std::set<std::string> keys;
    for (const auto& strategy : nlohmann::json::parse(Run("list strategies --json").out)) {
      for (const auto& counter : strategy.value("counters", nlohmann::json::array())) {
        keys.insert("protocol." + counter.at("name").get<std::string>());
      }
    }
    EXPECT_THAT(keys, Not(IsEmpty()));
    return keys;
  }

  std::set<std::string> NamesInTimelines() {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "runs")) {
      if (entry.path().filename() != "timeline.json") continue;
      const auto json = nlohmann::json::parse(Slurp(entry.path()));
      for (const auto& event : json.at("traceEvents")) {
        names.insert(event.at("name").get<std::string>());
      }
    }
    return names;
  }
};

// Keys that no run of the documents writes: those of sentences, of slow events, of fp16, which is for a GPU, and those
// that depend on the machine's speed.
const std::set<std::string> kSeldom = {
    "test.perplexity", "test.bleu",      "best.perplexity",
    "best.bleu",       "best.loss",      "resumed_step",
    "test.step",       "test.epoch",     "test.guessing",
    "test.guess_loss", "data.read_as",   "data.left_out",
    "data.warnings",   "target.seconds", "target.epochs",
    "target.steps",    "servers",        "protocol.idle_servers",
    "perplexity",      "bleu",           "skipped_steps",
};

std::set<std::string> Without(std::set<std::string> names, const std::set<std::string>& others) {
  for (const std::string& name : others) names.erase(name);
  return names;
}

// Compares in both directions.  The keys of a model's further metrics are explained elsewhere.
void ExpectReported(const std::set<std::string>& written, const std::string& section) {
  std::set<std::string> documented = KeysDocumentedIn(section);
  std::set<std::string> unknown = Without(written, documented);
  std::erase_if(unknown, [](const std::string& key) {  // the keys are the classes of the data
    return key.starts_with("data.fewest_training_samples.");
  });
  EXPECT_THAT(Without(unknown, {"top5", "test.top5", "best.top5"}), IsEmpty())
      << "not documented in " << section << " of " << kGlossary;
  std::erase_if(documented, [](const std::string& key) { return key.ends_with(".NAME"); });
  EXPECT_THAT(Without(Without(documented, written), kSeldom), IsEmpty())
      << "documented in " << section << ", and not written";
}

// Checks that each part of "a[].b" is in backquotes somewhere in the section.
void ExpectWordsReported(const std::set<std::string>& keys, const std::string& section) {
  static const std::regex part("[a-z0-9_]+");
  const std::set<std::string> documented = NamesDocumentedIn(section);
  for (const std::string& key : keys) {
    for (std::sregex_iterator it(key.begin(), key.end(), part), end; it != end; ++it) {
      EXPECT_TRUE(documented.contains(it->str())) << key << " is not documented in " << section;
    }
  }
}

TEST_F(DocumentsSystemTest, EveryCommandWorksAndEveryKeyIsExplained) {
  RunAllCommands();
  ExpectReported(Without(KeysWrittenTo("summary.json"), CountersListed()), "summary.json");
  ExpectReported(KeysWrittenTo("metrics.jsonl"), "metrics.jsonl");
  ExpectReported(KeysWrittenTo("ranks.jsonl"), "ranks.jsonl");
  ExpectReported(NamesInTimelines(), "timeline.json");
  ExpectWordsReported(KeysWrittenTo("gradients.jsonl"), "gradients.jsonl");
  std::set<std::string> plan = KeysWrittenTo("plan.json");
  std::erase_if(plan, [](const std::string& key) { return key.starts_with("kernels."); });
  ExpectWordsReported(plan, "plan.json");
}

TEST_F(DocumentsSystemTest, EveryKeyOfAConfigIsReported) {
  const Outcome outcome = Run("check --config quickstart --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto config = nlohmann::json::parse(outcome.out);
  std::set<std::string> keys;
  AddKeys(config, "", keys);
  EXPECT_GT(keys.size(), 60u);
  std::string section;
  for (const std::string& line :
       SectionOfDocument("configs/README.md", "Every key with its default")) {
    section += line + "\n";
  }
  for (const char* of_digits :
       {"data.seed", "data.train_samples", "data.test_samples", "solver.schedule.to"}) {
    keys.erase(of_digits);
  }
  for (const std::string& key : keys) {
    const std::string word = key.substr(key.rfind('.') + 1);
    EXPECT_TRUE(std::regex_search(section, std::regex("(^|[\\s{])" + word + ":"))) << key;
  }
}

}  // namespace
}  // namespace dtrain
