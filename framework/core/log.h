// Logging to stderr: one line a message, with the rank in front when there are several.
//
// Results go to stdout, everything else here.  Control characters of a message are shown (printable.h).  The
// formatting library behind it (spdlog) stays out of this header.  Safe from any thread.
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

namespace dtrain::log {

enum class Level { kDebug, kInfo, kWarning, kError };

void SetLevel(Level level);         // default kInfo
Level GetLevel();                   // the least that is shown
void SetRank(int rank, int ranks);  // ranks other than 0 then say who they are; 1 rank says nothing
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
