#include "framework/nn/blocks.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "framework/config/convert.h"
#include "framework/core/text.h"

namespace dtrain {
namespace {

using config::Diagnostics;
using config::Tree;
using Kind = config::Tree::Kind;

constexpr int64_t kMostRepeats = 1000;
constexpr size_t kMostLayers = 100'000;  // blocks in blocks multiply

struct Block {
  std::string name;
  std::vector<std::string> arguments;
  std::vector<Tree> layers;
};

// Where layers are being copied to.
struct Scope {
  const Block* block = nullptr;  // null: the model's own list
  size_t usable = 0;             // blocks [0, usable) may be used here
  std::string prefix;            // "stage1.0."
  std::string input;             // what `input` means
  std::map<std::string, Tree> arguments;
};

Tree ScalarAt(const config::Place& place, const std::string& text) {
  Tree tree;
  tree.kind = Kind::kScalar;
  tree.place = place;
  tree.text = text;
  return tree;
}

class Expander {
 public:
  Expander(const std::string& first_input, Diagnostics& diagnostics)
      : diagnostics_(diagnostics), previous_(first_input) {}

  void ReadBlocks(const Tree& blocks) {
    if (blocks.kind != Kind::kMap) {
      diagnostics_.Note(blocks.place, "blocks must be a mapping from names to blocks");
      return;
    }
    for (const Tree::Entry& entry : blocks.entries) ReadBlock(entry);
  }

  std::vector<Tree> ExpandModel(const std::vector<Tree>& layers) {
    Scope scope;
    scope.usable = blocks_.size();
    std::vector<Tree> expanded;
    Expand(layers, scope, expanded);
    return expanded;
  }

 private:
  void ReadBlock(const Tree::Entry& entry) {
    Block block;
    block.name = entry.key;
    const Tree::Entry* const layers = entry.value.Find("layers");
    if (layers == nullptr || layers->value.kind != Kind::kList || layers->value.items.empty()) {
      diagnostics_.Note(entry.place, fmt::format("block '{}' needs a list of layers", entry.key),
                        "as in {arguments: [width], layers: [...]}");
    } else {
      block.layers = layers->value.items;
    }
    for (const Tree::Entry& part : entry.value.entries) {
      if (part.key == "arguments") {
        block.arguments = ReadArguments(part.value);
      } else if (part.key != "layers") {
        diagnostics_.Note(part.place,
                          fmt::format("unknown key '{}' in block '{}'", part.key, entry.key),
                          SuggestName(part.key, {"arguments", "layers"}));
      }
    }
    blocks_.push_back(std::move(block));
  }

  std::vector<std::string> ReadArguments(const Tree& list) {
    std::vector<std::string> names;
    if (list.kind != Kind::kList) {
      diagnostics_.Note(list.place, "arguments must be a list of names", "as in [width, stride]");
    }
    for (const Tree& item : list.items) {
      const bool reserved = item.text == "name" || item.text == "block" || item.text == "input" ||
                            item.text == "repeat";
      const bool twice = std::count(names.begin(), names.end(), item.text) > 0;
      if (item.kind != Kind::kScalar || reserved || twice) {
        diagnostics_.Note(item.place, fmt::format("'{}' cannot name an argument", item.text),
                          "a word, once, and none of name, block, input, repeat");
      } else {
        names.push_back(item.text);
      }
    }
    return names;
  }

  void Expand(const std::vector<Tree>& layers, const Scope& scope, std::vector<Tree>& out) {
    for (Tree layer : layers) {
      if (out.size() >= kMostLayers) {
        return diagnostics_.Note(layer.place,
                                 fmt::format("the blocks make more than {} layers", kMostLayers));
      }
      Substitute(layer, scope);
      if (layer.Find("block") != nullptr) {
        ExpandUse(layer, scope, out);
      } else {
        ExpandLayer(std::move(layer), scope, out);
      }
    }
  }

  void ExpandLayer(Tree layer, const Scope& scope, std::vector<Tree>& out) {
    if (Tree::Entry* const name = layer.Find("name")) {
      name->value.text = scope.prefix + name->value.text;
      previous_ = name->value.text;
      if (output_of_use_.contains(previous_)) {
        diagnostics_.Note(
            name->place,
            fmt::format("a layer and a use of a block are both called '{}'", previous_));
      }
    }
    if (Tree::Entry* const input = layer.Find("input")) {
      if (input->value.kind == Kind::kScalar) Resolve(input->value, scope);
      for (Tree& item : input->value.items) Resolve(item, scope);
    }
    out.push_back(std::move(layer));
  }

  // Puts arguments in the place of `$name`, at any depth.
  void Substitute(Tree& tree, const Scope& scope) {
    for (Tree& item : tree.items) Substitute(item, scope);
    for (Tree::Entry& entry : tree.entries) Substitute(entry.value, scope);
    if (tree.kind != Kind::kScalar || tree.quoted || !tree.text.starts_with('$')) return;
    const std::string name = tree.text.substr(1);
    const auto argument = scope.arguments.find(name);
    if (argument != scope.arguments.end()) {
      tree = argument->second;
    } else if (scope.block == nullptr) {
      diagnostics_.Note(tree.place, fmt::format("'${}' stands outside a block", name),
                        "arguments have values inside their block only");
    } else if (!Contains(scope.block->arguments, name)) {
      diagnostics_.Note(tree.place,
                        fmt::format("block '{}' has no argument '{}'", scope.block->name, name),
                        SuggestName(name, scope.block->arguments));
    }
  }

