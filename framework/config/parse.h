// YAML text -> Tree.  Built from yaml-cpp's events, because its Node keeps the first of two equal
// keys silently.  Refused with a message: repeated and non-scalar keys, merge keys (<<), anchors,
// aliases, tags, and a second document.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "framework/config/tree.h"

namespace dtrain::config {

// Turns a position of the parser (both from 1) into a Place.
using PlaceOf = std::function<Place(int line, int column)>;

// The places of a file: "name:line:column".
PlaceOf PlacesIn(const std::string& file_name);

// nullopt when the text is not YAML at all (noted).
std::optional<Tree> ParseYaml(const std::string& text, const PlaceOf& place_of,
                              Diagnostics& diagnostics);

}  // namespace dtrain::config
