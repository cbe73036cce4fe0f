// Translates the names that PyTorch, Keras, Caffe and other tools use into dtrain's.
#pragma once

#include <string>
#include <vector>

namespace dtrain::config {

// Returns the key of `allowed` that other tools call `key` ("learning_rate": "lr"); "" if there is none.
std::string KeyOfOtherTools(const std::string& key, const std::vector<std::string>& allowed);

// Returns the hint for an unknown choice ("type: nn.Conv2d", "name: horovod"): SuggestName's, but names that other
// tools use for one of `allowed` come before similar names.
std::string SuggestChoice(const std::string& value, const std::vector<std::string>& allowed);

}  // namespace dtrain::config
