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
constexpr size_t kMostLayers = 100'000;  // nested blocks multiply

// The keys of a block's use besides its arguments.
const std::vector<std::string> kUseKeys = {"name", "block", "input", "repeat"};

struct Block {
  std::string name;
  std::vector<std::string> arguments;
  bool arguments_known = true;  // false if one was refused
  std::vector<Tree> layers;     // empty if they were refused
};

// Describes the context into which layers are copied.
struct Scope {
  const Block* block = nullptr;  // null: the model's own list
  size_t usable = 0;             // blocks [0, usable) may be used here
  std::string prefix;            // "stage1.0."
  Tree input;                    // the value that `input` means; kRefused if unknown
  bool input_given = false;      // by the use; else `input` is the layer before it
  std::map<std::string, Tree> arguments;
};

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

Tree ScalarAt(const config::Place& place, const std::string& text) {
  Tree tree;
  tree.kind = Kind::kScalar;
  tree.place = place;
  tree.text = text;
  return tree;
}

// Returns a node for something already reported; readers skip it.
Tree Refused(const config::Place& place) {
  Tree tree;
  tree.kind = Kind::kRefused;
  tree.place = place;
  return tree;
}

bool IsArgument(const Tree& tree) {
  return tree.kind == Kind::kScalar && !tree.quoted && tree.text.starts_with('$');
}

bool IsText(const Tree& tree) {
  return tree.kind == Kind::kScalar &&
         (tree.quoted || config::ResolveScalar(tree.text) == config::ScalarType::kString);
}

// Returns "" if the `name` is no string.
std::string NameOf(const Tree& layer) {
  const Tree::Entry* const name = layer.Find("name");
  return name != nullptr && IsText(name->value) ? name->value.text : "";
}

// Reports errors in a block once, at their position in the block, and those that an argument causes at the argument.  A
// value with a reported error becomes Kind::kRefused, and a layer with one keeps only its name, so that no errors are
// reported that depend on it.
class Expander {
 public:
  Expander(const std::string& first_input, Diagnostics& diagnostics)
      : diagnostics_(diagnostics), previous_(first_input) {}

  void ReadBlocks(const Tree& blocks) {
    if (blocks.kind != Kind::kMap) {
      blocks_known_ = false;
      if (blocks.kind == Kind::kRefused) return;
      diagnostics_.Note(blocks.place, "blocks must be a mapping from names to blocks");
      return;
    }
    blocks_known_ = !blocks.flawed;
    for (const Tree::Entry& entry : blocks.entries) ReadBlock(entry);
  }

  Tree ExpandModel(Tree layers) {
    Scope scope;
    scope.usable = blocks_.size();
    CheckLayers(layers.items, nullptr);
    std::vector<Tree> expanded;
    Expand(layers.items, scope, expanded);
    if (too_many_) return Refused(layers.place);
    layers.items = std::move(expanded);
    return layers;
  }

 private:
  void ReadBlock(Tree::Entry entry) {
    Block block;
    block.name = entry.key;
    const bool complete = CorrectKeys(entry.value, {"arguments", "layers"}, [&](const auto& part) {
      return fmt::format("unknown key '{}' in block '{}'", part, block.name);
    });
    const Tree::Entry* const arguments = entry.value.Find("arguments");
    block.arguments_known = complete && !entry.value.flawed;
    if (arguments != nullptr) ReadArguments(arguments->value, block);
    const Tree::Entry* const layers = entry.value.Find("layers");
    if (layers != nullptr && layers->value.kind == Kind::kList && !layers->value.items.empty()) {
      block.layers = layers->value.items;
    } else if (complete && entry.value.kind != Kind::kRefused && !entry.value.flawed) {
      diagnostics_.Note(layers == nullptr ? entry.place : layers->place,
                        fmt::format("block '{}' needs a list of layers", block.name),
                        "as in {arguments: [width], layers: [...]}");
    }
    CheckLayers(block.layers, &block);
    blocks_.push_back(std::move(block));
  }

