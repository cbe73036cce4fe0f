// Converts an image set's properties to text and back, and measures mean and deviation.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/json_fields.h"
#include "framework/data/images/image_set.h"

namespace dtrain {
namespace {

using nlohmann::json;

[[noreturn]] void Refuse(const std::string& where, const std::string& what) {
  throw ConfigError(fmt::format("{}: {}", where, what));
}

PerChannel ReadNumbers(const json& list, int64_t channels, const std::string& where) {
  if (list.size() != 1 && static_cast<int64_t>(list.size()) != channels) {
    Refuse(where, fmt::format("{} numbers for {} channels", list.size(), channels));
  }
  std::vector<double> values;
  for (const json& number : list) {
    if (!number.is_number()) Refuse(where, "not a number");
    values.push_back(number.get<double>());
    if (!std::isfinite(values.back())) Refuse(where, "not a finite number");
  }
  return PerChannel(std::move(values));
}

// Reads the shape of an image, or one of at most three axes if samples are numbers.
Shape ReadShape(const json& list, bool numbers, const std::string& where) {
  if (numbers ? list.size() > 3 : list.size() != 3) {
    Refuse(where, "not channels, rows and columns");
  }
  std::vector<int64_t> extents;
  int64_t pixels = 1;
  for (const json& extent : list) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() - 1 >= uint64_t{kPixelsMost}) {
      Refuse(where, "not an extent");
    }
    extents.push_back(extent.get<int64_t>());
    if (extents.back() > kPixelsMost / pixels) Refuse(where, "too many pixels");
    pixels *= extents.back();
  }
  return Shape(extents);
}

std::vector<std::string> ReadNames(const json& list, const std::string& where) {
  std::vector<std::string> names;
  for (const json& name : list) {
    if (!name.is_string()) Refuse(where, "not a text");
    names.push_back(name.get<std::string>());
  }
  return names;
}

// Versions without orientation support did not write the key; their models learned from images as they are stored.
void ReadOrientation(JsonFields& fields, ImageSetSpec& spec) {
  spec.orientation = Orientation::kIgnore;
  if (spec.numbers || !fields.Has("orientation")) return;
  const std::string name = fields.String("orientation");
  if (std::ranges::find(kOrientationNames, name) == std::end(kOrientationNames)) {
    Refuse(fields.where() + ": orientation", name);
  }
  spec.orientation = OrientationOf(name);
}

void ReadTargetScale(JsonFields& fields, const std::string& origin, ImageSetSpec& spec) {
  if (!spec.numbers || spec.classes > 0) return;
  const int64_t count = spec.target_shape.count();
  spec.target_mean = ReadNumbers(fields.Array("target_mean"), count, origin + ": target_mean");
  spec.target_deviation =
      ReadNumbers(fields.Array("target_deviation"), count, origin + ": target_deviation");
}

