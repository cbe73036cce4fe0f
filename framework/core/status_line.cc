#include "framework/core/status_line.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <ranges>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "framework/core/log.h"
#include "framework/core/printable.h"

namespace dtrain::status_line {
namespace {

constexpr char kWipe[] = "\r\x1b[K";
constexpr char kEndOfPart = '\x1d', kEndOfField = '\x1f';
constexpr int kUsualColumns = 80, kMostColumns = 1000;
constexpr int kFree = 3;  // room for "^C", and the last column, in which some terminals wrap
constexpr int kLongestBar = 14, kShortestBar = 5;
constexpr int kGap = 2;

std::mutex terminal;       // held by the writing thread
int unfinished_of = -1;    // descriptor whose last text did not end a line; -1: none
std::atomic<bool> marked;  // the last line holds text to wipe

bool IsVariable(const char* name, std::string_view value) {
  const char* const found = std::getenv(name);
  return found != nullptr && found == value;
}

bool CanErase() {
  const char* const term = std::getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

bool WantsColor() {
  const char* const no_color = std::getenv("NO_COLOR");
  return no_color == nullptr || *no_color == '\0';
}

// The file is non-blocking if another process that shares it has set O_NONBLOCK.
void WaitUntilWritable(int fd) {
  pollfd to = {fd, POLLOUT, 0};
  ::poll(&to, 1, -1);
}

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      WaitUntilWritable(fd);
      continue;
    }
    if (written <= 0) return;  // the reader is gone
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// Moves the cursor to the begin of an empty line, unless `fd` goes on with its own unfinished line.  REQUIRES:
// `terminal` is held.
void MakeRoom(int fd = -1) {
  const bool wipe = marked.exchange(false);
  if (unfinished_of == fd && fd >= 0) return;
  if (unfinished_of >= 0) {
    WriteAll(STDERR_FILENO, "\n");
  } else if (wipe && ::isatty(STDERR_FILENO) == 1) {
    WriteAll(STDERR_FILENO, kWipe);
  }
  unfinished_of = -1;
}

// Parses text that must be entirely a number; it may be any output of a rank.
template <typename Number>
bool ReadWhole(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

int WidthOf(const Part& part) {
  return part.bar < 0 ? static_cast<int>(part.text.size()) : kShortestBar;
}

int WidthOf(const std::vector<Part>& parts) {
  int width = -kGap;
  for (const Part& part : parts) width += kGap + WidthOf(part);
  return width;
}

std::string BarText(double fraction, int width, bool color) {
  const int full = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * width);
  const std::string done(static_cast<size_t>(full), '#');
  return (color ? "\x1b[32m" + done + "\x1b[0m" : done) +
         std::string(static_cast<size_t>(width - full), '-');
}

}  // namespace

Place WhereTo() {
  if (log::GetLevel() > log::Level::kInfo) return Place::kNowhere;
  if (::isatty(STDERR_FILENO) == 1) return CanErase() ? Place::kTerminal : Place::kNowhere;
  return IsVariable(kProgressVariable, "1") ? Place::kSupervisor : Place::kNowhere;
}

int Columns() {
  winsize size{};
  int columns = 0;
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  const char* const said = std::getenv("COLUMNS");
  if (columns == 0 && said != nullptr) columns = std::atoi(said);
  if (columns <= 0) columns = kUsualColumns;
  return std::clamp(columns - kFree, 1, kMostColumns);
}

std::string Fit(std::vector<Part> parts, int columns, bool color) {
  while (parts.size() > 1 && WidthOf(parts) > columns) {
    // Of equal parts, the last one is dropped.
    const auto least = std::ranges::min_element(parts | std::views::reverse, {}, &Part::keep);
    parts.erase(std::next(least).base());
  }
  const int bar = std::clamp(columns - WidthOf(parts) + kShortestBar, 1, kLongestBar);
  std::string line;
  for (const Part& part : parts) {
    if (!line.empty()) line.append(kGap, ' ');
    line += part.bar < 0 ? part.text : BarText(part.bar, bar, color);
  }
  if (WidthOf(parts) > columns) line.resize(static_cast<size_t>(std::max(columns, 0)));
  return line;
}

void Show(const std::vector<Part>& parts) {
  const Place place = WhereTo();
  if (place == Place::kNowhere) return;
  const std::lock_guard lock(terminal);
  if (place == Place::kSupervisor) return WriteAll(STDERR_FILENO, Encode(parts));
  if (unfinished_of >= 0) return;
  std::vector<Part> printable = parts;
  for (Part& part : printable) part.text = Printable(part.text);
  const std::string line = Fit(std::move(printable), Columns(), WantsColor());
  marked = true;
  WriteAll(STDERR_FILENO, kWipe + line);
}

void Clear() {
  if (WhereTo() == Place::kSupervisor) return Show({});
  const std::lock_guard lock(terminal);
  if (unfinished_of < 0) MakeRoom();
}

std::string Encode(const std::vector<Part>& parts) {
  std::string record(1, kRecord);
  for (const Part& part : parts) {
    record += fmt::format("{}{}{:.3f}{}{}{}", part.keep, kEndOfField, part.bar, kEndOfField,
                          Printable(part.text), kEndOfPart);
  }
  return record + "\n";
}

std::optional<std::vector<Part>> Decode(std::string_view record) {
  std::vector<Part> parts;
  while (!record.empty()) {
    const size_t end = record.find(kEndOfPart);
    const size_t first = record.find(kEndOfField);
    const size_t second = first == record.npos ? first : record.find(kEndOfField, first + 1);
    if (end == record.npos || second == record.npos || second > end) return std::nullopt;
    Part part;
    if (!ReadWhole(record.substr(0, first), part.keep) ||
        !ReadWhole(record.substr(first + 1, second - first - 1), part.bar) ||
        !std::isfinite(part.bar)) {
      return std::nullopt;
    }
    part.text = Printable(record.substr(second + 1, end - second - 1));
    parts.push_back(std::move(part));
    record.remove_prefix(end + 1);
  }
  return parts;
}

Aside::Aside() : lock_(terminal) { MakeRoom(); }

void Pass(int fd, std::string_view text) {
  if (text.empty()) return;
  const std::lock_guard lock(terminal);
  MakeRoom(fd);
  WriteAll(fd, text);
  unfinished_of = text.back() == '\n' ? -1 : fd;
}

void NoteInterrupt() { marked = true; }

void WipeAtOnce() {
  if (!marked.exchange(false) || ::isatty(STDERR_FILENO) == 0) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kWipe, std::strlen(kWipe));
}

WipeOnSignal::WipeOnSignal() {
  if (WhereTo() != Place::kTerminal) return;
  sigemptyset(&set_);
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_DFL) sigaddset(&set_, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &set_, &former_);
  thread_ = std::jthread([set = set_](const std::stop_token& stop) {
    const timespec most = {0, 100'000'000};
    int signal = 0;
    while (!stop.stop_requested() && signal <= 0) signal = ::sigtimedwait(&set, nullptr, &most);
    if (signal <= 0) return;
    // No other thread draws the line again before the process ends.  One that cannot write (Ctrl-S) is not waited for.
    std::unique_lock lock(terminal, std::defer_lock);
    for (int tries = 0; !lock.try_lock() && tries < 20; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    NoteInterrupt();
    WipeAtOnce();
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    ::raise(signal);
  });
}

WipeOnSignal::~WipeOnSignal() {
  if (!thread_.joinable()) return;
  thread_ = {};
  ::pthread_sigmask(SIG_SETMASK, &former_, nullptr);
}

}  // namespace dtrain::status_line
