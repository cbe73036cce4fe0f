// Errors that are the world's fault: a config, a file, a peer, the memory.
//
// Each carries what went wrong and where, a hint that says what to try (may be empty), and the exit
// code that the program ends with (README, "Exit codes").  They are thrown as values, caught once
// in main, and told to the other ranks so that none is left waiting.  Errors that are our own fault
// use DT_CHECK (check.h).
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

// One class per exit code, so that a catch can name what it handles.
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
// A file of a run - record, metrics, timeline, lock - or the disk that it lies on.
using RunFileError = ErrorOf<ExitCode::kCheckpoint>;
using CheckpointError = RunFileError;
using StalledError = ErrorOf<ExitCode::kStalled>;
using StoppedError =
    ErrorOf<ExitCode::kStopped>;  // before there was anything to save (core/stop_request.h)

// A config or a model that does not fit together.  `what` may hold several lines, one per mistake.
class ConfigError : public UsageError {
 public:
  using UsageError::UsageError;
};

// A layer that cannot take the shapes it is given; `what` names the layer and both shapes.
class ShapeError : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

}  // namespace dtrain