ImageSetSpec Read(const std::string& text, const std::string& origin) {
  const json object = ParseJson(text, origin);
  JsonFields fields(object, origin);
  ImageSetSpec spec;
  spec.numbers = fields.Has("target_shape");  // only samples of numbers have this key
  if (spec.numbers) {
    spec.target_shape = ReadShape(fields.Array("target_shape"), true, origin + ": target_shape");
  }
  spec.image_shape = ReadShape(fields.Array("shape"), spec.numbers, origin + ": shape");
  if (spec.image_shape.rank() == 0) Refuse(origin + ": shape", "it has no axis");
  spec.classes = fields.Count("classes");
  if (spec.classes < (spec.numbers ? 0 : 1) || spec.classes > kClassesMost) {
    Refuse(origin + ": classes", "out of range");
  }
  spec.mean = ReadNumbers(fields.Array("mean"), spec.image_shape[0], origin + ": mean");
  spec.deviation =
      ReadNumbers(fields.Array("deviation"), spec.image_shape[0], origin + ": deviation");
  ReadTargetScale(fields, origin, spec);
  for (const PerChannel* deviation : {&spec.deviation, &spec.target_deviation}) {
    for (const double value : deviation->values()) {
      // Pixels are divided by floats.
      const bool divides = spec.numbers ? value > 0 : static_cast<float>(value) > 0;
      if (!divides) Refuse(origin + ": deviation", "not above 0");
    }
  }
  spec.class_names = ReadNames(fields.Array("class_names"), origin + ": class_names");
  if (fields.Has("columns")) {  // from a table with column names
    spec.columns = ReadNames(fields.Array("columns"), origin + ": columns");
    spec.label_column = fields.String("label_column");
    if (!spec.numbers || std::ssize(spec.columns) != spec.image_shape.count()) {
      Refuse(origin + ": columns", fmt::format("{} names for samples of {}", spec.columns.size(),
                                               spec.image_shape.ToString()));
    }
  }
  if (fields.Has("decimal")) spec.decimal_comma = fields.String("decimal") == ",";
  if (!spec.class_names.empty() && static_cast<int64_t>(spec.class_names.size()) != spec.classes) {
    Refuse(origin + ": class_names",
           fmt::format("{} names for {} classes", spec.class_names.size(), spec.classes));
  }
  const std::string fit = fields.String("fit");
  if (std::ranges::find(kFitNames, fit) == std::end(kFitNames)) Refuse(origin + ": fit", fit);
  spec.fit = FitOf(fit);
  ReadOrientation(fields, spec);
  fields.RejectOthers();
  return spec;
}

}  // namespace

std::string ToText(const ImageSetSpec& spec) {
  json text{{"shape", spec.image_shape.extents()}, {"classes", spec.classes},
            {"mean", spec.mean.values()},          {"deviation", spec.deviation.values()},
            {"class_names", spec.class_names},     {"fit", NameOf(spec.fit)}};
  if (spec.numbers) {
    text["target_shape"] = spec.target_shape.extents();
    if (spec.classes == 0) {
      text["target_mean"] = spec.target_mean.values();
      text["target_deviation"] = spec.target_deviation.values();
    }
  } else {
    text["orientation"] = NameOf(spec.orientation);
  }
  if (!spec.columns.empty()) {
    text["columns"] = spec.columns;
    text["label_column"] = spec.label_column;
  }
  if (spec.decimal_comma) text["decimal"] = ",";
  return text.dump(-1, ' ', false, json::error_handler_t::replace);
}

ImageSetSpec ImageSetSpecFromText(const std::string& text, const std::string& origin) {
  try {
    return Read(text, origin);
  } catch (const ConfigError& error) {
    throw DataError(error.what(), error.hint());
  }
}

void MeasurePixels(const LabelledImages& images, ImageSetSpec& spec) {
  const int64_t channels = spec.image_shape[0];
  const int64_t pixels = spec.image_shape.CountFrom(1);
  const auto samples = static_cast<int64_t>(images.labels.size());
  std::vector<double> means, deviations;  // floats, as in PyTorch
  for (int64_t c = 0; c < channels; ++c) {
    uint64_t sum = 0, squares = 0;
    for (int64_t i = 0; i < samples; ++i) {
      const uint8_t* from = images.images.data() + (i * channels + c) * pixels;
      for (int64_t p = 0; p < pixels; ++p) {
        sum += from[p];
        squares += static_cast<uint64_t>(from[p]) * from[p];
      }
    }
    const double count = static_cast<double>(samples) * static_cast<double>(pixels);
    const double mean = static_cast<double>(sum) / count / 255;
    const double variance = static_cast<double>(squares) / count / (255.0 * 255.0) - mean * mean;
    means.push_back(static_cast<float>(mean));
    // A constant channel carries no information, whatever its divisor.
    deviations.push_back(variance > 1e-9 ? static_cast<float>(std::sqrt(variance)) : 1.0f);
  }
  spec.mean = PerChannel(std::move(means));
  spec.deviation = PerChannel(std::move(deviations));
}

}  // namespace dtrain
