#include "framework/study/settings.h"

#include <algorithm>
#include <cctype>

#include "framework/core/error.h"
#include "framework/core/sha256.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

constexpr size_t kLongestName = 200;  // file systems allow 255 bytes
constexpr size_t kHashDigits = 12;

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

bool IsPlain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string(".,=_+-").find(c) != std::string::npos;
}

}  // namespace

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      parts.emplace_back();
      continue;
    }
    parts.back() += c;
  }
  for (std::string& part : parts) part = Trimmed(part);
  return parts;
}

std::vector<VariedSetting> ReadVariedSettings(const std::vector<std::string>& arguments) {
  std::vector<VariedSetting> settings;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError("--set " + argument + ": expected key=value or key=value,value");
    }
    VariedSetting setting{argument.substr(0, equals), SplitAtCommas(argument.substr(equals + 1))};
    const bool known = std::any_of(settings.begin(), settings.end(),
                                   [&](auto& other) { return other.key == setting.key; });
    if (known) {
      throw UsageError("--set " + setting.key + " is given twice",
                       "list its values: --set " + setting.key + "=A,B");
    }
    // A single empty value is the empty string; in a list an empty element is an error.
    if (setting.values.size() > 1 &&
        std::find(setting.values.begin(), setting.values.end(), "") != setting.values.end()) {
      throw UsageError("--set " + argument + ": there is nothing between two commas",
                       "an empty string is written ''");
    }
    settings.push_back(std::move(setting));
  }
  return settings;
}

std::vector<std::vector<Setting>> Combinations(const std::vector<VariedSetting>& settings) {
  std::vector<std::vector<Setting>> combinations(1);
  for (const VariedSetting& setting : settings) {
    std::vector<std::vector<Setting>> longer;
    for (const std::vector<Setting>& combination : combinations) {
      for (const std::string& value : setting.values) {
        longer.push_back(combination);
        longer.back().push_back({setting.key, value});
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

std::vector<Setting> VariedOf(const std::vector<Setting>& combination,
                              const std::vector<VariedSetting>& settings) {
  std::vector<Setting> varied;
  for (size_t i = 0; i < settings.size(); ++i) {
    if (settings[i].values.size() > 1) varied.push_back(combination[i]);
  }
  return varied;
}

std::vector<std::string> TextsOf(const std::vector<Setting>& settings) {
  std::vector<std::string> texts;
  for (const Setting& setting : settings) texts.push_back(setting.text());
  return texts;
}

std::string FolderNameOf(const std::vector<Setting>& settings) {
  return FolderNameFor(Join(TextsOf(settings), ","));
}

std::string FolderNameFor(const std::string& text) {
  std::string name = text;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !IsPlain(c); }, '_');
  if (name.empty()) return "run";
  if (name.size() <= kLongestName) return name;
  return name.substr(0, kLongestName) + "-" + Sha256::Of(text).substr(0, kHashDigits);
}

std::vector<std::string> ComparedOverrides(const std::string& given,
                                           const std::string& own_strategy,
                                           const std::string& own_compressor) {
  std::vector<std::string> overrides;
  const size_t colon = given.find(':');
  const std::string names = given.substr(0, colon);
  const size_t plus = names.find('+');
  const std::string strategy = names.substr(0, plus);
  const bool other = !strategy.empty() && strategy != own_strategy;
  if (other) overrides.push_back("strategy.name=" + strategy);
  std::string compressor = other ? "none" : own_compressor;
  if (plus != std::string::npos) compressor = names.substr(plus + 1);
  if (compressor != own_compressor) overrides.push_back("compress.name=" + compressor);
  if (colon == std::string::npos) return overrides;
  for (const std::string& key : SplitAtCommas(given.substr(colon + 1))) {
    if (key.empty()) continue;
    // Keys of the compressor are given in full, "compress.density".
    overrides.push_back(key.starts_with("compress.") ? key : "strategy." + key);
  }
  return overrides;
}

}  // namespace dtrain