  // Reports keys that are not in `known`; those that are probably misspelt are renamed, so that they are read.  Returns
  // false if there are others.
  template <class Message>
  bool CorrectKeys(Tree& tree, const std::vector<std::string>& known, Message message) {
    std::vector<std::string> absent;
    for (const std::string& key : known) {
      if (tree.Find(key) == nullptr) absent.push_back(key);
    }
    bool complete = true;
    for (Tree::Entry& entry : tree.entries) {
      if (Contains(known, entry.key)) continue;
      const std::string meant = NearestName(entry.key, absent);
      const std::string what = message(entry.key);
      diagnostics_.NoteOnce(
          what, entry.place, what,
          meant.empty() ? SuggestName(entry.key, known) : "did you mean '" + meant + "'?");
      complete &= !meant.empty();
      if (meant.empty()) continue;
      std::erase(absent, meant);
      entry.key = meant;
    }
    return complete;
  }

  void ReadArguments(const Tree& list, Block& block) {
    if (list.kind != Kind::kList) {
      block.arguments_known = false;
      if (list.kind == Kind::kRefused) return;
      diagnostics_.Note(list.place, "arguments must be a list of names", "as in [width, stride]");
    }
    for (const Tree& item : list.items) {
      if (IsText(item) && !Contains(kUseKeys, item.text) && !Contains(block.arguments, item.text)) {
        block.arguments.push_back(item.text);
        continue;
      }
      block.arguments_known = false;
      if (item.kind == Kind::kRefused) continue;
      diagnostics_.Note(item.place,
                        fmt::format("arguments: '{}' cannot name an argument", item.text),
                        "a word, once, and none of name, block, input, repeat");
    }
  }

  // Checks the layers of `block`, null for the model itself.  The values of arguments are checked at the block's uses.
  void CheckLayers(std::vector<Tree>& layers, const Block* block) {
    std::vector<std::string> names = {"input"};
    bool all_named = true;
    for (Tree& layer : layers) {
      CheckArguments(layer, block);
      if (IsUse(layer)) CheckUse(layer, block, blocks_.size());
      if (block != nullptr && all_named) CheckInputs(layer, *block, names);
      const std::string name = NameOf(layer);
      all_named &= !name.empty();
      names.push_back(name);
    }
  }

  // Refuses `$name` if there is no such argument.
  void CheckArguments(Tree& tree, const Block* block) {
    for (Tree& item : tree.items) CheckArguments(item, block);
    for (Tree::Entry& entry : tree.entries) CheckArguments(entry.value, block);
    if (!IsArgument(tree)) return;
    const std::string name = tree.text.substr(1);
    if (block != nullptr && Contains(block->arguments, name)) return;
    tree.kind = Kind::kRefused;
    if (block == nullptr) {
      diagnostics_.Note(tree.place, fmt::format("'${}' stands outside a block", name),
                        "arguments have values inside their block only");
    } else if (block->arguments_known) {
      const std::string what = fmt::format("block '{}' has no argument '{}'", block->name, name);
      diagnostics_.NoteOnce(what, tree.place, what, SuggestName(name, block->arguments));
    }
  }

  // Checks that an input inside a block names an earlier layer.
  void CheckInputs(Tree& layer, const Block& block, const std::vector<std::string>& names) {
    Tree::Entry* const input = layer.Find("input");
    if (input == nullptr) return;
    const auto check = [&](Tree& item) {
      if (!IsText(item) || IsArgument(item)) return;
      if (Contains(names, item.text)) return;
      for (size_t dot = item.text.find('.'); dot != item.text.npos;
           dot = item.text.find('.', dot + 1)) {
        if (Contains(names, item.text.substr(0, dot))) return;  // a layer of a nested use
      }
      diagnostics_.NoteOnce(fmt::format("{} in {}", item.text, block.name), item.place,
                            fmt::format("input: no earlier layer of block '{}' is called '{}'",
                                        block.name, item.text),
                            SuggestName(item.text, names));
      item.kind = Kind::kRefused;
    };
    check(input->value);
    for (Tree& item : input->value.items) check(item);
  }

