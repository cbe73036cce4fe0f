// ChannelMoments computes mean and variance of each channel in one pass over samples that need not be kept.
//
// It uses Welford's update (Technometrics 4, 1962), which loses no digits if the mean is large.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "framework/core/bytes.h"

namespace dtrain {

class ChannelMoments {
 public:
  ChannelMoments() = default;
  // A sample has `each` values of the first channel, then `each` of the next, and so on.
  ChannelMoments(size_t channels, size_t each) : means_(channels), sums_(channels), each_(each) {}

  // Adds whole samples.
  template <class T>
  void Add(const T* values, size_t samples) {
    for (size_t i = 0; i < samples; ++i) {
      for (size_t c = 0; c < means_.size(); ++c) {
        for (size_t p = 0; p < each_; ++p) Add(c, static_cast<double>(*values++), seen_ + p + 1);
      }
      seen_ += each_;
    }
  }

  // Forgets all channels but these.
  void KeepChannels(const std::vector<size_t>& kept) {
    const std::vector<double> means = std::exchange(means_, {});
    const std::vector<double> sums = std::exchange(sums_, {});
    for (const size_t c : kept) {
      means_.push_back(means[c]);
      sums_.push_back(sums[c]);
    }
  }

  const std::vector<double>& means() const { return means_; }
  std::vector<double> variances() const {
    std::vector<double> variances = sums_;
    for (double& sum : variances) sum /= static_cast<double>(seen_);
    return variances;
  }
  DTRAIN_FIELDS(means_, sums_, each_, seen_)

 private:
  void Add(size_t channel, double value, size_t count) {
    const double difference = value - means_[channel];
    means_[channel] += difference / static_cast<double>(count);
    sums_[channel] += difference * (value - means_[channel]);
  }

  std::vector<double> means_, sums_;  // sums_: sums of squared differences to the mean
  size_t each_ = 1;
  size_t seen_ = 0;  // values of each channel
};

}  // namespace dtrain
