#include "layers/lstm/lstm_ref.h"

namespace dtrain {
namespace {

DTRAIN_LAYER_CASES("lstm", LstmReference, RecurrentCases());

}  // namespace
}  // namespace dtrain
