// Message: a message between actors.  It has a kind and a few integers; a vector may be sent with
// it, by reference (Effects::Send).
//
// A protocol declares its messages as structs, whose fields are packed in order:
//
//   struct Push {
//     static constexpr int kKind = 2;
//     int64_t clock = 0, version = 0;
//     DTRAIN_FIELDS(clock, version)
//   };
//   effects.Send(server, Pack(Push{.clock = 3, .version = 7}));
//   const auto push = Unpack<Push>(message);
//
// Fields are int64_t, double (its bits travel), text, a struct with fields of its own or, as the
// last one, a vector of int64_t or double.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "framework/core/bytes.h"
#include "framework/core/check.h"

namespace dtrain {

// Workers have the ids 0..W-1, servers W..W+S-1 (placement.h).
using ActorId = int;

struct Message {
  int kind = 0;
  std::vector<int64_t> words;
};

class FieldPacker {
 public:
  explicit FieldPacker(std::vector<int64_t>& words) : words_(words) {}
  void operator()(int64_t value) { words_.push_back(value); }
  void operator()(double value) { words_.push_back(std::bit_cast<int64_t>(value)); }
  template <class Struct>
  auto operator()(Struct& fields) -> decltype(fields.Fields(*this)) {
    fields.Fields(*this);
  }
  void operator()(const std::vector<int64_t>& values) {
    words_.insert(words_.end(), values.begin(), values.end());
  }
  void operator()(const std::vector<double>& values) {
    for (const double value : values) (*this)(value);
  }
  void operator()(const std::string& text) {  // its length, then eight characters per word
    words_.push_back(static_cast<int64_t>(text.size()));
    const size_t first = words_.size();
    words_.resize(first + (text.size() + sizeof(int64_t) - 1) / sizeof(int64_t));
    std::memcpy(words_.data() + first, text.data(), text.size());
  }

 private:
  std::vector<int64_t>& words_;
};

class FieldUnpacker {
 public:
  explicit FieldUnpacker(const std::vector<int64_t>& words) : words_(words) {}
  void operator()(int64_t& value) { value = Next(); }
  void operator()(double& value) { value = std::bit_cast<double>(Next()); }
  template <class Struct>
  auto operator()(Struct& fields) -> decltype(fields.Fields(*this)) {
    fields.Fields(*this);
  }
  void operator()(std::vector<int64_t>& values) {
    values.assign(words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end());
    next_ = words_.size();
  }
  void operator()(std::vector<double>& values) {
    for (values.clear(); !AtEnd();) values.push_back(std::bit_cast<double>(Next()));
  }
  void operator()(std::string& text) {
    const int64_t size = Next();
    DT_CHECK(size >= 0 && size <= static_cast<int64_t>((words_.size() - next_) * sizeof(int64_t)))
        << "text of " << size << " characters in " << words_.size() << " words";
    text.resize(static_cast<size_t>(size));
    std::memcpy(text.data(), words_.data() + next_, text.size());
    next_ += (text.size() + sizeof(int64_t) - 1) / sizeof(int64_t);
  }
  bool AtEnd() const { return next_ == words_.size(); }

 private:
  int64_t Next() {
    DT_CHECK(next_ < words_.size()) << "message ends after " << words_.size() << " words";
    return words_[next_++];
  }
  const std::vector<int64_t>& words_;
  size_t next_ = 0;
};

template <class M>
Message Pack(M fields) {
  Message message{M::kKind, {}};
  FieldPacker packer(message.words);
  fields.Fields(packer);
  return message;
}

template <class M>
M Unpack(const Message& message) {
  DT_CHECK(message.kind == M::kKind)
      << "message of kind " << message.kind << " instead of " << M::kKind;
  M fields;
  FieldUnpacker unpacker(message.words);
  fields.Fields(unpacker);
  DT_CHECK(unpacker.AtEnd()) << "message of kind " << message.kind << " is too long";
  return fields;
}

}  // namespace dtrain
