// UTF-8 text (RFC 3629): checking, and code points.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

// Byte position of the first thing that is no UTF-8 (overlong forms and surrogates included).
std::optional<size_t> FindInvalidUtf8(std::string_view text);

// Bytes of the character that `text` begins with; 0: it begins with none.
size_t FirstCharacterBytes(std::string_view text);
// Whether `text` is the begin of a character whose other bytes are missing.
bool IsBegunCharacter(std::string_view text);

// The code points of valid UTF-8.
std::u32string DecodeUtf8(std::string_view text);
void AppendUtf8(char32_t code, std::string& text);
std::string EncodeUtf8(std::u32string_view codes);

}  // namespace dtrain