  // The full name of the value that `name` means in this scope.
  void Resolve(Tree& name, const Scope& scope) const {
    if (scope.block != nullptr && name.text == "input") {
      name.text = scope.input;
      return;
    }
    name.text = scope.prefix + name.text;
    const auto output = output_of_use_.find(name.text);
    if (output != output_of_use_.end()) name.text = output->second;
  }

  void ExpandUse(const Tree& use, const Scope& scope, std::vector<Tree>& out) {
    const Block* const block = FindBlock(use, scope);
    const Tree::Entry* const name = use.Find("name");
    if (name == nullptr || name->value.kind != Kind::kScalar) {
      diagnostics_.Note(use.place, "the use of a block needs a name",
                        "it begins the names of its layers");
    }
    if (block == nullptr || name == nullptr) return;
    Scope inner;
    inner.block = block;
    inner.usable = static_cast<size_t>(block - blocks_.data());
    inner.arguments = ArgumentsOf(use, *block);
    const Tree::Entry* const input = use.Find("input");
    const std::string taken = input == nullptr ? previous_ : InputOf(input->value, scope);
    inner.input = taken;
    const size_t first = out.size();
    const std::string full = scope.prefix + name->value.text;
    const int64_t repeats = RepeatsOf(use);
    for (int64_t i = 0; i < std::max<int64_t>(repeats, 1); ++i) {
      const std::string copy = repeats == 0 ? full : fmt::format("{}.{}", full, i);
      inner.prefix = copy + ".";
      Expand(block->layers, inner, out);
      output_of_use_[copy] = output_of_use_[full] = inner.input = previous_;
    }
    if (input != nullptr && out.size() > first && out[first].Find("input") == nullptr) {
      out[first].entries.push_back({"input", input->place, ScalarAt(input->value.place, taken)});
    }
  }

  const Block* FindBlock(const Tree& use, const Scope& scope) {
    const Tree& wanted = use.Find("block")->value;
    std::vector<std::string> names;
    for (size_t i = 0; i < scope.usable; ++i) {
      if (blocks_[i].name == wanted.text) return &blocks_[i];
      names.push_back(blocks_[i].name);
    }
    const bool later = std::any_of(blocks_.begin(), blocks_.end(),
                                   [&](const Block& block) { return block.name == wanted.text; });
    diagnostics_.Note(
        wanted.place,
        fmt::format("no block {} is called '{}'",
                    scope.block == nullptr ? "of this model" : "above this one", wanted.text),
        later ? "a block may use the blocks written above it" : SuggestName(wanted.text, names));
    return nullptr;
  }

  std::string InputOf(Tree value, const Scope& scope) {
    if (value.kind != Kind::kScalar) {
      diagnostics_.Note(value.place, "a block takes one input", "as in input: conv1");
      return "";
    }
    Resolve(value, scope);
    return value.text;
  }

  // 0 when the key is absent.
  int64_t RepeatsOf(const Tree& use) {
    const Tree::Entry* const entry = use.Find("repeat");
    if (entry == nullptr) return 0;
    int64_t repeats = 0;
    const bool number =
        entry->value.kind == Kind::kScalar && config::ParseInt(entry->value.text, repeats);
    if (number && repeats >= 1 && repeats <= kMostRepeats) return repeats;
    diagnostics_.Note(entry->value.place,
                      fmt::format("repeat must be a whole number from 1 to {}", kMostRepeats));
    return 1;
  }

  std::map<std::string, Tree> ArgumentsOf(const Tree& use, const Block& block) {
    std::map<std::string, Tree> arguments;
    for (const Tree::Entry& entry : use.entries) {
      if (Contains(block.arguments, entry.key)) {
        arguments[entry.key] = entry.value;
      } else if (!Contains({"name", "block", "input", "repeat"}, entry.key)) {
        diagnostics_.Note(entry.place,
                          fmt::format("block '{}' has no argument '{}'", block.name, entry.key),
                          SuggestName(entry.key, block.arguments));
      }
    }
    for (const std::string& name : block.arguments) {
      if (arguments.contains(name)) continue;
      diagnostics_.Note(use.place,
                        fmt::format("block '{}' needs the argument '{}'", block.name, name),
                        "its arguments: " + Join(block.arguments));
      arguments[name].place = use.place;
      arguments[name].kind = Kind::kRefused;
    }
    return arguments;
  }

  static bool Contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  Diagnostics& diagnostics_;
  std::vector<Block> blocks_;                         // as written
  std::string previous_;                              // full name of the last layer
  std::map<std::string, std::string> output_of_use_;  // full name of a use -> of its last layer
};

}  // namespace

void ExpandBlocks(const std::string& first_input, Tree& root, Diagnostics& diagnostics) {
  Expander expander(first_input, diagnostics);
  if (const Tree::Entry* const blocks = root.Find("blocks")) {
    expander.ReadBlocks(blocks->value);
    std::erase_if(root.entries, [](const Tree::Entry& entry) { return entry.key == "blocks"; });
  }
  if (Tree::Entry* const layers = root.Find("layers")) {
    layers->value.items = expander.ExpandModel(layers->value.items);
  }
}

}  // namespace dtrain
