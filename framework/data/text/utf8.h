// UTF-8 text (RFC 3629): checking, code points, and what a tokeniser needs of Unicode - lower case
// and composition for the scripts of European languages.  Other characters stay as they are.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

// Byte position of the first thing that is no UTF-8 (overlong forms and surrogates included).
std::optional<size_t> FindInvalidUtf8(std::string_view text);

// The code points of valid UTF-8.
std::u32string DecodeUtf8(std::string_view text);
void AppendUtf8(char32_t code, std::string& text);
std::string EncodeUtf8(std::u32string_view codes);

// Latin, Greek and Cyrillic letters; German's capital sharp s as well.
char32_t LowerCase(char32_t code);
// A letter or a digit of any script; not punctuation, a symbol or white space.
bool IsWordCharacter(char32_t code);
bool IsWhiteSpace(char32_t code);

// A letter followed by a combining accent becomes the one code point that there is for both (as
// Unicode's form NFC does), for the accents of Latin-1.
std::u32string Compose(std::u32string_view codes);

}  // namespace dtrain
