// LayerTimes: measures the forward and backward time of each layer of a net.  It observes the net during its lifetime.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/core/model_profile.h"
#include "framework/nn/net.h"

namespace dtrain {

class LayerTimes {
 public:
  explicit LayerTimes(Net& net);  // borrowed; it must have no other observer
  ~LayerTimes() { net_.set_observer(nullptr); }
  LayerTimes(const LayerTimes&) = delete;
  LayerTimes& operator=(const LayerTimes&) = delete;

  void EndStep();  // a step has one or several passes
  // Returns for each layer the median times of all steps but the first `warm_up`; `samples` is the number of samples of
  // each step.  Layers without a kernel of their own are left out; the time of a conversion that the program inserted
  // counts for the layer after it.
  std::vector<LayerProfile> Layers(int64_t samples, size_t warm_up) const;

 private:
  struct Row {
    const GraphLayer* layer = nullptr;  // null: inserted by the program
    double step[2] = {0, 0};            // seconds in this step: forward, backward
    std::vector<double> steps[2] = {};
  };
  static double SecondsOf(const Row& row, int pass, size_t warm_up);

  Net& net_;
  std::map<std::string, size_t> row_of_;
  std::vector<Row> rows_;  // in the order of the forward pass
};

}  // namespace dtrain