  // True for the use of a block, which has a `block`; a layer has a `type`.
  bool IsUse(Tree& layer) {
    if (layer.kind != Kind::kMap) return false;
    if (layer.Find("block") != nullptr || layer.Find("type") != nullptr) {
      return layer.Find("block") != nullptr;
    }
    for (Tree::Entry& entry : layer.entries) {
      const bool known =
          Contains(kUseKeys, entry.key) || std::ranges::any_of(blocks_, [&](const Block& block) {
            return Contains(block.arguments, entry.key);
          });
      if (known || NearestName(entry.key, {"type", "block"}) != "block") continue;
      diagnostics_.Note(entry.place, fmt::format("unknown key '{}' in a layer", entry.key),
                        "did you mean 'block'?");
      entry.key = "block";
      return true;
    }
    return false;
  }

  // Checks the use of a block inside `inside` (null: the model).  Parts that depend on arguments are checked again
  // after substitution.
  void CheckUse(Tree& use, const Block* inside, size_t usable) {
    const Tree& wanted = use.Find("block")->value;
    if (IsArgument(wanted)) return;
    const Block* const block = FindBlock(wanted, inside, usable);
    if (block == nullptr || block->layers.empty()) {
      use.kind = Kind::kRefused;
      std::erase_if(use.entries, [](const Tree::Entry& entry) { return entry.key != "name"; });
      return;
    }
    CheckKeys(use, *block);
    CheckName(use);
    Tree::Entry* const input = use.Find("input");
    if (input != nullptr && input->value.kind != Kind::kScalar &&
        input->value.kind != Kind::kRefused) {
      diagnostics_.Note(input->value.place, "a block takes one input", "as in input: conv1");
      input->value.kind = Kind::kRefused;
    }
    CheckRepeat(use);
  }

  const Block* FindBlock(const Tree& wanted, const Block* inside, size_t usable) {
    std::vector<std::string> names;
    for (size_t i = 0; i < usable; ++i) {
      if (blocks_[i].name == wanted.text) return &blocks_[i];
      names.push_back(blocks_[i].name);
    }
    if (!blocks_known_ || wanted.kind == Kind::kRefused) return nullptr;
    const bool later =
        (inside != nullptr && inside->name == wanted.text) ||
        std::ranges::any_of(blocks_, [&](const Block& b) { return b.name == wanted.text; });
    if (!IsText(wanted)) {
      diagnostics_.Note(wanted.place, "block must be the name of a block");
      return nullptr;
    }
    diagnostics_.NoteOnce(
        "block " + wanted.text, wanted.place,
        fmt::format("no block {} is called '{}'",
                    inside == nullptr ? "of this model" : "above this one", wanted.text),
        later ? "a block may use the blocks written above it" : SuggestName(wanted.text, names));
    return nullptr;
  }

  void CheckKeys(Tree& use, const Block& block) {
    std::vector<std::string> known = block.arguments;
    bool complete = block.arguments_known;
    if (complete) {
      known.insert(known.end(), kUseKeys.begin(), kUseKeys.end());
      complete = CorrectKeys(use, known, [&](const std::string& key) {
        return fmt::format("block '{}' has no argument '{}'", block.name, key);
      });
    }
    for (const std::string& name : block.arguments) {
      if (use.Find(name) != nullptr) continue;
      if (complete && !use.flawed) {
        diagnostics_.Note(use.place,
                          fmt::format("block '{}' needs the argument '{}'", block.name, name),
                          "its arguments: " + Join(block.arguments));
      }
      use.entries.push_back({name, use.place, Refused(use.place)});
    }
  }

