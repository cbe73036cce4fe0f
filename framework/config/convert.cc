#include "framework/config/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "framework/config/other_tools.h"
#include "framework/core/text.h"

namespace dtrain::config {
namespace {

// A value's node and name, for the messages about it.
struct Context {
  const Tree& tree;
  const std::string& path;
  Diagnostics& diagnostics;

  bool Refuse(const std::string& message, const std::string& hint = "") const {
    if (tree.argument.empty()) {
      diagnostics.Note(tree.place, path + " " + message, hint);
    } else if (!diagnostics.Noted(tree.place)) {  // one argument may set several keys
      diagnostics.Note(tree.place,
                       fmt::format("argument '{}', {}, {}", tree.argument, path, message), hint);
    }
    return false;
  }
};

std::string Describe(const Tree& tree) {
  switch (tree.kind) {
    case Tree::Kind::kNull:
      return "nothing";
    case Tree::Kind::kList:
      return "a list";
    case Tree::Kind::kMap:
      return "a section";
    default:
      return "'" + tree.text + "'";
  }
}

ScalarType TypeOf(const Tree& tree) {
  return tree.quoted ? ScalarType::kString : ResolveScalar(tree.text);
}

bool ConvertScalar(const Context& at, bool& value) {
  if (TypeOf(at.tree) != ScalarType::kBool) {
    return at.Refuse("must be true or false, found " + Describe(at.tree));
  }
  value = at.tree.text[0] == 't' || at.tree.text[0] == 'T';
  return true;
}

// YAML 1.1 reads 010 as eight, YAML 1.2 as ten; users should not need to know.
bool RefuseLeadingZero(const Context& at) {
  const std::string& text = at.tree.text;
  const size_t digits = text.find_first_not_of("+-0");
  return at.Refuse(fmt::format("must not begin with 0, found '{}'", text),
                   digits == std::string::npos ? "write 0" : "write " + text.substr(digits));
}

std::string WholeNumberHint(const std::string& text) {
  double number = 0;
  if (!ParseNumber(text, number) || number != std::floor(number) || std::abs(number) > 1e15) {
    return "";
  }
  return fmt::format("write {}", static_cast<int64_t>(number));
}

bool ConvertScalar(const Context& at, int64_t& value) {
  const std::string& text = at.tree.text;
  const ScalarType type = TypeOf(at.tree);
  if (type == ScalarType::kFloat) {
    return at.Refuse("must be an integer, found '" + text + "'", WholeNumberHint(text));
  }
  if (type != ScalarType::kInt) {
    return at.Refuse("must be an integer, found " + Describe(at.tree));
  }
  if (HasLeadingZero(text)) return RefuseLeadingZero(at);
  if (!ParseInt(text, value)) return at.Refuse("does not fit into 64 bits, found '" + text + "'");
  return true;
}

bool ConvertScalar(const Context& at, double& value) {
  const std::string& text = at.tree.text;
  const ScalarType type = TypeOf(at.tree);
  if (type == ScalarType::kNotFinite) {
    return at.Refuse("must be a finite number, found '" + text + "'");
  }
  if (type != ScalarType::kInt && type != ScalarType::kFloat) {
    return at.Refuse("must be a number, found " + Describe(at.tree));
  }
  if (HasLeadingZero(text)) return RefuseLeadingZero(at);
  if (!ParseNumber(text, value)) {
    return at.Refuse("is outside the range of 64-bit numbers, found '" + text + "'");
  }
  return true;
}

bool ConvertScalar(const Context& at, std::string& value) {
  const bool is_text =
      at.tree.kind == Tree::Kind::kScalar && TypeOf(at.tree) == ScalarType::kString;
  if (!is_text) {
    const bool scalar = at.tree.kind == Tree::Kind::kScalar;
    return at.Refuse("must be a string, found " + Describe(at.tree),
                     scalar ? "put it in quotes: \"" + at.tree.text + "\"" : "");
  }
  value = at.tree.text;
  return true;
}

template <class T>
bool ConvertTo(const Context& at, T& value) {
  return at.tree.kind != Tree::Kind::kRefused && ConvertScalar(at, value);
}

template <class T>
bool ConvertTo(const Context& at, std::vector<T>& list) {
  if (at.tree.kind == Tree::Kind::kRefused) return false;
  list.clear();
  // A single string or integer is a list of one.  Lists of numbers have a value per worker, layer or channel.
  if (!std::is_same_v<T, double> && at.tree.kind == Tree::Kind::kScalar) {
    return ConvertScalar(at, list.emplace_back());
  }
  if (at.tree.kind != Tree::Kind::kList) {
    const bool scalar = at.tree.kind == Tree::Kind::kScalar;
    return at.Refuse(fmt::format("must be a {}, found {}", TypeName(list), Describe(at.tree)),
                     scalar ? "write [" + at.tree.text + "]" : "");
  }
  bool right = true;
  for (size_t i = 0; i < at.tree.items.size(); ++i) {
    const std::string element = fmt::format("{}[{}]", at.path, i);
    right &= ConvertTo(Context{at.tree.items[i], element, at.diagnostics}, list.emplace_back());
  }
  return right;
}

bool CheckElement(const Context& at, double value, const Limits& limits) {
  for (const Limit& limit : limits.bounds) {
    if (!limit.Allows(value)) {
      return at.Refuse(fmt::format("must be {}, found {}", limits.Text(), value));
    }
  }
  return true;
}

bool CheckElement(const Context& at, const std::string& value, const Limits& limits) {
  for (const std::string& name : limits.names) {
    if (name == value) return true;
  }
  if (limits.names.empty()) return true;
  for (const auto& [key, names] : limits.others) {
    if (std::ranges::find(names, value) == names.end()) continue;
    return at.Refuse("has no choice '" + value + "'",
                     fmt::format("it is a choice of another key: {}: {}; allowed here: {}", key,
                                 value, Join(limits.names)));
  }
  return at.Refuse("has no choice '" + value + "'", SuggestChoice(value, limits.names));
}

template <class T>
bool CheckAll(const Context& at, const T& value, const Limits& limits) {
  return CheckElement(at, value, limits);
}

template <class T>
bool CheckAll(const Context& at, const std::vector<T>& list, const Limits& limits) {
  bool right = true;
  for (size_t i = 0; i < list.size(); ++i) {
    const bool single = at.tree.kind != Tree::Kind::kList;  // a scalar read as a list of one
    const std::string element = single ? at.path : fmt::format("{}[{}]", at.path, i);
    const Context context{single ? at.tree : at.tree.items[i], element, at.diagnostics};
    right &= CheckElement(context, list[i], limits);
  }
  return right;
}

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

// True for [0-9]+ | 0o[0-7]+ | 0x[0-9a-fA-F]+; the first may have a sign.
bool LooksLikeInt(std::string_view text) {
  if (text.starts_with("0o") || text.starts_with("0x")) {
    const char* digits = text[1] == 'o' ? "01234567" : "0123456789abcdefABCDEF";
    return text.size() > 2 && text.find_first_not_of(digits, 2) == std::string_view::npos;
  }
  text = WithoutSign(text);
  return TakeDigits(text) > 0 && text.empty();
}

// True for [-+]? ( \.[0-9]+ | [0-9]+ (\.[0-9]*)? ) ( [eE] [-+]? [0-9]+ )?
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

std::optional<Value> Convert(const Tree& tree, const Value& like, const std::string& path,
                             Diagnostics& diagnostics) {
  Value result = like;
  const auto convert = [&](auto& value) {
    return ConvertTo(Context{tree, path, diagnostics}, value);
  };
  if (!std::visit(convert, result)) return std::nullopt;
  return result;
}

bool CheckLimits(const Value& value, const Tree& tree, const Limits& limits,
                 const std::string& path, Diagnostics& diagnostics) {
  const auto check = [&](const auto& elements) {
    return CheckAll(Context{tree, path, diagnostics}, elements, limits);
  };
  return std::visit(check, value);
}

std::string TypeName(const Value& value) {
  static constexpr const char* kNames[] = {"true or false",  "integer",          "number",
                                           "string",         "list of integers", "list of numbers",
                                           "list of strings"};
  return kNames[value.index()];
}

}  // namespace dtrain::config
