#include "framework/runtime/run/config_diff.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include <fmt/format.h>

namespace dtrain {
namespace {

constexpr char kNone[] = "(none)";

struct Setting {
  std::string path;  // "solver.schedule.name"
  std::string value;
};

// The dump has one line a key, and a section's keys stand two columns further in.
std::vector<Setting> SettingsOf(const std::string& yaml) {
  std::vector<Setting> settings;
  std::vector<std::string> sections;
  std::map<std::string, int> items;  // of lists, by path
  std::istringstream lines(yaml);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(" -");
    const size_t colon = line.find(':');
    if (begin == std::string::npos || colon == std::string::npos || colon < begin) continue;
    sections.resize(std::min(sections.size(), begin / 2));
    std::string path;
    for (const std::string& section : sections) path += section + ".";
    if (line.find('-') < begin) ++items[path];
    if (items.contains(path)) path += fmt::format("{}.", items[path] - 1);
    const std::string key = line.substr(begin, colon - begin);
    if (colon + 1 >= line.size()) {
      sections.push_back(key);
    } else {
      settings.push_back({path + key, line.substr(colon + 2)});
    }
  }
  return settings;
}

std::string ValueOf(const std::vector<Setting>& settings, const std::string& path) {
  const auto found = std::ranges::find(settings, path, &Setting::path);
  return found == settings.end() ? kNone : found->value;
}

int PlaceOf(const Setting& setting) {
  if (setting.path == "seed") return 0;
  if (setting.path == "strategy.name") return 1;
  return setting.path.starts_with("strategy.") || setting.path.starts_with("compress.") ? 2 : 3;
}

}  // namespace

std::string ConfigDiff(const std::string& before, const std::string& now) {
  const std::vector<Setting> old = SettingsOf(before), current = SettingsOf(now);
  std::vector<Setting> all = old;
  for (const Setting& setting : current) {
    if (ValueOf(old, setting.path) == kNone) all.push_back(setting);
  }
  std::ranges::stable_sort(all, {}, PlaceOf);
  std::string diff;
  for (const Setting& setting : all) {
    const std::string was = ValueOf(old, setting.path), is = ValueOf(current, setting.path);
    if (was == is || setting.path == "output") continue;
    diff += fmt::format("  {}: {} -> {}\n", setting.path, was, is);
  }
  return diff;
}

}  // namespace dtrain
