// Passes the output of mpirun and its ranks on to this process's terminal, together with rank 0's status line and the
// supervisor's own messages.  So no output is appended to the status line, and the line fits the width of the terminal,
// which the ranks do not know.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace dtrain {

// Extracts the records of status lines (core/status_line.h) from a stream of text.
class RecordReader {
 public:
  // Shows the newest status line and returns the rest of the chunk, which is text for the terminal.  If text of another
  // rank is between the parts of a record, the record is invalid, and all of it is text.
  std::string Take(std::string_view chunk);
  // Returns the rest after the last chunk.
  std::string TakeRest();

 private:
  void Flush(std::string& text);

  bool within_ = false;  // reading what may be a record
  std::string record_;
};

class OutputRelay {
 public:
  // Returns null if stderr shows no status line: the programs may then write to it themselves.
  static std::unique_ptr<OutputRelay> ToTerminal();
  // Passes on the remaining output.  Call it after the writing programs have ended.
  ~OutputRelay();
  OutputRelay(const OutputRelay&) = delete;

  // Return the descriptors that the programs write to.  -1: this process's stdout, which is no terminal then.
  int out() const { return out_.write; }
  int err() const { return err_.write; }
  // Starts the thread.  Call it once the programs have these descriptors, or have failed to start.
  void Start();

 private:
  struct Pipe {
    int read = -1, write = -1;
    void Open();
    void CloseWrite();
  };

  OutputRelay();
  void Run(const std::stop_token& stop);
  void Take(Pipe& pipe, int to);

  Pipe out_, err_;
  RecordReader records_;
  std::jthread thread_;
};

}  // namespace dtrain
