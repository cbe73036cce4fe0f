#include "framework/data/text/characters.h"

namespace dtrain {
namespace {

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

// Returns the composition of `letter` and the combining `accent`; 0 if it is not in the table.
char32_t Composed(char32_t letter, char32_t accent) {
  for (const Accent& row : kAccents) {
    if (row.combining != accent) continue;
    const size_t place = row.plain.find(letter);
    return place == std::u32string_view::npos ? 0 : row.composed[place];
  }
  return 0;
}

}  // namespace

char32_t LowerCase(char32_t code) {
  if (IsBetween(code, 'A', 'Z')) return code + 0x20;
  if (code < 0xC0) return code;
  if (IsBetween(code, 0xC0, 0xDE)) return code == 0xD7 ? code : code + 0x20;
  if (code == 0x178) return 0xFF;
  if (code == 0x1E9E) return 0xDF;
  // Latin Extended-A consists of pairs; the capital is even or, from U+0139 and from U+0179 on, odd.
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
