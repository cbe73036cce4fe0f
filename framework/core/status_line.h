// The status line is the terminal's last line, on stderr, in which a long command shows its progress.  It is rewritten
// in place, never scrolls, and adapts to the terminal's current width.
//
// The process writes all other output to its terminal while the line is wiped (Aside), as the log does, so that no text
// follows the line.  A rank has no terminal; it writes the parts of its line to stderr (Encode), and the supervisor,
// which receives the output of all ranks, shows them.
#pragma once

#include <signal.h>

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace dtrain::status_line {

// Holds one fact of the line.  Two blanks separate the parts.
struct Part {
  std::string text;
  // Priority: if the parts do not all fit, the one with the lowest is dropped first, as a whole.
  int keep = 0;
  // Holds the fraction done: it is shown as a bar instead of the text, which shrinks before parts are dropped; -1: no
  // bar.
  double bar = -1;
};

enum class Place { kNowhere, kTerminal, kSupervisor };

// This is the environment variable that a supervisor sets to "1" for ranks whose line it shows.
inline constexpr char kProgressVariable[] = "DTRAIN_PROGRESS";

// Returns where this process's line is shown: nowhere with --quiet, or if stderr is a file, a pipe or a terminal that
// cannot erase.
Place WhereTo();

// Returns the current limit of the line's length: the terminal's width less room for a "^C".  Assumes 80 columns if
// neither the terminal nor COLUMNS states a width.
int Columns();

// Thread-safe.  Does nothing if the line is shown nowhere.
void Show(const std::vector<Part>& parts);
void Clear();

// Returns the line as text of at most `columns` columns; cuts the last part if it does not fit.
std::string Fit(std::vector<Part> parts, int columns, bool color = false);

// Convert parts to a record for the supervisor, and back.  The record begins with kRecord and ends with a newline.
inline constexpr char kRecord = '\x1e';
std::string Encode(const std::vector<Part>& parts);
// `record` comes without kRecord and newline.
std::optional<std::vector<Part>> Decode(std::string_view record);

// While it lives, the line is wiped and only the calling thread writes to the terminal.
class Aside {
 public:
  Aside();

 private:
  std::lock_guard<std::mutex> lock_;
};

// Writes a child process's output to the same terminal.  No status line is shown after text that does not end a line.
void Pass(int fd, std::string_view text);

// Async-signal-safe.  Notes that the terminal has shown a "^C", which the next writer wipes.
void NoteInterrupt();
// Wipes the line before the process exits without cleaning up.
void WipeAtOnce();

// Wipes the line before a command ends on SIGINT or SIGTERM, so that the shell's prompt begins an empty line.  Create
// it before other threads start, since they inherit its signal mask.
class WipeOnSignal {
 public:
  WipeOnSignal();
  ~WipeOnSignal();
  WipeOnSignal(const WipeOnSignal&) = delete;

 private:
  sigset_t set_ = {}, former_ = {};
  std::jthread thread_;
};

}  // namespace dtrain::status_line
