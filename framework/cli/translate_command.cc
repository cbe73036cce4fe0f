// `dtrain translate`: translates standard input, line by line.
//
// Words and their numbers are in the checkpoint.  If the config's data set is available and complete, its vocabularies
// must equal the checkpoint's.
#include <CLI/CLI.hpp>

#include <unistd.h>
#include <ext/stdio_filebuf.h>

#include <iostream>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/checkpoint/weights_file.h"
#include "framework/cli/command.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/core/utf8.h"
#include "framework/device/cpu/threads.h"
#include "framework/evaluate/translator.h"
#include "framework/setup/run_setup.h"

namespace dtrain {
namespace {

constexpr size_t kMostLines = 64;   // translated in one batch
constexpr size_t kMostWords = 500;  // words of a line

struct TranslateOptions {
  ConfigOptions config;
  std::string weights;
  SearchOptions search;
};

// Holds a model with its weights and vocabularies.
class Translator {
 public:
  Translator(const RunConfig& config, const std::string& weights, const SearchOptions& search)
      : search_(search) {
    const std::filesystem::path path = FindWeights(weights);
    const std::string text = ReadStoredInfo(path).text;
    if (text.empty()) {
      throw CheckpointError(path.string() + " has no vocabularies: its model does not translate",
                            "take a checkpoint of a run on a data set for translation");
    }
    info_ = TextInfoFromText(text, path.string());
    std::vector<FieldSpec> fields = config.data.source->fields();
    if (fields.size() != 3 || fields[0].name != "source") {
      throw ConfigError("data set '" + config.data.name + "' is not one for translation",
                        "take the config of the run that wrote the checkpoint");
    }
    fields[0].classes = info_.source.size();
    fields[1].classes = fields[2].classes = info_.target.size();
    graph_ = std::make_unique<Graph>(ReadModel(config, fields));
    checkpoint_ = LoadWeights(path, LayoutFor(config));
    ExecutionPlan plan = DecidePlan(config, *graph_, 1, ThreadsHere(1));
    net_ = MakeNet(*graph_, {}, plan);
    model_ = net_->Bring(checkpoint_.weights.data(), checkpoint_.state.data());
  }

  // `first_line` is the number of lines[0] in the input, for messages.
  std::vector<std::string> Translate(const std::vector<std::string>& lines, size_t first_line) {
    std::vector<std::vector<int32_t>> sentences;
    std::vector<size_t> places;
    for (size_t i = 0; i < lines.size(); ++i) {
      std::vector<int32_t> words = NumbersOf(lines[i], first_line + i);
      if (words.empty()) continue;
      sentences.push_back(std::move(words));
      places.push_back(i);
    }
    const auto answers = dtrain::Translate(*net_, model_.weights, model_.state, sentences, search_);
    std::vector<std::string> translations(lines.size());
    for (size_t a = 0; a < answers.size(); ++a) {
      translations[places[a]] = JoinWords(info_.target.WordsOf(answers[a]));
    }
    return translations;
  }

 private:
  ModelLayout LayoutFor(const RunConfig& config) const {
    std::error_code ignored;
    for (const auto& place : DataPlaces(config.data.name, config.data.root)) {
      if (!std::filesystem::is_directory(place, ignored)) continue;
      try {
        return ModelLayoutOf(*graph_, *LoadData(config));
      } catch (const DataError& error) {
        log::Warning("the checkpoint's vocabularies are not compared with the data set's: {}",
                     error.what());
      }
      break;
    }
    return ModelLayoutOf(*graph_);
  }

  std::vector<int32_t> NumbersOf(const std::string& line, size_t number) const {
    if (const auto invalid = FindInvalidUtf8(line)) {
      throw DataError(fmt::format("line {}: byte {} (0x{:02x}) is no UTF-8", number, *invalid + 1,
                                  static_cast<unsigned char>(line[*invalid])),
                      "convert the text with iconv");
    }
    std::vector<std::string> words = Tokenizer(info_.source_language, info_.escaped).Split(line);
    if (words.size() > kMostWords) {
      log::Warning("line {} has {} words; the first {} are translated", number, words.size(),
                   kMostWords);
      words.resize(kMostWords);
    }
    return info_.source.NumbersOf(words);
  }

  const SearchOptions search_;
  TextInfo info_;
  std::unique_ptr<Graph> graph_;
  Checkpoint checkpoint_;
  std::unique_ptr<Net> net_;
  BroughtModel model_;
};

// Returns the next line, and any that have already arrived.
std::vector<std::string> NextLines(std::istream& in) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
    if (lines.size() == kMostLines || in.rdbuf()->in_avail() <= 0) break;
  }
  return lines;
}

int RunTranslate(const TranslateOptions& options, const Invocation& invocation) {
  LimitSpinning(invocation.argv);
  const RunConfig config = LoadConfigOf(options.config, FindWeights(options.weights));
  TellDevice(config);
  Translator translator(config, options.weights, options.search);
  // This buffer replaces std::cin, whose in_avail() does not report the bytes that have arrived.
  __gnu_cxx::stdio_filebuf<char> buffer(STDIN_FILENO, std::ios::in);
  std::istream in(&buffer);
  size_t first_line = 1;
  for (std::vector<std::string> lines = NextLines(in); !lines.empty(); lines = NextLines(in)) {
    const std::vector<std::string> translations = translator.Translate(lines, first_line);
    for (size_t i = 0; i < lines.size(); ++i) {
      if (invocation.json) {
        std::cout << JsonText(
                         nlohmann::json{{"source", lines[i]}, {"translation", translations[i]}})
                  << '\n';
      } else {
        std::cout << translations[i] << '\n';
      }
    }
    std::cout << std::flush;
    first_line += lines.size();
  }
  return 0;
}

}  // namespace

static void AddTranslateCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<TranslateOptions>();
  CLI::App* command =
      AddCommand(app, invocation, "translate", "translate standard input, line by line",
                 [options, &invocation] { return RunTranslate(*options, invocation); });
  AddOptionalConfigOptions(*command, options->config);
  command->add_option("--weights", options->weights, "a checkpoint or a run folder")
      ->required()
      ->type_name("FILE");
  AddSearchOptions(*command, options->search);
}

DTRAIN_COMMAND("translate", 30, AddTranslateCommand);

}  // namespace dtrain
