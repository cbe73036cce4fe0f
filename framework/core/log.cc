#include "framework/core/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdlib>
#include <memory>

#include "framework/core/printable.h"
#include "framework/core/status_line.h"

namespace dtrain::log {
namespace {

std::string prefix;
std::atomic<bool> first_rank = true;
std::atomic<Level> shown = Level::kInfo;

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    const auto mode =
        std::getenv("NO_COLOR") ? spdlog::color_mode::never : spdlog::color_mode::automatic;
    auto created = std::make_shared<spdlog::logger>(
        "dtrain", std::make_shared<spdlog::sinks::stderr_color_sink_mt>(mode));
    created->set_pattern("%H:%M:%S %^%l%$ %v");
    created->flush_on(spdlog::level::debug);
    return created;
  }();
  return *logger;
}

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void SetLevel(Level level) {
  shown = level;
  Logger().set_level(ToSpdlog(level));
}

Level GetLevel() { return shown; }

void SetRank(int rank, int ranks) {
  prefix = ranks > 1 ? fmt::format("[rank {}] ", rank) : "";
  first_rank = rank == 0;
}

bool IsFirstRank() { return first_rank; }

void Write(Level level, std::string_view text) {
  if (level < shown) return;
  const status_line::Aside aside;
  Logger().log(ToSpdlog(level), "{}{}", prefix, PrintableText(text));
}

}  // namespace dtrain::log
