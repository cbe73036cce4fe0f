// Checks and decodes UTF-8 text (RFC 3629).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

// Returns the byte position of the first invalid sequence (overlong forms and surrogates included).
std::optional<size_t> FindInvalidUtf8(std::string_view text);

// Returns the length in bytes of the character that `text` begins with; 0 if there is none.
size_t FirstCharacterBytes(std::string_view text);
// True if `text` is an incomplete character whose other bytes may follow.
bool IsBegunCharacter(std::string_view text);

// Returns the code points of valid UTF-8.
std::u32string DecodeUtf8(std::string_view text);
void AppendUtf8(char32_t code, std::string& text);
std::string EncodeUtf8(std::u32string_view codes);

}  // namespace dtrain
