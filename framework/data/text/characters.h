// Declares Unicode functions for the tokeniser: lower case and composition for the scripts of European languages.
// Other characters are not changed.
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

// Converts Latin, Greek and Cyrillic letters, including German's capital sharp s.
char32_t LowerCase(char32_t code);
// True for a letter or a digit of any script; false for punctuation, symbols and white space.
bool IsWordCharacter(char32_t code);
bool IsWhiteSpace(char32_t code);

// Replaces a letter and a following combining accent by their single code point (as Unicode's form NFC does), for the
// accents of Latin-1.
std::u32string Compose(std::u32string_view codes);

}  // namespace dtrain
