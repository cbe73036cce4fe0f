// Errors with causes outside the program: a config, a file, a peer, too little memory.
//
// Each carries what went wrong and where, a hint that says what to try (may be empty), and the exit
// code that the program ends with (README, "Exit codes").  They are thrown as values, caught once
// in main, and reported to the other ranks so that none is left waiting.  Bugs of the program use DT_CHECK (check.h).
#pragma once

#include <stdexcept>
#include <string>

namespace dtrain {

enum class ExitCode : int {
  kDone = 0,
  kInternal = 1,
  kUsage = 2,  // command line or config
  kData = 3,   // data set files
  kPeerLost = 4,
  kDiverged = 5,    // NaN or infinity
  kCheckpoint = 6,  // checkpoint or disk
  kStalled = 7,
  kStopped = 75,  // stopped by a signal and ready to resume (EX_TEMPFAIL)
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& what, std::string hint = "")
      : std::runtime_error(what), code_(code), hint_(std::move(hint)) {}
  ExitCode code() const { return code_; }
  const std::string& hint() const { return hint_; }

 private:
  ExitCode code_;
  std::string hint_;
};

// One class per exit code lets a catch clause name what it handles.
template <ExitCode kCode>
class ErrorOf : public Error {
 public:
  explicit ErrorOf(const std::string& what, std::string hint = "")
      : Error(kCode, what, std::move(hint)) {}
};

using UsageError = ErrorOf<ExitCode::kUsage>;
using DataError = ErrorOf<ExitCode::kData>;
using PeerLostError = ErrorOf<ExitCode::kPeerLost>;
using DivergedError = ErrorOf<ExitCode::kDiverged>;
// Concerns a file of a run (record, metrics, timeline, lock) or the disk that holds it.
using RunFileError = ErrorOf<ExitCode::kCheckpoint>;
using CheckpointError = RunFileError;
using StalledError = ErrorOf<ExitCode::kStalled>;
using StoppedError =
    // A stop request came before there was anything to save (core/stop_request.h).
    ErrorOf<ExitCode::kStopped>;

// A config or a model has errors.  `what` may hold several lines, one per error.
class ConfigError : public UsageError {
 public:
  using UsageError::UsageError;
};

// A layer cannot take the shapes it is given; `what` names the layer and both shapes.
class ShapeError : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

}  // namespace dtrain
