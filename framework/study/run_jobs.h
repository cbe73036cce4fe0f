// Runs many runs of dtrain as child processes, some at a time: what a sweep and a study consist of.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace dtrain {

// One run of dtrain, with a folder of its own.
struct Job {
  std::string name;    // in log lines: "GSSP, seed 2"
  std::string folder;  // created if it is missing; stdout and stderr go to log.txt in it
  std::vector<std::string> arguments;      // of dtrain: "train", "--config", ...
  std::vector<std::string> launcher = {};  // words before the program, such as those of mpirun
  double work = 1;  // by which the time left is estimated: samples, for example
};

// Runs the jobs in their order, `at_once` at a time, and shows the progress on stderr.  `done_before` jobs of the same
// sweep or study need not run; log lines count them.  `ended` gets the index of a job, its exit code and how long it took, and returns
// true if the job has completed.  Returns the signal that stopped it, or 0.  Call it before other threads start.
int RunJobs(const std::vector<Job>& jobs, int at_once, size_t done_before,
            const std::function<bool(size_t job, int code, double seconds)>& ended);

}  // namespace dtrain