  // A use without a name is expanded under a generated one, to which no layer can refer.
  void CheckName(Tree& use) {
    Tree::Entry* const name = use.Find("name");
    if (name != nullptr && (IsText(name->value) || IsArgument(name->value))) return;
    const bool reported = use.flawed || (name != nullptr && name->value.kind == Kind::kRefused);
    if (!reported) {
      diagnostics_.Note(name == nullptr ? use.place : name->place,
                        name == nullptr ? "the use of a block needs a name"
                                        : "the name of a use must be a string",
                        "it begins the names of its layers");
    }
    use.flawed = true;
    std::erase_if(use.entries, [](const Tree::Entry& entry) { return entry.key == "name"; });
    Tree made_up = ScalarAt(use.place, fmt::format("?{}", ++nameless_));
    made_up.quoted = true;
    use.entries.push_back({"name", use.place, std::move(made_up)});
  }

  void CheckRepeat(Tree& use) {
    const Tree::Entry* const entry = use.Find("repeat");
    if (entry == nullptr || IsArgument(entry->value)) return;
    int64_t repeats = 0;
    const Tree& value = entry->value;
    const bool number = value.kind == Kind::kScalar && config::ParseInt(value.text, repeats);
    if (number && repeats >= 1 && repeats <= kMostRepeats) return;
    if (value.kind != Kind::kRefused) {
      diagnostics_.Note(value.place,
                        fmt::format("repeat must be a whole number from 1 to {}", kMostRepeats));
    }
    use.flawed = true;
    std::erase_if(use.entries, [](const Tree::Entry& part) { return part.key == "repeat"; });
  }

  void Expand(const std::vector<Tree>& layers, const Scope& scope, std::vector<Tree>& out) {
    for (Tree layer : layers) {
      if (too_many_) return;
      if (out.size() >= kMostLayers) {
        too_many_ = true;
        return diagnostics_.Note(layer.place,
                                 fmt::format("the blocks make more than {} layers", kMostLayers));
      }
      Substitute(layer, scope);
      const bool use = layer.kind == Kind::kMap && layer.Find("block") != nullptr;
      if (use) CheckUse(layer, scope.block, scope.usable);
      if (use && layer.kind == Kind::kMap) {
        ExpandUse(layer, scope, out);
      } else {
        ExpandLayer(std::move(layer), scope, out);
      }
    }
  }

  void ExpandLayer(Tree layer, const Scope& scope, std::vector<Tree>& out) {
    previous_.clear();
    if (!NameOf(layer).empty()) {
      Tree::Entry* const name = layer.Find("name");
      name->value.text = scope.prefix + name->value.text;
      if (output_of_use_.contains(name->value.text)) {
        diagnostics_.Note(
            name->place,
            fmt::format("a layer and a use of a block are both called '{}'", name->value.text));
      }
      if (layer.kind != Kind::kRefused) previous_ = name->value.text;
    }
    if (Tree::Entry* const input = layer.Find("input")) {
      Resolve(input->value, scope);
      for (Tree& item : input->value.items) Resolve(item, scope);
    }
    out.push_back(std::move(layer));
  }

  // Replaces `$name` by arguments, at any depth.
  void Substitute(Tree& tree, const Scope& scope) {
    for (Tree& item : tree.items) Substitute(item, scope);
    for (Tree::Entry& entry : tree.entries) Substitute(entry.value, scope);
    if (!IsArgument(tree)) return;
    const std::string name = tree.text.substr(1);
    tree = scope.arguments.at(name);
    if (tree.argument.empty()) tree.argument = name;
  }

  // Replaces `name` by the full name of the value that it means in this scope; leaves anything that is no name for the
  // reader to report.
  void Resolve(Tree& name, const Scope& scope) const {
    if (!IsText(name)) return;
    if (scope.block != nullptr && name.text == "input") {
      const config::Place place = name.place;
      name = scope.input;
      if (!scope.input_given) name.place = place;
      return;
    }
    name.text = scope.prefix + name.text;
    const auto output = output_of_use_.find(name.text);
    if (output != output_of_use_.end()) name.text = output->second;
  }

  Tree Previous(const config::Place& place) const {
    return previous_.empty() ? Refused(place) : ScalarAt(place, previous_);
  }

