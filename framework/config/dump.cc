// Writes the declared keys as text: the values in force, and the help table.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "framework/config/convert.h"
#include "framework/config/reader.h"
#include "framework/config/schema.h"
#include "framework/core/text.h"

namespace dtrain::config {
namespace {

using Json = nlohmann::ordered_json;
using SectionPtr = std::shared_ptr<SectionNode>;
using DeclarationPtr = std::shared_ptr<Declaration>;

// Calls one of three functions on each item, in the order of declaration.
template <class OnKey, class OnSection, class OnList>
void Walk(const SectionNode& section, OnKey on_key, OnSection on_section, OnList on_list) {
  for (const SectionNode::Item& item : section.items) {
    if (const auto* key = std::get_if<DeclarationPtr>(&item.what)) on_key(item.key, **key);
    if (const auto* child = std::get_if<SectionPtr>(&item.what)) on_section(item.key, **child);
    if (const auto* list = std::get_if<SectionNode::SectionList>(&item.what))
      on_list(item.key, *list);
  }
}

// True for yes, No, OFF...: YAML 1.1 reads these as booleans.
bool IsYaml11Bool(std::string word) {
  for (char& c : word) c |= 32;  // lower case, for letters
  return word == "yes" || word == "no" || word == "on" || word == "off" || word == "y" ||
         word == "n";
}

// True for strings that every YAML parser reads as strings; others are quoted as in JSON, which is valid YAML.
bool MayStayBare(const std::string& text) {
  static constexpr const char* kHarmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./";
  const auto is_letter = [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; };
  if (text.empty() || !(is_letter(text[0]) || text[0] == '/')) return false;
  if (text.find_first_not_of(kHarmless) != std::string::npos) return false;
  if (IsYaml11Bool(text)) return false;
  return ResolveScalar(text) == ScalarType::kString;
}

std::string Print(bool value) { return value ? "true" : "false"; }
std::string Print(int64_t value) { return std::to_string(value); }
std::string Print(double value) { return fmt::format("{}", value); }

std::string Print(const std::string& value) {
  if (MayStayBare(value)) return value;
  return Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class T>
std::string Print(const std::vector<T>& list) {
  std::vector<std::string> parts;
  for (const T& element : list) parts.push_back(Print(element));
  return fmt::format("[{}]", Join(parts));
}

constexpr char kAuto[] = "auto";

bool IsAuto(const Declaration& declaration, const Value& value) {
  return declaration.may_be_auto && value == Value(int64_t{0});
}

std::string PrintValue(const Declaration& declaration, const Value& value) {
  if (IsAuto(declaration, value)) return kAuto;
  return std::visit([](const auto& typed) { return Print(typed); }, value);
}

void AppendYaml(const SectionNode& section, const std::string& indent, const std::string& without,
                std::string& out) {
  const auto lead = [&](const std::string& key) { return indent + key + ":"; };
  const auto on_key = [&](const std::string& key, const Declaration& declaration) {
    if (declaration.path == without) return;
    out += lead(key) + " " + PrintValue(declaration, declaration.value) + "\n";
  };
  const auto on_section = [&](const std::string& key, const SectionNode& child) {
    out += lead(key) + (child.items.empty() ? " {}\n" : "\n");
    AppendYaml(child, indent + "  ", without, out);
  };
  const auto on_list = [&](const std::string& key, const SectionNode::SectionList& list) {
    out += lead(key) + (list.empty() ? " []\n" : "\n");
    for (const SectionPtr& child : list) {
      std::string element;
      AppendYaml(*child, indent + "    ", without, element);
      if (element.empty()) element = indent + "    {}\n";
      out += element.replace(indent.size(), 4, "  - ");
    }
  };
  Walk(section, on_key, on_section, on_list);
}

Json ToJson(const SectionNode& section) {
  Json json = Json::object();
  const auto on_key = [&](const std::string& key, const Declaration& declaration) {
    if (IsAuto(declaration, declaration.value)) {
      json[key] = kAuto;
    } else {
      std::visit([&](const auto& value) { json[key] = value; }, declaration.value);
    }
  };
  const auto on_section = [&](const std::string& key, const SectionNode& child) {
    json[key] = ToJson(child);
  };
  const auto on_list = [&](const std::string& key, const SectionNode::SectionList& list) {
    json[key] = Json::array();
    for (const SectionPtr& child : list) json[key].push_back(ToJson(*child));
  };
  Walk(section, on_key, on_section, on_list);
  return json;
}

void AppendKeys(const SectionNode& section, std::vector<KeyHelp>& rows) {
  const auto on_key = [&](const std::string&, const Declaration& declaration) {
    const Value& value = declaration.default_value;
    rows.push_back({declaration.path, TypeName(value),
                    declaration.required ? "required" : PrintValue(declaration, value),
                    declaration.limits.Text() + (declaration.may_be_auto ? ", or auto" : ""),
                    declaration.help});
  };
  const auto on_section = [&](const std::string&, const SectionNode& child) {
    if (!child.help.empty()) rows.push_back({child.path, "section", "", "", child.help});
    AppendKeys(child, rows);
  };
  const auto on_list = [&](const std::string&, const SectionNode::SectionList& list) {
    for (const SectionPtr& child : list) AppendKeys(*child, rows);
  };
  Walk(section, on_key, on_section, on_list);
}

}  // namespace

std::string QuoteYaml(const std::string& text) { return Print(text); }

std::string DumpYaml(const SectionNode& root, const std::string& without) {
  std::string out;
  AppendYaml(root, "", without, out);
  return out;
}

std::string DumpJson(const SectionNode& root) {
  return ToJson(root).dump(2, ' ', false, Json::error_handler_t::replace);
}

std::vector<KeyHelp> DumpKeys(const SectionNode& root) {
  std::vector<KeyHelp> rows;
  AppendKeys(root, rows);
  return rows;
}

}  // namespace dtrain::config
