// What an error says, for tests of messages.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace dtrain {

// The text of the E that `action` throws; "no error" when it throws none.
template <class E, class Action>
std::string WhatOf(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

// The same, with the hint behind " | "; a failure of the test when nothing is thrown.
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
