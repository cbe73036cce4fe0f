// RunInChild runs work in a separate process, for a library that crashes on damaged files.
//
// The child is a fork without exec, so it has the parent's memory and one thread, the caller's.
// Locks that other threads held at the fork are never released there: the work may call only plain code and libraries
// that no other thread uses at the time, never MPI, OpenMP or the log. glibc makes malloc usable again.  Limits end a
// child that hangs nevertheless.  The child ends with _exit, so it flushes or destroys nothing of the parent's.
//
// In an MPI rank the child uses no memory that MPI shares or has registered.  It runs only while
// the rank has no messages in flight: before training, or before an evaluation has weights.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace dtrain {

struct ChildLimits {
  int64_t compute_seconds = 30;
  int64_t wait_seconds = 120;               // from start to end
  int64_t memory_bytes = int64_t{1} << 30;  // beyond the memory of the parent
};

// Returns when `work` has returned in the child.  Its results must be in memory that the parent shares: in a MemoryFile
// that existed before.  Its output to the terminal is dropped.  Throws StoppedError if this process is asked to stop
// meanwhile, and CheckpointError: the one that `work` threw, or "cannot <action>: " and the reason why the child ended
// otherwise.
void RunInChild(const std::string& action, const std::function<void()>& work,
                const ChildLimits& limits);

}  // namespace dtrain
