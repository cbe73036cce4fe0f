// Returns the messages of errors, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace dtrain {

// Returns the text of the E that `action` throws, or "no error".
template <class E, class Action>
std::string WhatOf(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

// Returns the same with the hint after " | "; the test fails if nothing is thrown.
template <class E, class Action>
std::string MessageOf(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const E& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace dtrain
