// Status records: where each rank stands, for the supervisor and for the progress line.
//
// One small memory-mapped file a rank, <folder>/rank-N.  Update is a few relaxed stores, with no
// system call, so it may be called every step; the reader gets each value whole, if not all of the
// same instant.  What a killed rank wrote last stays readable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

enum class Doing : int32_t {
  kStarting,  // from here on the rank handles stop signals
  kLoading,   // data, checkpoint
  kTraining,
  kEvaluating,
  kCheckpointing,
  kFinishing,  // summary, record, timeline
  kEnded,      // exit_code says how
  kMeasuring,  // the model, before the plan; last, for the numbers of the others are in records
};

std::string_view NameOf(Doing doing);  // "starting", "loading data", "training", ...

// What a reader sees.
struct RankStatus {
  int rank = 0;
  std::string host;
  int pid = 0;
  Doing doing = Doing::kStarting;
  int64_t step = 0;              // finished steps
  double compute_seconds = 0;    // so far, forward and backward
  std::optional<int> exit_code;  // once kEnded
  std::string message;           // why, when it failed; cut to 500 bytes
  bool says = true;              // false: there is no record, and the process alone is known
};

// The environment variable by which the supervisor names the folder to its ranks.
inline constexpr char kStatusFolderVariable[] = "DTRAIN_STATUS_FOLDER";

// A rank's own record.  Install StopSignals first: the supervisor sends them from then on.
class StatusRecord {
 public:
  // Writes to nowhere when `folder` is empty or cannot be written (a rank on another host).
  StatusRecord(const std::filesystem::path& folder, int rank);

  // In StatusFolder(), where that is this user's alone.
  static StatusRecord OfThisProcess(int rank);

  ~StatusRecord();
  StatusRecord(StatusRecord&& other) noexcept;
  StatusRecord& operator=(StatusRecord&&) = delete;

  void Update(Doing doing, int64_t step, double compute_seconds = 0);

  // The last word, before the process leaves with `exit_code`.
  void End(int exit_code, std::string_view message = "");

 private:
  struct Mapped;
  friend std::vector<RankStatus> ReadStatusRecords(const std::filesystem::path& folder);

  Mapped* mapped_ = nullptr;
};

// The folder that the environment names; empty without a supervisor.
std::filesystem::path StatusFolder();

// All records of a folder, by rank.
std::vector<RankStatus> ReadStatusRecords(const std::filesystem::path& folder);

// The rank with the most compute time so far; -1 with fewer than two, or when none computed.
int SlowestRank(const std::vector<RankStatus>& records);

}  // namespace dtrain
