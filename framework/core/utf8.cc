#include "framework/core/utf8.h"

#include <algorithm>
#include <array>

#include "framework/core/check.h"

namespace dtrain {
namespace {

// Returns the length of a sequence that begins with `lead`; 0 if none does.
int SequenceLength(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF8) return 4;  // leads from 0xF5 on exceed the last code point
  return 0;
}

// Returns the code point of `bytes`, a lead byte and its continuations.
char32_t Join(std::string_view bytes) {
  constexpr std::array<unsigned char, 5> kLeadBits = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t code = static_cast<unsigned char>(bytes[0]) & kLeadBits[bytes.size()];
  for (const char byte : bytes.substr(1))
    code = code << 6 | (static_cast<unsigned char>(byte) & 0x3F);
  return code;
}

bool Continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

bool IsValidSequence(std::string_view bytes) {
  if (!std::all_of(bytes.begin() + 1, bytes.end(), Continues)) return false;
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const char32_t code = Join(bytes);
  return code >= kSmallest[bytes.size()] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
}

}  // namespace

size_t FirstCharacterBytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto length = static_cast<size_t>(SequenceLength(static_cast<unsigned char>(text[0])));
  if (length > text.size() || length == 0 || !IsValidSequence(text.substr(0, length))) return 0;
  return length;
}

bool IsBegunCharacter(std::string_view text) {
  if (text.empty()) return false;
  const auto length = static_cast<size_t>(SequenceLength(static_cast<unsigned char>(text[0])));
  return length > text.size() && std::all_of(text.begin() + 1, text.end(), Continues);
}

std::optional<size_t> FindInvalidUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = FirstCharacterBytes(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::u32string DecodeUtf8(std::string_view text) {
  std::u32string codes;
  for (size_t at = 0; at < text.size();) {
    const size_t length = static_cast<size_t>(SequenceLength(static_cast<unsigned char>(text[at])));
    DT_CHECK(length > 0) << "invalid UTF-8 at byte " << at;
    codes += Join(text.substr(at, length));
    at += length;
  }
  return codes;
}

void AppendUtf8(char32_t code, std::string& text) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | code >> 12);
    for (const int shift : {6, 0}) tail(shift);
  } else {
    text += static_cast<char>(0xF0 | code >> 18);
    for (const int shift : {12, 6, 0}) tail(shift);
  }
}

std::string EncodeUtf8(std::u32string_view codes) {
  std::string text;
  for (const char32_t code : codes) AppendUtf8(code, text);
  return text;
}

}  // namespace dtrain
