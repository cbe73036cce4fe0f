// `dtrain predict`: predicts the classes of images, or values for rows of numbers, with a trained model.
//
// A checkpoint contains its model, the properties of its images and the names of the classes, so no config is needed.
// Weights that another program saved lack them: with --config they are those of the config's model and data.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <numeric>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/cli/command.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/printable.h"
#include "framework/core/progress_display.h"
#include "framework/core/text.h"
#include "framework/data/images/idx.h"
#include "framework/data/images/image_file.h"
#include "framework/data/images/image_folder.h"
#include "framework/data/tables/csv.h"
#include "framework/data/tables/npy.h"
#include "framework/data/text/sentence_pairs.h"
#include "framework/device/cpu/threads.h"
#include "framework/evaluate/predictor.h"
#include "framework/launch/world.h"
#include "framework/setup/run_setup.h"
#include "framework/setup/trained_data.h"

namespace dtrain {
namespace fs = std::filesystem;
namespace {

constexpr size_t kTogether = 256;  // images held in memory at a time

struct PredictOptions {
  ConfigOptions config;
  std::string weights;
  std::vector<std::string> files;
  int top = 3;
};

// Returns by how many deviations of the training data these samples differ from its mean, on average over all numbers; 0
// if the model takes numbers as they are.  Over the training data themselves it is at most 1.
double DistanceFromTraining(const Numbers& numbers, const ImageSetSpec& spec) {
  const ImageSetSpec plain;
  if (spec.mean.values() == plain.mean.values() &&
      spec.deviation.values() == plain.deviation.values()) {
    return 0;
  }
  const int64_t channels = spec.image_shape[0], each = spec.image_shape.CountFrom(1);
  const auto distance = [&](const auto& values) {
    double sum = 0;
    for (int64_t i = 0; i < std::ssize(values); ++i) {
      const int64_t c = i / each % channels;
      const double from_mean = static_cast<double>(values[static_cast<size_t>(i)]) - spec.mean[c];
      sum += std::abs(from_mean / spec.deviation[c]);
    }
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
  };
  return std::visit(distance, numbers);
}

// Predicts and prints any number of images in the order in which they were added.
class Printer {
 public:
  Printer(Predictor& predictor, int top, bool json)
      : predictor_(predictor), top_(top), json_(json) {}

  // Returns the memory of a new image, which the caller fills.
  uint8_t* Add(const std::string& name) {
    if (names_.size() == kTogether) Flush();
    names_.push_back(name);
    const auto size = static_cast<size_t>(predictor_.images().image_shape.count());
    bytes_.resize(bytes_.size() + size);
    return bytes_.data() + bytes_.size() - size;
  }
  // Removes the last image, which could not be read.
  void Drop() {
    names_.pop_back();
    bytes_.resize(bytes_.size() - static_cast<size_t>(predictor_.images().image_shape.count()));
  }

  // Predicts and prints all samples of a file, for a model of numbers.
  void PredictNumbers(const std::string& file, Numbers numbers) {
    constexpr double kFar =
        10;  // bytes of images, for a model of numbers from 0 to 1, are some 400 away
    const double distance = DistanceFromTraining(numbers, predictor_.images());
    if (distance > kFar) {
      log::Warning(
          "{}: its numbers are on average {:.0f} deviations from the mean of the training data; "
          "bring them to the scale of these",
          file, distance);
    }
    const auto answers = predictor_.Predict(std::move(numbers));
    for (size_t i = 0; i < answers.size(); ++i) {
      const std::string name = fmt::format("{}[{}]", file, i);
      if (predictor_.images().classes > 0) {
        Print(name, answers[i]);
      } else if (json_) {
        std::cout << JsonText(nlohmann::json{{"file", name}, {"values", answers[i]}}) << '\n';
      } else {
        std::cout << fmt::format("{}  {:.7g}\n", Printable(name), fmt::join(answers[i], "  "));
      }
    }
    std::cout << std::flush;
  }

  void Flush() {
    if (names_.empty()) return;
    const auto answers = predictor_.Predict(std::move(bytes_));
    for (size_t i = 0; i < names_.size(); ++i) Print(names_[i], answers[i]);
    std::cout << std::flush;
    bytes_.clear();
    names_.clear();
  }

 private:
  void Print(const std::string& name, const std::vector<double>& probabilities) const {
    std::vector<int64_t> order(probabilities.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater{},
                             [&](int64_t c) { return probabilities[static_cast<size_t>(c)]; });
    order.resize(std::min(order.size(), static_cast<size_t>(top_)));
    if (json_) return PrintJson(name, order, probabilities);
    std::string line = Printable(name);  // escaped, so that it stays on one line
    for (const int64_t c : order) {
      line += fmt::format("  {} {:.2f} %", Printable(predictor_.ClassName(c)),
                          100 * probabilities[static_cast<size_t>(c)]);
    }
    std::cout << line << '\n';
  }

