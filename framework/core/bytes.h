// ByteWriter and ByteReader: values as bytes and back, in host order, for messages between ranks of
// one program.  Reading past the end is our own fault (DT_CHECK).
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/core/check.h"

namespace dtrain {

class ByteWriter {
 public:
  template <class T>
  void Value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  // The length first.
  void Text(std::string_view text) {
    Value<uint64_t>(text.size());
    bytes_.append(text);
  }
  template <class T>
  void Values(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    Text({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}  // borrowed

  bool AtEnd() const { return rest_.empty(); }
  template <class T>
  T Value() {
    T value;
    std::memcpy(&value, Next(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string Text() { return std::string(Next(Value<uint64_t>())); }
  template <class T>
  std::vector<T> Values() {
    const std::string_view bytes = Next(Value<uint64_t>());
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  std::string_view Next(size_t count) {
    DT_CHECK(count <= rest_.size()) << count << " bytes wanted, " << rest_.size() << " left";
    const std::string_view next = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return next;
  }

  std::string_view rest_;
};

}  // namespace dtrain
