// StateVisitor visits the whole state of an actor or a vector field by field, so that one function saves it, loads it,
// hashes it and packs it into a message.
//
//   void Visit(StateVisitor& visitor) override {
//     visitor.Int("clock", clock_);
//     visitor.Ints("finished", finished_);
//   }
//
// A loading visitor writes the fields; the others only read them.  The order of the calls is the format.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

class StateVisitor {
 public:
  virtual ~StateVisitor() = default;
  // Names the owner (an actor) of the fields that follow, for visitors that show or look up fields.
  virtual void Owner(std::string_view) {}
  virtual void Int(std::string_view name, int64_t& value) = 0;
  virtual void Ints(std::string_view name, std::vector<int64_t>& values) = 0;
  virtual void Floats(std::string_view name, std::span<float> values) = 0;  // of known size
};

// Saves any object with Visit(StateVisitor&) as bytes.
class StateSaver : public StateVisitor {
 public:
  void Int(std::string_view name, int64_t& value) override;
  void Ints(std::string_view name, std::vector<int64_t>& values) override;
  void Floats(std::string_view name, std::span<float> values) override;
  std::string Take() { return std::move(bytes_); }

 private:
  void Append(std::string_view name, const void* data, size_t bytes);
  std::string bytes_;
};

// Loads the bytes.  Throws CheckpointError, naming the field, if they are of another object.
class StateLoader : public StateVisitor {
 public:
  explicit StateLoader(std::string_view bytes) : rest_(bytes) {}  // borrowed
  void Int(std::string_view name, int64_t& value) override;
  void Ints(std::string_view name, std::vector<int64_t>& values) override;
  void Floats(std::string_view name, std::span<float> values) override;
  void Finish() const;  // throws if bytes are left

 private:
  std::string_view Next(std::string_view name);
  std::string_view rest_;
};

template <class Object>
std::string SaveState(Object& object) {
  StateSaver saver;
  object.Visit(saver);
  return saver.Take();
}

template <class Object>
void LoadState(Object& object, std::string_view bytes) {
  StateLoader loader(bytes);
  object.Visit(loader);
  loader.Finish();
}

std::string HashStateBytes(std::string_view bytes);

// Returns the SHA-256 of the saved bytes, in hex.
template <class Object>
std::string HashState(Object& object) {
  return HashStateBytes(SaveState(object));
}

}  // namespace dtrain