  void PrintJson(const std::string& name, const std::vector<int64_t>& order,
                 const std::vector<double>& probabilities) const {
    nlohmann::json classes = nlohmann::json::array();
    for (const int64_t c : order) {
      classes.push_back({{"class", predictor_.ClassName(c)},
                         {"number", c},
                         {"probability", probabilities[static_cast<size_t>(c)]}});
    }
    std::cout << JsonText(nlohmann::json{{"file", name}, {"classes", classes}}) << '\n';
  }

  Predictor& predictor_;
  const int top_;
  const bool json_;
  std::vector<std::string> names_;
  std::vector<uint8_t> bytes_;
};

// Throws DataError for a file of a kind that the model does not take.
[[noreturn]] void RefuseKind(const fs::path& path, const std::string& kind,
                             const ImageSetSpec& spec) {
  const std::string shape = fmt::format("{}", fmt::join(spec.image_shape.extents(), " x "));
  if (spec.numbers) {
    throw DataError(fmt::format("{}: this is {}; the model takes rows of {} numbers", path.string(),
                                kind, shape),
                    "give a CSV file with a row for each sample, or a .npy file");
  }
  throw DataError(fmt::format("{}: this is {}; the model takes images of {} (channels x rows x "
                              "columns)",
                              path.string(), kind, shape),
                  "give JPEG or PNG files, folders of them, or images in a .npy or IDX file");
}

// Adds an image file.  Returns true if it was turned upright by its EXIF orientation.
bool AddImage(const fs::path& path, const ImageSetSpec& spec, Printer& printer) {
  // A model trained on images of one size (`fit: none`) still takes a single image of any size.
  const Fit fit = spec.fit == Fit::kNone ? Fit::kStretch : spec.fit;
  const std::string bytes = ReadFile(path);
  uint8_t* to = printer.Add(path.string());
  try {
    return DecodeImage(bytes, path.string(), spec.image_shape, fit, spec.orientation, to);
  } catch (const DataError&) {
    printer.Drop();
    throw;
  }
}

void AddIdx(const fs::path& path, const ImageSetSpec& spec, Printer& printer) {
  const IdxImages images = ReadIdxImages(path);
  const Shape& shape = spec.image_shape;
  if (shape[0] != 1 || images.rows != shape[1] || images.columns != shape[2]) {
    throw DataError(fmt::format("{}: grey images of {} x {}, the model takes {} x {} x {}",
                                path.string(), images.rows, images.columns, shape[0], shape[1],
                                shape[2]));
  }
  const int64_t pixels = shape.count();
  for (int64_t i = 0; i < images.count; ++i) {
    std::copy_n(images.pixels.data() + i * pixels, pixels,
                printer.Add(fmt::format("{}[{}]", path.string(), i)));
  }
}

// Adds the images of a .npy file of bytes, with the channels first or last.
void AddImages(const fs::path& path, const ImageSetSpec& spec, Printer& printer) {
  NpyArray array = ReadNpy(path);
  if (!array.bytes()) {
    throw DataError(path.string() + ": no bytes, the model takes images of uint8");
  }
  FitSamples(path, spec.image_shape, array);
  const int64_t each = spec.image_shape.count();
  const uint8_t* from = array.values.bytes.data();
  for (int64_t i = 0; i < array.shape[0]; ++i, from += each) {
    std::copy_n(from, each, printer.Add(fmt::format("{}[{}]", path.string(), i)));
  }
}

// Returns the name without .gz.
fs::path PlainName(fs::path path) {
  if (path.extension() == ".gz") path.replace_extension();
  return path;
}

bool IsNpyName(const fs::path& path) { return PlainName(path).extension() == ".npy"; }

bool IsIdxName(const fs::path& path) {
  const std::string name = PlainName(path).filename().string();
  return name.find("idx3") != std::string::npos || name.ends_with(".idx");
}

bool IsCsvName(const fs::path& path) {
  const fs::path ending = PlainName(path).extension();
  return ending == ".csv" || ending == ".tsv";
}

// Predicts the samples of a CSV file or of an array.
void AddNumbers(const fs::path& path, const ImageSetSpec& spec, Printer& printer) {
  const Shape& shape = spec.image_shape;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) RefuseKind(path, "a folder", spec);
  if (IsImage(path)) RefuseKind(path, "an image", spec);
  if (IsIdxName(path)) RefuseKind(path, "an IDX file of images", spec);
  if (!IsNpyName(path)) {
    CsvNumbers csv = ReadCsvNumbers(path, shape.count(), spec.columns, spec.decimal_comma);
    for (std::string& name : csv.ignored) {
      name = fmt::format("'{}'{}", name, name == spec.label_column ? " (the label)" : "");
    }
    if (!csv.ignored.empty()) {
      log::Info("{}: ignored columns, which the model does not take: {}", path.string(),
                Join(csv.ignored));
    }
    return printer.PredictNumbers(path.string(), std::move(csv.numbers));
  }
  NpyArray array = ReadNpy(path);
  FitSamples(path, shape, array);
  printer.PredictNumbers(path.string(), array.values.TakeNumbers());
}

std::vector<fs::path> ImagesOf(const fs::path& folder) {
  ImageList passed_over;
  std::vector<fs::path> images = ImagesBelow(folder, /*follow_links=*/true, passed_over);
  if (images.empty()) throw DataError(folder.string() + " has no image (.jpg, .jpeg, .png)");
  return images;
}

// Returns the model and the properties of the data that a config names.  Mean and deviation are chosen as in `dtrain
// eval`.
CheckpointInfo DescribedBy(const RunConfig& config, const fs::path& weights) {
  std::optional<BusyProgress> busy("loading data");
  const std::unique_ptr<Dataset> data = LoadData(config);
  busy.reset();
  DecideTargets(ReadModel(config, data->fields()), *data);
  const CheckpointInfo stored = ReadStoredInfo(weights);
  const std::string normalised = NormaliseAsTrained(stored, weights.string(), *data);
  CheckTrainedOn(stored, weights.string(), *data, /*tell=*/true, /*evaluates=*/false);
  if (!normalised.empty()) log::Warning("{}", normalised);
  TellData(config, *data);
  CheckpointInfo described;
  described.model_yaml = config.model.yaml;
  if (const SentencePairs* pairs = data->sentence_pairs()) {
    described.text = pairs->info().ToText();  // Predictor refuses it
  } else if (const ImageSetSpec* images = data->image_info()) {
    described.images = ToText(*images);
  } else {
    throw UsageError(
        fmt::format("the samples of data '{}' are neither images nor numbers", config.data.name),
        "dtrain predict takes models of images or rows of numbers");
  }
  return described;
}

Predictor MakePredictor(const PredictOptions& options) {
  if (!options.config.file.empty()) {
    const RunConfig config = LoadConfig(options.config);
    return {options.weights, config.device, DescribedBy(config, FindWeights(options.weights))};
  }
  return {options.weights, options.config.device.empty() ? "auto" : options.config.device};
}

// A file that cannot be used is reported and skipped.
int Predict(const PredictOptions& options, const Invocation& invocation) {
  LimitSpinning(invocation.argv);
  Predictor predictor = MakePredictor(options);
  Printer printer(predictor, options.top, invocation.json);
  int64_t failed = 0, turned = 0;
  const auto add = [&](const std::function<void()>& one) {
    try {
      one();
    } catch (const DataError& error) {
      ++failed;
      log::Error("{}{}", error.what(), error.hint().empty() ? "" : "\n  " + error.hint());
    }
  };
  for (const std::string& file : options.files) {
    add([&] {
      std::error_code ignored;
      if (predictor.images().numbers) {
        AddNumbers(file, predictor.images(), printer);
      } else if (fs::is_directory(file, ignored)) {
        for (const fs::path& path : ImagesOf(file)) {
          add([&] { turned += AddImage(path, predictor.images(), printer); });
        }
      } else if (IsNpyName(file)) {
        AddImages(file, predictor.images(), printer);
      } else if (IsIdxName(file)) {
        AddIdx(file, predictor.images(), printer);
      } else if (IsCsvName(file)) {
        RefuseKind(file, "a table", predictor.images());
      } else {
        turned += AddImage(file, predictor.images(), printer);
      }
    });
  }
  printer.Flush();
  if (turned > 0) log::Info("{} turned upright by EXIF orientation", Counted(turned, "image"));
  if (failed == 0) return 0;
  const DataError error(fmt::format("{} could not be predicted", Counted(failed, "file")));
  TellError(error);
  return static_cast<int>(error.code());
}

}  // namespace

static void AddPredictCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* command = AddCommand(app, invocation, "predict",
                                 "predict classes or values for images, CSV rows or arrays",
                                 [options, &invocation] { return Predict(*options, invocation); });
  CLI::Option* const config = AddConfigOption(
      *command, options->config.file,
      "a run's YAML file, or the name of one of configs/runs: its model and data, in "
      "place of those in the weights");
  AddSettingOptions(*command, options->config);
  // They change a config, and without one the weights know their model.
  for (const char* setting : {"--set", "--cluster"}) command->get_option(setting)->needs(config);
  command
      ->add_option(
          "--weights", options->weights,
          "a run folder, a checkpoint or a safetensors file; one that dtrain did not write "
          "needs --config")
      ->required()
      ->type_name("FILE");
  command
      ->add_option(
          "files", options->files,
          "images (JPEG, PNG), folders of images, or IDX files of images; for a model of "
          "numbers CSV files, whose columns are found by their names where the training file and "
          "this one have a header, or .npy files; IDX, CSV and .npy plain or .gz")
      ->required()
      ->type_name("FILE");
  command->add_option("--top", options->top, "how many classes to print per sample")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
}

DTRAIN_COMMAND("predict", 25, AddPredictCommand);

}  // namespace dtrain
