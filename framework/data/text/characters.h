// What a tokeniser needs of Unicode: lower case and composition for the scripts of European languages.
// Other characters stay as they are.
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

// Latin, Greek and Cyrillic letters; German's capital sharp s as well.
char32_t LowerCase(char32_t code);
// A letter or a digit of any script; not punctuation, a symbol or white space.
bool IsWordCharacter(char32_t code);
bool IsWhiteSpace(char32_t code);

// A letter followed by a combining accent becomes the one code point that there is for both (as
// Unicode's form NFC does), for the accents of Latin-1.
std::u32string Compose(std::u32string_view codes);

}  // namespace dtrain