  void ExpandUse(const Tree& use, const Scope& scope, std::vector<Tree>& out) {
    const Block* const block = FindBlock(use.Find("block")->value, scope.block, scope.usable);
    Scope inner;
    inner.block = block;
    inner.usable = static_cast<size_t>(block - blocks_.data());
    for (const std::string& name : block->arguments) {
      inner.arguments[name] = use.Find(name)->value;
    }
    const Tree::Entry* const input = use.Find("input");
    inner.input_given = input != nullptr;
    inner.input = input == nullptr ? Previous(use.place) : input->value;
    if (input != nullptr) Resolve(inner.input, scope);
    const Tree taken = inner.input;
    const size_t first = out.size();
    const std::string full = scope.prefix + NameOf(use);
    const int64_t repeats = RepeatsOf(use);
    for (int64_t i = 0; i < std::max<int64_t>(repeats, 1); ++i) {
      const std::string copy = repeats == 0 ? full : fmt::format("{}.{}", full, i);
      inner.prefix = copy + ".";
      Expand(block->layers, inner, out);
      inner.input = Previous(use.place);
      inner.input_given = false;
      if (!previous_.empty()) output_of_use_[copy] = output_of_use_[full] = previous_;
    }
    if (input != nullptr && out.size() > first && out[first].Find("input") == nullptr) {
      out[first].entries.push_back({"input", input->place, taken});
    }
    if (use.flawed) AddBroken(use, full, out);
  }

  // Follows the layers of a use that could not be expanded completely, so that no error is reported for layers that
  // take its output.
  void AddBroken(const Tree& use, const std::string& full, std::vector<Tree>& out) {
    Tree broken = Refused(use.place);
    if (!NameOf(use).starts_with('?')) {
      broken.entries.push_back({"name", use.place, ScalarAt(use.place, full)});
      output_of_use_.erase(full);
    }
    out.push_back(std::move(broken));
    previous_.clear();
  }

  // Returns 0 if the key is absent.
  static int64_t RepeatsOf(const Tree& use) {
    const Tree::Entry* const entry = use.Find("repeat");
    int64_t repeats = 0;
    if (entry != nullptr) config::ParseInt(entry->value.text, repeats);
    return repeats;
  }

  Diagnostics& diagnostics_;
  std::vector<Block> blocks_;  // in the model file's order
  bool blocks_known_ = true;   // false if `blocks` was refused as a whole
  bool too_many_ = false;      // layers
  int nameless_ = 0;           // uses without a name
  std::string previous_;       // full name of the last layer; "" if unknown
  // Maps full names of uses to those of their last layers.
  std::map<std::string, std::string> output_of_use_;
};

// Corrects misspelt top-level keys of a model file, so that its blocks and layers are read nevertheless.
void CorrectModelKeys(Tree& root, Diagnostics& diagnostics) {
  const std::vector<std::string> known = {"blocks", "inputs", "layers", "name", "sample"};
  std::vector<std::string> absent;
  for (const std::string& key : known) {
    if (root.Find(key) == nullptr) absent.push_back(key);
  }
  for (Tree::Entry& entry : root.entries) {
    const std::string meant = NearestName(entry.key, absent);
    if (Contains(known, entry.key) || (meant != "blocks" && meant != "layers")) continue;
    diagnostics.Note(entry.place, "unknown key '" + entry.key + "'", SuggestName(entry.key, known));
    std::erase(absent, meant);
    entry.key = meant;
  }
}

}  // namespace

void ExpandBlocks(const std::string& first_input, Tree& root, Diagnostics& diagnostics) {
  CorrectModelKeys(root, diagnostics);
  Expander expander(first_input, diagnostics);
  if (const Tree::Entry* const blocks = root.Find("blocks")) {
    expander.ReadBlocks(blocks->value);
    std::erase_if(root.entries, [](const Tree::Entry& entry) { return entry.key == "blocks"; });
  }
  Tree::Entry* const layers = root.Find("layers");
  if (layers != nullptr && layers->value.kind == Kind::kList) {
    layers->value = expander.ExpandModel(std::move(layers->value));
  }
}

}  // namespace dtrain
