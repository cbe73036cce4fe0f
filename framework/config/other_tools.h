// What PyTorch, Keras, Caffe and others call by another name than we do.
#pragma once

#include <string>
#include <vector>

namespace dtrain::config {

// The one of `allowed` that other tools call `key` ("learning_rate": "lr"); "" when there is none.
std::string KeyOfOtherTools(const std::string& key, const std::vector<std::string>& allowed);

// SuggestName for a value of which there are some ("type: nn.Conv2d", "name: horovod"): first by what other
// tools call those, then by likeness.
std::string SuggestChoice(const std::string& value, const std::vector<std::string>& allowed);

}  // namespace dtrain::config
