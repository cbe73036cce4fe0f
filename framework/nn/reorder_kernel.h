// The kernel the net inserts where a producer's format is not the one a reader wants.
#pragma once

#include "framework/nn/kernel.h"

namespace dtrain {

class ReorderKernel : public Kernel {
 public:
  explicit ReorderKernel(const Device& device) : device_(device) {}
  void Forward(const KernelArgs& args) override;
  void Backward(const KernelArgs& args) override;

 private:
  const Device device_;
};

}  // namespace dtrain
