#include "framework/results/run_files.h"

#include <cmath>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dtrain {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::optional<double> FiniteOf(const json& value) {
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<double> NumberIn(const json& object, const std::string& key) {
  const auto at = object.find(key);
  return at == object.end() ? std::nullopt : FiniteOf(*at);
}

std::string TextIn(const json& object, const std::string& key) {
  const auto at = object.find(key);
  return at == object.end() || !at->is_string() ? "" : at->get<std::string>();
}

std::vector<double> NumbersIn(const json& object, const std::string& key) {
  std::vector<double> numbers;
  const auto at = object.find(key);
  if (at == object.end() || !at->is_array()) return numbers;
  for (const json& entry : *at) {
    if (const auto number = FiniteOf(entry)) numbers.push_back(*number);
  }
  return numbers;
}

double Shortened(double value) {
  return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
}

int64_t ForEachLine(const fs::path& path, const std::function<void(const json&)>& use) {
  int64_t damaged = 0;
  if (!fs::is_regular_file(path)) return damaged;
  std::ifstream lines(path, std::ios::binary);
  for (std::string line; std::getline(lines, line);) {
    const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_object()) {
      use(object);
    } else if (!lines.eof()) {  // the last line may still be incomplete
      ++damaged;
    }
  }
  return damaged;
}

std::optional<json> ReadJsonObject(const fs::path& path) {
  if (!fs::is_regular_file(path)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  json object = json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  return object;
}

}  // namespace dtrain
