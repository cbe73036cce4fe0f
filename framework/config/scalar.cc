#include "framework/config/scalar.h"

#include <charconv>
#include <cmath>

namespace dtrain::config {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view WithoutSign(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return text;
}

size_t TakeDigits(std::string_view& text) {
  size_t count = 0;
  while (count < text.size() && IsDigit(text[count])) ++count;
  text.remove_prefix(count);
  return count;
}

// [0-9]+ | 0o[0-7]+ | 0x[0-9a-fA-F]+, the first with a sign.
bool LooksLikeInt(std::string_view text) {
  if (text.starts_with("0o") || text.starts_with("0x")) {
    const char* digits = text[1] == 'o' ? "01234567" : "0123456789abcdefABCDEF";
    return text.size() > 2 && text.find_first_not_of(digits, 2) == std::string_view::npos;
  }
  text = WithoutSign(text);
  return TakeDigits(text) > 0 && text.empty();
}

// [-+]? ( \.[0-9]+ | [0-9]+ (\.[0-9]*)? ) ( [eE] [-+]? [0-9]+ )?
bool LooksLikeFloat(std::string_view text) {
  text = WithoutSign(text);
  size_t digits = TakeDigits(text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    digits += TakeDigits(text);
  }
  if (digits == 0) return false;
  if (text.starts_with('e') || text.starts_with('E')) {
    text = WithoutSign(text.substr(1));
    if (TakeDigits(text) == 0) return false;
  }
  return text.empty();
}

bool OneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

template <class T, class... Format>
bool FromChars(std::string_view text, T& value, Format... format) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, format...);
  return error == std::errc() && stop == end;
}

}  // namespace

ScalarType ResolveScalar(std::string_view text) {
  if (OneOf(text, {"", "~", "null", "Null", "NULL"})) return ScalarType::kNull;
  if (OneOf(text, {"true", "True", "TRUE", "false", "False", "FALSE"})) return ScalarType::kBool;
  if (OneOf(WithoutSign(text), {".inf", ".Inf", ".INF"})) return ScalarType::kNotFinite;
  if (OneOf(text, {".nan", ".NaN", ".NAN"})) return ScalarType::kNotFinite;
  if (LooksLikeInt(text)) return ScalarType::kInt;
  if (LooksLikeFloat(text)) return ScalarType::kFloat;
  return ScalarType::kString;
}

bool ParseInt(std::string_view text, int64_t& value) {
  if (text.starts_with("0o")) return FromChars(text.substr(2), value, 8);
  if (text.starts_with("0x")) return FromChars(text.substr(2), value, 16);
  return FromChars(text, value, 10);
}

bool ParseNumber(std::string_view text, double& value) {
  int64_t whole = 0;
  if (LooksLikeInt(text) && ParseInt(text, whole)) {
    value = static_cast<double>(whole);
    return true;
  }
  return FromChars(text, value);
}

bool HasLeadingZero(std::string_view text) {
  text = WithoutSign(text);
  return text.size() > 1 && text[0] == '0' && IsDigit(text[1]);
}

}  // namespace dtrain::config
