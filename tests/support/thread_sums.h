// WorkerSums of workers that are threads of one process.
#pragma once

#include <gtest/gtest.h>

#include <barrier>
#include <span>
#include <vector>

#include "framework/nn/kernel.h"

namespace dtrain {

// Adds in rank order; all ranks get the same bits.
class ThreadSums {
 public:
  explicit ThreadSums(int workers) : parts_(static_cast<size_t>(workers)), all_here_(workers) {}

  void Sum(int worker, std::span<double> values) {
    parts_[static_cast<size_t>(worker)].assign(values.begin(), values.end());
    all_here_.arrive_and_wait();
    std::vector<double> sum = parts_[0];
    for (size_t w = 1; w < parts_.size(); ++w) {
      ASSERT_EQ(parts_[w].size(), sum.size());
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += parts_[w][i];
    }
    all_here_.arrive_and_wait();
    std::copy(sum.begin(), sum.end(), values.begin());
  }

 private:
  std::vector<std::vector<double>> parts_;
  std::barrier<> all_here_;
};

class OneOfThreads : public WorkerSums {
 public:
  OneOfThreads(ThreadSums& sums, int worker) : sums_(sums), worker_(worker) {}
  void Sum(std::span<double> values) override { sums_.Sum(worker_, values); }

 private:
  ThreadSums& sums_;
  const int worker_;
};

}  // namespace dtrain
