// Logs to stderr: one line per message, with the rank in front if there are several.
//
// Results go to stdout, everything else here.  Control characters of a message are made visible (printable.h).  The
// header does not include the formatting library (spdlog).  All functions are thread-safe.
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

namespace dtrain::log {

enum class Level { kDebug, kInfo, kWarning, kError };

void SetLevel(Level level);  // default kInfo
Level GetLevel();            // messages below it are not shown
// Prefixes messages with "[rank N] " if there are several ranks.
void SetRank(int rank, int ranks);
bool IsFirstRank();  // for what all ranks would say alike
void Write(Level level, std::string_view text);

template <class... Args>
void Debug(fmt::format_string<Args...> format, Args&&... args) {
  Write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void Info(fmt::format_string<Args...> format, Args&&... args) {
  Write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void Warning(fmt::format_string<Args...> format, Args&&... args) {
  Write(Level::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void Error(fmt::format_string<Args...> format, Args&&... args) {
  Write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace dtrain::log
