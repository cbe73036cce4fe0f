// LayerTimes: what each layer of a net takes, forward and backward, while it lives.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/core/model_profile.h"
#include "framework/nn/net.h"

namespace dtrain {

class LayerTimes {
 public:
  explicit LayerTimes(Net& net);  // which has no other observer; borrowed
  ~LayerTimes() { net_.set_observer(nullptr); }
  LayerTimes(const LayerTimes&) = delete;
  LayerTimes& operator=(const LayerTimes&) = delete;

  void EndStep();  // of one or several passes
  // For each layer the medians of all steps but the first `warm_up`; each step had `samples` samples.  Layers
  // without a kernel of their own are left out; what the program inserts counts for the layer behind it.
  std::vector<LayerProfile> Layers(int64_t samples, size_t warm_up) const;

 private:
  struct Row {
    const GraphLayer* layer = nullptr;  // null: inserted
    double step[2] = {0, 0};            // seconds in this step: forward, backward
    std::vector<double> steps[2] = {};
  };
  static double SecondsOf(const Row& row, int pass, size_t warm_up);

  Net& net_;
  std::map<std::string, size_t> row_of_;
  std::vector<Row> rows_;  // in the order of the forward pass
};

}  // namespace dtrain
