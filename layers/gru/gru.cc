#include "layers/gru/gru.h"

namespace dtrain {
namespace {

DTRAIN_LAYER("gru", Gru, "gated recurrent units over a sequence");

}  // namespace
}  // namespace dtrain
