#include "framework/data/text/utf8.h"

#include <algorithm>
#include <array>

#include "framework/core/check.h"

namespace dtrain {
namespace {

// How many bytes a sequence that begins with `lead` has; 0: none can.
int SequenceLength(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF8) return 4;  // from 0xF5 on above the last code point
  return 0;
}

// The code point of `bytes`, a lead and its continuations.
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

bool IsBetween(char32_t code, char32_t first, char32_t last) {
  return code >= first && code <= last;
}

struct Accent {
  char32_t combining;
  std::u32string_view plain;
  std::u32string_view composed;
};

constexpr Accent kAccents[] = {
    {0x300, U"aeiouAEIOU", U"àèìòùÀÈÌÒÙ"},
    {0x301, U"aeiouyAEIOUY", U"áéíóúýÁÉÍÓÚÝ"},
    {0x302, U"aeiouAEIOU", U"âêîôûÂÊÎÔÛ"},
    {0x303, U"anoANO", U"ãñõÃÑÕ"},
    {0x308, U"aeiouyAEIOU", U"äëïöüÿÄËÏÖÜ"},
    {0x30A, U"aA", U"åÅ"},
    {0x327, U"cC", U"çÇ"},
};

// What `letter` and the combining `accent` make; 0: nothing that is known here.
char32_t Composed(char32_t letter, char32_t accent) {
  for (const Accent& row : kAccents) {
    if (row.combining != accent) continue;
    const size_t place = row.plain.find(letter);
    return place == std::u32string_view::npos ? 0 : row.composed[place];
  }
  return 0;
}

}  // namespace

std::optional<size_t> FindInvalidUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = static_cast<size_t>(SequenceLength(static_cast<unsigned char>(text[at])));
    if (length == 0 || at + length > text.size() || !IsValidSequence(text.substr(at, length))) {
      return at;
    }
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

char32_t LowerCase(char32_t code) {
  if (IsBetween(code, 'A', 'Z')) return code + 0x20;
  if (code < 0xC0) return code;
  if (IsBetween(code, 0xC0, 0xDE)) return code == 0xD7 ? code : code + 0x20;
  if (code == 0x178) return 0xFF;
  if (code == 0x1E9E) return 0xDF;
  // Latin Extended-A in pairs, the capital even or, from U+0139 and from U+0179 on, odd.
  if (IsBetween(code, 0x100, 0x137) && code != 0x130 && code != 0x131) return code | 1;
  if (IsBetween(code, 0x14A, 0x177)) return code | 1;
  if (IsBetween(code, 0x139, 0x148) || IsBetween(code, 0x179, 0x17E)) return code + (code & 1);
  if (IsBetween(code, 0x391, 0x3A9)) return code + 0x20;
  if (IsBetween(code, 0x410, 0x42F)) return code + 0x20;
  if (IsBetween(code, 0x400, 0x40F)) return code + 0x50;
  return code;
}

bool IsWordCharacter(char32_t code) {
  if (code < 0x80) {
    return IsBetween(code, '0', '9') || IsBetween(code, 'a', 'z') || IsBetween(code, 'A', 'Z');
  }
  if (code < 0xC0) return code == 0xAA || code == 0xB5 || code == 0xBA;
  const bool symbol = code == 0xD7 || code == 0xF7 || IsBetween(code, 0x2000, 0x2BFF) ||
                      IsBetween(code, 0x3000, 0x303F) || IsBetween(code, 0xFE30, 0xFE4F) ||
                      IsBetween(code, 0x1F000, 0x1FAFF);
  return !symbol && !IsWhiteSpace(code);
}

bool IsWhiteSpace(char32_t code) {
  return code == ' ' || IsBetween(code, 0x09, 0x0D) || code == 0x85 || code == 0xA0 ||
         IsBetween(code, 0x2000, 0x200B) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
         code == 0x3000 || code == 0xFEFF;
}

std::u32string Compose(std::u32string_view codes) {
  std::u32string composed;
  for (const char32_t code : codes) {
    const char32_t one = composed.empty() ? 0 : Composed(composed.back(), code);
    if (one == 0) {
      composed += code;
    } else {
      composed.back() = one;
    }
  }
  return composed;
}

}  // namespace dtrain
