#include "framework/core/printable.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "framework/core/log.h"

namespace dtrain {
namespace {

struct Case {
  std::string text, shown;
};

// These are ESC, line ends, DEL and the C1 controls (the same codes in the upper half of Latin-1),
// which some terminals obey as well.
TEST(Printable, ControlCharactersAreShownAsJsonWritesThem) {
  for (const auto& [text, shown] :
       std::initializer_list<Case>{{"caf\u00e9 \u4e2d \U0001F600", "caf\u00e9 \u4e2d \U0001F600"},
                                   {"\x1b[31mred", "\\u001b[31mred"},
                                   {"a\rb\nc\td", "a\\u000db\\u000ac\\u0009d"},
                                   {"\x7f", "\\u007f"},
                                   {"\u009b31m\u0085", "\\u009b31m\\u0085"},
                                   {std::string("a\0b", 3), "a\\u0000b"},
                                   {"C:\\x", "C:\\x"}}) {
    EXPECT_EQ(Printable(text), shown);
  }
}

TEST(Printable, BytesThatAreNoUtf8AreShown) {
  EXPECT_EQ(Printable("a\x9b\xff"), "a\\x9b\\xff");
  EXPECT_EQ(Printable("\xc0\x9b"), "\\xc0\\x9b") << "an overlong ESC";
  EXPECT_EQ(Printable("\xe4\xb8"), "\\xe4\\xb8") << "cut off";
}

TEST(Printable, LinesStayLines) {
  EXPECT_EQ(PrintableText("a\tb\n\x1b]0;title\x07\r\n"), "a\tb\n\\u001b]0;title\\u0007\\u000d\n");
}

TEST(Printable, WhatIsJsonStaysTheSameJson) {
  const std::string name = "\x1b\u009b\x7f\u0085 \"quoted\" \\ \n";
  const std::string shown = PrintableText(JsonText(nlohmann::json{{"name", name}}));
  EXPECT_EQ(shown.find('\x1b'), std::string::npos);
  EXPECT_EQ(shown.find("\u009b"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(shown)["name"], name);
}

TEST(Printable, JsonOfBytesThatAreNoUtf8IsWritten) {
  EXPECT_EQ(JsonText(nlohmann::json("a\xff")), "\"a\ufffd\"");
}

TEST(PrintableOutput, FiltersAStreamWhileItLives) {
  std::ostringstream out;
  {
    const PrintableOutput printable(out);
    out << "\x1b[1m" << 7 << std::flush;
  }
  out << "\x1b";
  EXPECT_EQ(out.str(), "\\u001b[1m7\x1b");
}

// A character may be split over two writes, and the last write may end inside one.
TEST(PrintableOutput, CharactersAreWholeHoweverTheyAreWritten) {
  std::ostringstream out;
  {
    const PrintableOutput printable(out);
    for (const char c : std::string("\u4e2d\u009b")) out.put(c);
    out << "\xe4"
        << "\xb8"
        << "\xad"
        << "\xe4\xb8" << std::flush;
  }
  EXPECT_EQ(out.str(), "\u4e2d\\u009b\u4e2d\\xe4\\xb8");
}

TEST(PrintableOutput, AWriteThatFailsIsRemembered) {
  class Full : public std::streambuf {
  } full;
  std::ostream out(&full);
  {
    const PrintableOutput printable(out);
    out << "text";
  }
  EXPECT_FALSE(out.good());
}

TEST(Log, ControlCharactersOfAMessageAreShown) {
  testing::internal::CaptureStderr();
  log::Warning("no file {}", "\x1b[2J\u009bx");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("no file \\u001b[2J\\u009bx\n"),
            std::string::npos);
}

}  // namespace
}  // namespace dtrain
