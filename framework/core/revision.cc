#include "framework/core/revision.h"

namespace dtrain {

std::string SourceRevision() { return DTRAIN_REVISION; }
std::string Version() { return DTRAIN_VERSION; }

}  // namespace dtrain
