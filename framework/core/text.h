// Small text helpers for messages.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

// "a, b, c"
std::string Join(const std::vector<std::string>& parts, std::string_view separator = ", ");

// Whether all of it are letters and digits of ASCII and these; false for "".
bool ConsistsOf(std::string_view text, std::string_view besides_letters_and_digits);

// One word of a shell command, quoted where it must be.
std::string ShellWord(const std::string& text);

// "1 worker", "4 workers"
std::string Counted(int64_t count, std::string_view noun);

// Levenshtein distance.
int EditDistance(std::string_view a, std::string_view b);

// The candidate nearest to `name`, or "" when none is near enough to be a typing mistake.
std::string NearestName(std::string_view name, const std::vector<std::string>& candidates);

// "did you mean 'x'?  ", before the rest of a hint; "" where nothing is meant.
std::string DidYouMean(std::string_view meant);

// "did you mean 'x'?  allowed: a, b, x" (the first half only when something is near).
std::string SuggestName(std::string_view name, const std::vector<std::string>& candidates);

// Whether `name` is what a pattern of the shell means: * any letters, ? one, [ab] one of these.
bool NameMatches(const std::string& pattern, const std::string& name);

// 1234567 -> "1.2 MB" (powers of 1000, as network and disk makers count).
std::string HumanBytes(double bytes);

// 3725 -> "1:02:05", 65 -> "1:05", 3.2 -> "3.2 s".
std::string HumanSeconds(double seconds);
// An estimate: "1:05 left"; "" for one that says nothing: below 0, beyond a year, infinite or NaN.
std::string TimeLeft(double seconds);

// The name of an enumerator, from those of all of them in their order; "?" for no such number.
template <class Enum>
constexpr std::string_view NameIn(std::initializer_list<std::string_view> names, Enum value) {
  const auto i = static_cast<size_t>(value);
  return i < names.size() ? names.begin()[i] : "?";
}

// Lower-case hexadecimal.
std::string Hex(const uint8_t* bytes, size_t count);

}  // namespace dtrain
