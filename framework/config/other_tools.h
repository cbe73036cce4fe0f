// The keys that PyTorch, Keras, Caffe and others have for what has another name here.
#pragma once

#include <string>
#include <vector>

namespace dtrain::config {

// The one of `allowed` that other tools call `key` ("learning_rate": "lr"); "" when there is none.
std::string KeyOfOtherTools(const std::string& key, const std::vector<std::string>& allowed);

}  // namespace dtrain::config
