#include "framework/launch/output_relay.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "framework/core/error.h"
#include "framework/core/status_line.h"
#include "framework/core/time.h"

namespace dtrain {
namespace {

constexpr size_t kLongestRecord = 4096;  // longer ones are not ours
constexpr int kRelayPollMs = 100;
// The time to read the rest of the pipes after mpirun has ended: a program that it left behind may hold them open.
constexpr Nanos kLastWords = FromSeconds(1);

// True for the separators of a record, which a terminal cannot show.
bool IsSeparator(char c) { return c >= '\x1c' && c <= '\x1f'; }

bool ShowLine(std::string_view record) {
  const auto parts = status_line::Decode(record);
  if (!parts) return false;
  if (parts->empty()) {
    status_line::Clear();
  } else {
    status_line::Show(*parts);
  }
  return true;
}

}  // namespace

std::string RecordReader::Take(std::string_view chunk) {
  std::string text;
  for (const char c : chunk) {
    if (c == status_line::kRecord) {
      // A record contains no such character, so the text before was none.  A new line is not drawn after an unfinished
      // line of text.
      if (!record_.empty()) record_ += '\n';
      Flush(text);
      within_ = true;
    } else if (!within_) {
      if (!IsSeparator(c)) text += c;
    } else if (c != '\n') {
      record_ += c;
      if (record_.size() >= kLongestRecord) Flush(text);
    } else if (ShowLine(record_)) {
      record_.clear();
      within_ = false;
    } else {
      record_ += c;
      Flush(text);
    }
  }
  return text;
}

std::string RecordReader::TakeRest() {
  std::string text;
  Flush(text);
  return text;
}

// Passes on the collected text, which was no record.
void RecordReader::Flush(std::string& text) {
  std::erase_if(record_, IsSeparator);
  text += record_;
  record_.clear();
  within_ = false;
}

void OutputRelay::Pipe::Open() {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw UsageError(fmt::format("cannot start mpirun: {}", std::strerror(errno)));
  }
  read = ends[0];
  write = ends[1];
}

void OutputRelay::Pipe::CloseWrite() {
  if (write >= 0) ::close(write);
  write = -1;
}

std::unique_ptr<OutputRelay> OutputRelay::ToTerminal() {
  if (status_line::WhereTo() != status_line::Place::kTerminal) return nullptr;
  return std::unique_ptr<OutputRelay>(new OutputRelay);
}

OutputRelay::OutputRelay() {
  err_.Open();
  if (::isatty(STDOUT_FILENO) == 1) out_.Open();
}

OutputRelay::~OutputRelay() {
  err_.CloseWrite();
  out_.CloseWrite();
  thread_ = {};  // waits for the thread
  for (const int fd : {err_.read, out_.read}) {
    if (fd >= 0) ::close(fd);
  }
  status_line::Clear();
}

void OutputRelay::Start() {
  err_.CloseWrite();
  out_.CloseWrite();
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

// Runs on a thread of its own, since a terminal that is stopped (Ctrl-S) blocks writing.
void OutputRelay::Run(const std::stop_token& stop) {
  Nanos stopped_at = -1;
  for (;;) {
    std::array<pollfd, 2> from = {pollfd{err_.read, POLLIN, 0}, pollfd{out_.read, POLLIN, 0}};
    if (err_.read < 0 && out_.read < 0) return;
    ::poll(from.data(), from.size(), kRelayPollMs);
    if (from[0].revents != 0) Take(err_, STDERR_FILENO);
    if (from[1].revents != 0) Take(out_, STDOUT_FILENO);
    if (!stop.stop_requested()) continue;
    if (stopped_at < 0) stopped_at = WallNow();
    if (WallNow() - stopped_at > kLastWords) return;
  }
}

void OutputRelay::Take(Pipe& pipe, int to) {
  std::array<char, 65536> chunk;
  const ssize_t bytes = ::read(pipe.read, chunk.data(), chunk.size());
  if (bytes < 0 && errno == EINTR) return;
  if (bytes <= 0) {
    if (to == STDERR_FILENO) status_line::Pass(to, records_.TakeRest());
    ::close(pipe.read);
    pipe.read = -1;
    return;
  }
  const std::string_view text(chunk.data(), static_cast<size_t>(bytes));
  status_line::Pass(to, to == STDERR_FILENO ? records_.Take(text) : std::string(text));
}

}  // namespace dtrain
