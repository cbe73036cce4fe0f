#include "layers/lstm/lstm.h"

namespace dtrain {
namespace {

DTRAIN_LAYER("lstm", Lstm, "long short-term memory over a sequence");

}  // namespace
}  // namespace dtrain
