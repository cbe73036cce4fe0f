// Text from outside, as a terminal may get it.
//
// A name in a file, a folder or a message of somebody else may hold control characters, which would move the
// cursor, change colours or answer for the user.  They are shown as JSON writes them, \u001b, so that what is JSON
// stays the same JSON; a byte that is no UTF-8 becomes \xff.  The log and standard output do this to all of their
// text (log.h, PrintableOutput), into a pipe or a file as well: nobody calls it where a name is printed.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace dtrain {

// A name or another part of a line: every control character (Unicode's class Cc) is shown.
std::string Printable(std::string_view text);

// Lines of text: all but the line feed and the tab.
std::string PrintableText(std::string_view text);

// The text of a JSON value.  A name may hold bytes that are no UTF-8: they are replaced, where nlohmann's own dump
// would throw.
template <class Json>
std::string JsonText(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// While it lives, what is written to `out` is PrintableText.  Nothing is kept back but the begin of a character.
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
  std::string begun_;  // of a character whose other bytes are to come
};

}  // namespace dtrain
