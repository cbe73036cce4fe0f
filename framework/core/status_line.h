// The status line: the terminal's last line, on stderr, in which a long command says how far it is.  It is
// rewritten in place, never scrolls, and is as wide as the terminal is at that moment.
//
// A process owns its terminal's line: who writes there stands aside of it (Aside), as the log does, so that no
// text comes behind it.  A rank has no terminal; it sends the parts of the line among its stderr
// (Encode), and the supervisor, where the output of all ranks comes together, shows them.
#pragma once

#include <signal.h>

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace dtrain::status_line {

// One fact of the line.  Two blanks stand between two of them.
struct Part {
  std::string text;
  int keep = 0;     // where they do not all fit, the part with the least goes first, as a whole
  double bar = -1;  // the fraction that is done: a bar instead of the text, shorter before it goes
};

enum class Place { kNowhere, kTerminal, kSupervisor };

// The variable by which a supervisor tells its ranks that it shows their line: "1".
inline constexpr char kProgressVariable[] = "DTRAIN_PROGRESS";

// Where this process's line is shown: nowhere with --quiet, or where stderr is a file, a pipe or a
// terminal that cannot erase.
Place WhereTo();

// How long the line may be now: less than the terminal is wide, so that a "^C" has room behind it.  80
// columns where nobody says how many (neither the terminal nor COLUMNS).
int Columns();

// Any thread.  Does nothing where the line is shown nowhere.
void Show(const std::vector<Part>& parts);
void Clear();

// The text of a line, at most so many columns; cut where not even one part fits.
std::string Fit(std::vector<Part> parts, int columns, bool color = false);

// For the way to the supervisor: a record that begins with kRecord and ends with a newline.
inline constexpr char kRecord = '\x1e';
std::string Encode(const std::vector<Part>& parts);
std::optional<std::vector<Part>> Decode(std::string_view record);  // without both ends

// While it lives, the line is wiped and the calling thread alone writes to the terminal.
class Aside {
 public:
  Aside();

 private:
  std::lock_guard<std::mutex> lock_;
};

// What somebody else wrote to stdout or stderr, passed on to the same terminal.  No line is shown
// behind text that ends within a line.
void Pass(int fd, std::string_view text);

// For signal handlers.  The terminal has shown a "^C": whoever writes next wipes it.
void NoteInterrupt();
// Before the process leaves at once.
void WipeAtOnce();

// For a command that a signal simply ends: the line is wiped before, and the shell's prompt begins a line of
// its own.  Made before other threads start: they take over its mask.
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
