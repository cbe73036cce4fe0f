#include "framework/core/printable.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "framework/core/utf8.h"

namespace dtrain {
namespace {

// True for Unicode's class Cc.
bool IsControl(char32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

void AppendCharacter(std::string_view character, std::string_view kept, std::string& shown) {
  const char32_t code = DecodeUtf8(character)[0];
  if (!IsControl(code) || kept.find(character[0]) != std::string_view::npos) {
    shown += character;
  } else {
    shown += fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
  }
}

// Makes control characters visible, except those in `kept`.
std::string Shown(std::string_view text, std::string_view kept) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = FirstCharacterBytes(text);
    if (bytes > 0) {
      AppendCharacter(text.substr(0, bytes), kept, shown);
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return shown;
}

// Returns the number of bytes, at most three, of an incomplete character at the end.
size_t BegunBytes(std::string_view text) {
  for (size_t bytes = 1; bytes <= 3 && bytes <= text.size(); ++bytes) {
    if (IsBegunCharacter(text.substr(text.size() - bytes))) return bytes;
  }
  return 0;
}

}  // namespace

std::string Printable(std::string_view text) { return Shown(text, ""); }

std::string PrintableText(std::string_view text) { return Shown(text, "\n\t"); }

PrintableOutput::PrintableOutput(std::ostream& out) : out_(out), to_(out.rdbuf(this)) {}

PrintableOutput::~PrintableOutput() {
  const std::string shown = PrintableText(begun_);
  to_->sputn(shown.data(), static_cast<std::streamsize>(shown.size()));
  const auto state = out_.rdstate();
  out_.rdbuf(to_);  // this call clears the error state
  out_.setstate(state);
}

bool PrintableOutput::Write(std::string_view text) {
  const std::string all = begun_ + std::string(text);
  const size_t whole = all.size() - BegunBytes(all);
  begun_ = all.substr(whole);
  const std::string shown = PrintableText(std::string_view(all).substr(0, whole));
  const auto bytes = static_cast<std::streamsize>(shown.size());
  return to_->sputn(shown.data(), bytes) == bytes;
}

PrintableOutput::int_type PrintableOutput::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return Write({&one, 1}) ? c : traits_type::eof();
}

std::streamsize PrintableOutput::xsputn(const char* text, std::streamsize count) {
  return Write({text, static_cast<size_t>(count)}) ? count : 0;
}

int PrintableOutput::sync() { return to_->pubsync(); }

}  // namespace dtrain
