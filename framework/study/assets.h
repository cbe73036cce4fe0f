// The script of a study's page, embedded when dtrain is built (tools/cmake/DtrainEmbed.cmake).
#pragma once

#include <string_view>

namespace dtrain::assets {

extern const std::string_view kStudy;  // page/study.js

}  // namespace dtrain::assets
