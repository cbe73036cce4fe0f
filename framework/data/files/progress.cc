#include "framework/data/files/download.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "framework/core/log.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

constexpr Nanos kRedraw = 100'000'000;
constexpr const char* kEraseLine = "\r\x1b[K";

bool IsTerminal() {
  const char* term = std::getenv("TERM");
  if (log::GetLevel() > log::Level::kInfo) return false;
  return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string(term) != "dumb";
}

bool WantsColor() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color == nullptr || *no_color == '\0';
}

int TerminalWidth() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string Bar(double fraction, int width, bool color) {
  const int full = static_cast<int>(fraction * width);
  std::string bar(full, '#');
  if (color) bar = "\x1b[32m" + bar + "\x1b[0m";
  return "[" + bar + std::string(width - full, '-') + "]";
}

}  // namespace

std::string ProgressLine(const std::string& label, int64_t done, int64_t total,
                         double bytes_per_second, int width, bool color) {
  const double bytes = static_cast<double>(done);
  std::string facts = HumanBytes(bytes);
  double fraction = 0;
  if (total > 0) {
    fraction = std::clamp(bytes / static_cast<double>(total), 0.0, 1.0);
    facts = fmt::format("{:3.0f} %  {} of {}", 100 * fraction, facts, HumanBytes(total));
  }
  if (bytes_per_second > 0) {
    facts += fmt::format("  {}/s", HumanBytes(bytes_per_second));
    const double left = (static_cast<double>(total) - bytes) / bytes_per_second;
    if (total > 0 && left >= 0) facts += fmt::format("  ETA {}", HumanSeconds(left));
  }
  const int room = width - static_cast<int>(label.size() + facts.size()) - 6;
  if (total <= 0 || room < 8) return fmt::format("{}  {}", label, facts).substr(0, width);
  return fmt::format("{}  {}  {}", label, Bar(fraction, std::min(room, 30), color), facts);
}

ProgressBar::ProgressBar(std::string label, int64_t total)
    : label_(std::move(label)), total_(total), terminal_(IsTerminal()), color_(WantsColor()) {}

ProgressBar::~ProgressBar() {
  if (drawn_ != 0) std::fputs(kEraseLine, stderr);
}

void ProgressBar::Update(int64_t done, Nanos now) {
  if (!terminal_) return;
  if (first_done_ < 0) {
    first_done_ = done;
    started_ = now;
  }
  if (now - drawn_ < kRedraw) return;
  drawn_ = now;
  const double seconds = ToSeconds(now - started_);
  const double rate = seconds > 0.2 ? static_cast<double>(done - first_done_) / seconds : 0;
  const std::string line = ProgressLine(label_, done, total_, rate, TerminalWidth() - 1, color_);
  std::fputs((kEraseLine + line).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace dtrain
