// Declares small text functions for messages.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

// Returns "a, b, c".
std::string Join(const std::vector<std::string>& parts, std::string_view separator = ", ");

// True if `text` is not empty and consists of ASCII letters, ASCII digits and these other characters.
bool ConsistsOf(std::string_view text, std::string_view besides_letters_and_digits);

// Returns one word of a shell command, quoted if necessary.
std::string ShellWord(const std::string& text);

// Returns "1 worker", "4 workers".
std::string Counted(int64_t count, std::string_view noun);

// Returns the Levenshtein distance.
int EditDistance(std::string_view a, std::string_view b);

// Returns the candidate nearest to `name`, or "" if none is near enough to be a typing error.
std::string NearestName(std::string_view name, const std::vector<std::string>& candidates);

// Returns "did you mean 'x'?  ", to precede the rest of a hint; "" for an empty `meant`.
std::string DidYouMean(std::string_view meant);

// Returns "did you mean 'x'?  allowed: a, b, x" (without the first half if no candidate is near).
std::string SuggestName(std::string_view name, const std::vector<std::string>& candidates);

// True if `name` matches a shell pattern: * any letters, ? one, [ab] one of these.
bool NameMatches(const std::string& pattern, const std::string& name);

// Returns "1.2 MB" for 1234567 (powers of 1000, as network and disk makers count).
std::string HumanBytes(double bytes);

// Returns "1:02:05" for 3725, "1:05" for 65, "3.2 s" for 3.2.
std::string HumanSeconds(double seconds);
// Returns an estimate, "1:05 left"; "" for a useless one: negative, beyond a year, infinite or NaN.
std::string TimeLeft(double seconds);

// Returns an enumerator's name; `names` has all of them in order.  "?" for an unknown value.
template <class Enum>
constexpr std::string_view NameIn(std::initializer_list<std::string_view> names, Enum value) {
  const auto i = static_cast<size_t>(value);
  return i < names.size() ? names.begin()[i] : "?";
}

// Returns one field of a CSV line, quoted if necessary (RFC 4180).
std::string CsvField(const std::string& text);

// Returns lower-case hexadecimal digits.
std::string Hex(const uint8_t* bytes, size_t count);

}  // namespace dtrain
