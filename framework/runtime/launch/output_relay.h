// What mpirun and its ranks write, on its way to this process's terminal: here it comes together with rank 0's
// status line and with what the supervisor says itself, so that nothing is glued to the line and the line is as
// wide as the terminal is, which the ranks cannot see.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace dtrain {

// Takes the records of status lines (core/status_line.h) out of a stream of text.
class RecordReader {
 public:
  // Shows the newest line, and returns what of it is text for the terminal.  A record that came in chunks, with
  // another rank's text between them, is none any more: all of it is text then.
  std::string Take(std::string_view chunk);
  // Once no more comes: what is left.
  std::string TakeRest();

 private:
  void Flush(std::string& text);

  bool within_ = false;  // what may be a record
  std::string record_;
};

class OutputRelay {
 public:
  // Null where stderr shows no status line: the programs may then write to it themselves.
  static std::unique_ptr<OutputRelay> ToTerminal();
  // When who writes has ended: passes on what is left.
  ~OutputRelay();
  OutputRelay(const OutputRelay&) = delete;

  // Where the programs are to write; -1: to this process's stdout, which is no terminal.
  int out() const { return out_.write; }
  int err() const { return err_.write; }
  // Once they have these, or have not started.
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
