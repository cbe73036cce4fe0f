#include "framework/core/text.h"

#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <numeric>

#include <fmt/format.h>

namespace dtrain {

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string joined;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) joined += separator;
    joined += parts[i];
  }
  return joined;
}

bool ConsistsOf(std::string_view text, std::string_view besides_letters_and_digits) {
  return !text.empty() && std::ranges::all_of(text, [&](unsigned char c) {
    return std::isalnum(c) != 0 || besides_letters_and_digits.find(c) != std::string_view::npos;
  });
}

std::string ShellWord(const std::string& text) {
  // Braces are plain to bash unless they hold a comma or two dots.
  const bool plain = ConsistsOf(text, "._-/=:,+@%{}") && text.find('{') == std::string::npos;
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string Counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string NearestName(std::string_view name, const std::vector<std::string>& candidates) {
  std::string nearest;
  int best = std::max<int>(1, static_cast<int>(name.size()) / 2);
  for (const std::string& candidate : candidates) {
    // The distance is at least the difference of lengths.
    if (std::abs(std::ssize(candidate) - std::ssize(name)) > best) continue;
    const int distance = EditDistance(name, candidate);
    if (distance < best || (distance == best && nearest.empty())) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view meant) {
  return meant.empty() ? "" : fmt::format("did you mean '{}'?  ", meant);
}

std::string SuggestName(std::string_view name, const std::vector<std::string>& candidates) {
  return DidYouMean(NearestName(name, candidates)) + "allowed: " + Join(candidates);
}

bool NameMatches(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::string HumanBytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (std::abs(bytes) >= 1000 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

// Computes in doubles, since a large double may not fit an integer.
std::string HumanSeconds(double seconds) {
  if (seconds < 60 || !std::isfinite(seconds)) return fmt::format("{:.1f} s", seconds);
  const double whole = std::round(seconds), hours = std::floor(whole / 3600);
  const double minutes = std::floor(std::fmod(whole, 3600) / 60), rest = std::fmod(whole, 60);
  if (hours == 0) return fmt::format("{:.0f}:{:02.0f}", minutes, rest);
  return fmt::format("{:.0f}:{:02.0f}:{:02.0f}", hours, minutes, rest);
}

std::string TimeLeft(double seconds) {
  constexpr double kLongest = 365.0 * 24 * 3600;
  // Both comparisons are false for NaN.
  return seconds >= 0 && seconds <= kLongest ? HumanSeconds(seconds) + " left" : "";
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string Hex(const uint8_t* bytes, size_t count) {
  std::string text;
  text.reserve(2 * count);
  for (size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

}  // namespace dtrain
