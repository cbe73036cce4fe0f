// UTF-8 text (RFC 3629): checking, and code points.
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

}  // namespace dtrain
