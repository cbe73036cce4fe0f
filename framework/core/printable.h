// Makes foreign text safe to print on a terminal.
//
// A name in a file, a folder or another program's message may hold control characters, which would move the cursor,
// change colours or answer for the user.  They are shown as JSON writes them, \u001b, so that JSON stays the same JSON;
// a byte that is no UTF-8 becomes \xff.  The log and standard output apply this to all of their text (log.h,
// PrintableOutput), also when they are a pipe or a file, so code that prints a name need not call it.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace dtrain {

// Returns a name or another part of a line with every control character (Unicode's class Cc) made visible.
std::string Printable(std::string_view text);

// Does the same for lines of text, keeping line feeds and tabs.
std::string PrintableText(std::string_view text);

// Returns a JSON value as text.  Bytes that are no UTF-8 are replaced; nlohmann's own dump would throw.
template <class Json>
std::string JsonText(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// While it lives, all text written to `out` passes through PrintableText.  It buffers nothing but an incomplete UTF-8
// character.
class PrintableOutput : public std::streambuf {
 public:
  explicit PrintableOutput(std::ostream& out);
  ~PrintableOutput() override;
  PrintableOutput(const PrintableOutput&) = delete;

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

 private:
  bool Write(std::string_view text);

  std::ostream& out_;
  std::streambuf* const to_;
  std::string begun_;  // the first bytes of an incomplete character
};

}  // namespace dtrain
