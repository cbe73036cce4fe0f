// The bf16 convolution's loops of this copy.
#include "layers/convolution/bf16_loops.h"

namespace dtrain::DTRAIN_ISA_NS {

constinit const Bf16Loops kBf16Loops = {Bf16PackRows,      Bf16PackPairs, Bf16PackTurned,
                                        Bf16PackWeights,   Bf16Row,       Bf16WeightSums,
                                        Bf16WeightGradient};

}  // namespace dtrain::DTRAIN_ISA_NS
