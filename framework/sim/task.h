// Task: a move-only function that is called at most once.  Up to 48 bytes of captures are stored
// inside, so that the millions of events of a simulated run allocate nothing; larger captures are
// on the heap.
#pragma once

#include <concepts>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "framework/core/check.h"

namespace dtrain {

class Task {
 public:
  Task() = default;

  template <class F>
  requires(!std::same_as<std::decay_t<F>, Task> && std::invocable<std::decay_t<F>&>)
      Task(F&& function) {  // NOLINT: implicit, as std::function is
    using Function = std::decay_t<F>;
    if constexpr (FitsInside<Function>()) {
      new (buffer_) Function(std::forward<F>(function));
      actions_ = &kInside<Function>;
    } else {
      new (buffer_) Function*(new Function(std::forward<F>(function)));
      actions_ = &kOutside<Function>;
    }
  }

  Task(Task&& other) noexcept { TakeFrom(other); }
  Task& operator=(Task&& other) noexcept {
    if (this == &other) return *this;
    Reset();
    TakeFrom(other);
    return *this;
  }
  ~Task() { Reset(); }

  explicit operator bool() const { return actions_ != nullptr; }

  // Runs the function.  The task is empty afterwards, even if the function throws.
  void operator()() {
    DT_CHECK(actions_ != nullptr) << "an empty task is called";
    Task running = std::move(*this);
    running.actions_->run(running.buffer_);
  }

 private:
  static constexpr size_t kBufferBytes = 48;

  struct Actions {
    void (*run)(void* buffer);
    void (*move)(void* from, void* to);  // destroys the object in `from`
    void (*destroy)(void* buffer);
  };

  template <class F>
  static constexpr bool FitsInside() {
    return sizeof(F) <= kBufferBytes && alignof(F) <= alignof(std::max_align_t) &&
           std::is_nothrow_move_constructible_v<F>;
  }

  template <class F>
  static F& At(void* buffer) {
    return *std::launder(static_cast<F*>(buffer));
  }

  template <class F>
  static void Move(void* from, void* to) {
    new (to) F(std::move(At<F>(from)));
    At<F>(from).~F();
  }

  template <class F>
  static constexpr Actions kInside = {[](void* buffer) { At<F>(buffer)(); }, &Move<F>,
                                      [](void* buffer) { At<F>(buffer).~F(); }};
  template <class F>
  static constexpr Actions kOutside = {[](void* buffer) { (*At<F*>(buffer))(); }, &Move<F*>,
                                       [](void* buffer) { delete At<F*>(buffer); }};

  void TakeFrom(Task& other) {
    if (other.actions_ == nullptr) return;
    other.actions_->move(other.buffer_, buffer_);
    actions_ = std::exchange(other.actions_, nullptr);
  }

  void Reset() {
    if (actions_ != nullptr) std::exchange(actions_, nullptr)->destroy(buffer_);
  }

  alignas(std::max_align_t) std::byte buffer_[kBufferBytes];
  const Actions* actions_ = nullptr;
};

}  // namespace dtrain
