#include "layers/gru/gru_ref.h"

namespace dtrain {
namespace {

DTRAIN_LAYER_CASES("gru", GruReference, RecurrentCases());

}  // namespace
}  // namespace dtrain
