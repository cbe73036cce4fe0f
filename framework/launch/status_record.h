// Status records: the current state of each rank, for the supervisor and for the progress line.
//
// Each rank has one small memory-mapped file, <folder>/rank-N.  Update is a few relaxed stores without a system call,
// so it may be called every step.  The reader gets each value whole, though not all values of the same instant.  The
// last values of a killed rank stay readable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

enum class Doing : int32_t {
  kStarting,  // the rank handles stop signals from here on
  kLoading,   // data, checkpoint
  kTraining,
  kEvaluating,
  kCheckpointing,
  kFinishing,  // summary, record, timeline
  kEnded,      // the record has the exit code
  // The rank measures the model, before the plan; it is declared last, since records contain the numbers of the others.
  kMeasuring,
};

std::string_view NameOf(Doing doing);  // "starting", "loading data", "training", ...

// Holds a rank's status as it is read.
struct RankStatus {
  int rank = 0;
  std::string host;
  int pid = 0;
  Doing doing = Doing::kStarting;
  int64_t step = 0;              // finished steps
  double compute_seconds = 0;    // so far, forward and backward
  std::optional<int> exit_code;  // set once `doing` is kEnded
  std::string message;           // the error, if it failed; cut to 500 bytes
  bool says = true;              // false: there is no record, only the process is known
};

// This is the environment variable in which the supervisor gives the folder's path to its ranks.
inline constexpr char kStatusFolderVariable[] = "DTRAIN_STATUS_FOLDER";

// Writes a rank's own record.  Install StopSignals first: from the record on, the supervisor sends stop signals.
class StatusRecord {
 public:
  // Writes nothing if `folder` is empty or cannot be written (a rank on another host).
  StatusRecord(const std::filesystem::path& folder, int rank);

  // Makes the record in StatusFolder(), if no other user may enter that folder.
  static StatusRecord OfThisProcess(int rank);

  ~StatusRecord();
  StatusRecord(StatusRecord&& other) noexcept;
  StatusRecord& operator=(StatusRecord&&) = delete;

  void Update(Doing doing, int64_t step, double compute_seconds = 0);

  // Writes the last entry, before the process ends with `exit_code`.
  void End(int exit_code, std::string_view message = "");

 private:
  struct Mapped;
  friend std::vector<RankStatus> ReadStatusRecords(const std::filesystem::path& folder);

  Mapped* mapped_ = nullptr;
};

// Returns the folder that the environment variable names; empty without a supervisor.
std::filesystem::path StatusFolder();

// Reads all records of a folder, ordered by rank.
std::vector<RankStatus> ReadStatusRecords(const std::filesystem::path& folder);

// Returns the rank with the most compute time so far; -1 with fewer than two records, or if no rank has computed.
int SlowestRank(const std::vector<RankStatus>& records);

}  // namespace dtrain
