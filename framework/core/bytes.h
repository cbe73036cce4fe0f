// ByteWriter and ByteReader turn values into bytes and back, in host byte order, for messages between the ranks of one
// program and for parts of files.  Reading past the end is a bug (DT_CHECK), except for a reader that was given a
// file's name: it throws RunFileError, for the file is damaged.
//
//   struct Failure {
//     int rank = 0;
//     std::string what;
//     DTRAIN_FIELDS(rank, what)
//   };
//   const std::string bytes = ToBytes(failure);
//   failure = FromBytes<Failure>(bytes);
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/core/check.h"
#include "framework/core/error.h"

namespace dtrain {

class ByteWriter {
 public:
  template <class T>
  void Value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  // Writes the length, then the text.
  void Text(std::string_view text) {
    Value<uint64_t>(text.size());
    bytes_.append(text);
  }
  template <class T>
  void Values(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    Text({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
  }
  // Writes values of any of these types: a vector or a map is preceded by its length, and a struct writes the fields
  // that it names with DTRAIN_FIELDS.
  template <class... T>
  void operator()(const T&... values) {
    (Write(values), ...);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  void Write(const std::string& text) { Text(text); }
  template <class T>
  void Write(const std::vector<T>& values) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      Values(values);
    } else {
      Value<uint64_t>(values.size());
      for (const T& value : values) Write(value);
    }
  }
  template <class K, class V>
  void Write(const std::map<K, V>& values) {
    Value<uint64_t>(values.size());
    for (const auto& [key, value] : values) (*this)(key, value);
  }
  template <class T>
  void Write(const T& value) {
    if constexpr (requires(T & fields) { fields.Fields(*this); }) {
      // Fields serves both directions; this visitor only reads.
      const_cast<T&>(value).Fields(*this);
    } else {
      Value(value);
    }
  }

  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}  // borrowed
  // Reads bytes of the file `source`, which errors name.
  ByteReader(std::string_view bytes, std::string source)
      : rest_(bytes), source_(std::move(source)) {}

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
    if (bytes.size() % sizeof(T) != 0)
      Fail(std::to_string(bytes.size()) + " bytes are no whole values");
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  // Reads what ByteWriter wrote for values of these types.
  template <class... T>
  void operator()(T&... values) {
    (Read(values), ...);
  }

 private:
  void Read(std::string& text) { text = Text(); }
  template <class T>
  void Read(std::vector<T>& values) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      values = Values<T>();
    } else {
      values.clear();
      for (uint64_t left = Value<uint64_t>(); left > 0; --left) Read(values.emplace_back());
    }
  }
  template <class K, class V>
  void Read(std::map<K, V>& values) {
    values.clear();
    for (uint64_t left = Value<uint64_t>(); left > 0; --left) {
      K key;
      Read(key);
      Read(values[key]);
    }
  }
  template <class T>
  void Read(T& value) {
    if constexpr (requires { value.Fields(*this); }) {
      value.Fields(*this);
    } else {
      value = Value<T>();
    }
  }

  std::string_view Next(size_t count) {
    if (count > rest_.size()) {
      Fail(std::to_string(count) + " bytes wanted, " + std::to_string(rest_.size()) + " left");
    }
    const std::string_view next = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return next;
  }

  [[noreturn]] void Fail(const std::string& what) const {
    DT_CHECK(!source_.empty()) << what;
    throw RunFileError(source_ + " is damaged: " + what);
  }

  std::string_view rest_;
  std::string source_;
};

template <class... T>
std::string ToBytes(const T&... values) {
  ByteWriter writer;
  writer(values...);
  return writer.Take();
}

// Returns the T that takes all of the bytes.
template <class T>
T FromBytes(std::string_view bytes) {
  T value;
  ByteReader reader(bytes);
  reader(value);
  DT_CHECK(reader.AtEnd()) << bytes.size() << " bytes are too many";
  return value;
}

// Does the same for bytes of the file `source`.  Throws RunFileError if they are not exactly one T.
template <class T>
T FromFileBytes(std::string_view bytes, const std::string& source) {
  T value;
  ByteReader reader(bytes, source);
  reader(value);
  if (!reader.AtEnd()) throw RunFileError(source + " is damaged: bytes follow its last value");
  return value;
}

}  // namespace dtrain

// Lists a struct's fields, in the order in which visitors write or read them.
#define DTRAIN_FIELDS(...)                                       \
  template <class F>                                             \
  void Fields([[maybe_unused]] F&& field) {                      \
    [&](auto&... fields) { (field(fields), ...); }(__VA_ARGS__); \
  }
