// RunInChild does work in a process of its own, for a library that crashes on damaged files.
//
// The child is a fork without exec, so it has the parent's memory and one thread, the caller's.
// Locks that other threads held at that moment are never released there: the work calls plain code
// and libraries that no other thread uses at the time, never MPI, OpenMP or the log.  glibc makes
// malloc usable again.  Whatever hangs all the same ends at a limit.  The child ends with _exit, so
// nothing of the parent's is flushed or torn down twice.
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
  int64_t memory_bytes = int64_t{1} << 30;  // beyond what the process has
};

// Returns when `work` has returned in the child.  What it leaves behind must lie where the parent
// sees it: in a MemoryFile that was there before.  Its output to the terminal is dropped.  Throws
// StoppedError where this process is asked to stop meanwhile, and CheckpointError: the one that `work` threw, or
// "cannot <action>: " and how else the child ended.
void RunInChild(const std::string& action, const std::function<void()>& work,
                const ChildLimits& limits);

}  // namespace dtrain
