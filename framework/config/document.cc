#include <filesystem>
#include <map>

#include "framework/config/reader.h"
#include "framework/config/schema.h"
#include "framework/config/tree.h"
#include "framework/core/error.h"
#include "framework/core/file.h"

namespace dtrain::config {
namespace {

// A pipe can be read only once, but a command may read its config several times.
std::string ReadOnce(const std::string& file) {
  static std::map<std::string, std::string> texts;  // of pipes; only one thread reads configs
  std::error_code error;
  if (std::filesystem::status(file, error).type() != std::filesystem::file_type::fifo) {
    return ReadText(file);
  }
  const auto known = texts.find(file);
  return known != texts.end() ? known->second : texts[file] = ReadText(file);
}

}  // namespace

std::string ReadConfigText(const std::string& file) {
  try {
    return ReadOnce(file);
  } catch (const DataError& error) {
    throw ConfigError(error.what(), "give the path of a YAML file");
  }
}

struct Document::Impl {
  std::string file_name;
  Diagnostics diagnostics;
  Tree tree;  // unchanged once a reader exists: the sections point into it
  std::shared_ptr<SectionNode> root = std::make_shared<SectionNode>();
};

Document::Document(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->root->diagnostics = &impl_->diagnostics;
}

Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

Document Document::FromFile(const std::string& file, const std::vector<std::string>& overrides,
                            const Overlay& overlay, const Options& options) {
  return FromText(ReadConfigText(file), file, overrides, overlay, options);
}

Document Document::FromText(const std::string& text, const std::string& file_name,
                            const std::vector<std::string>& overrides, const Overlay& overlay,
                            const Options& options) {
  auto impl = std::make_unique<Impl>();
  impl->file_name = file_name;
  std::optional<Tree> tree = ParseYaml(text, PlacesIn(file_name), impl->diagnostics);
  const bool readable = tree.has_value();
  if (readable) impl->tree = *std::move(tree);
  if (readable && !overlay.file.empty()) {
    LayOver(ReadConfigText(overlay.file), overlay.file, overlay.section, impl->tree,
            impl->diagnostics);
  }
  ApplyOverrides(overrides, options, impl->tree, impl->diagnostics);
  impl->root->place = impl->tree.place;
  if (impl->tree.kind == Tree::Kind::kMap) {
    impl->root->tree = &impl->tree;
  } else if (readable && impl->tree.kind != Tree::Kind::kNull) {
    impl->diagnostics.Note(impl->tree.place, "expected keys and values, as in 'batch: 64'");
    impl->diagnostics.Silence();
  }
  if (!readable) impl->diagnostics.Silence();
  return Document(std::move(impl));
}

Document Document::Empty() {
  auto impl = std::make_unique<Impl>();
  impl->root->place.text = "(no file)";
  impl->root->may_lack_keys = true;
  return Document(std::move(impl));
}

void Document::Rewrite(const std::function<void(Tree&, Diagnostics&)>& rewrite) {
  if (impl_->root->tree != nullptr) rewrite(impl_->tree, impl_->diagnostics);
}

const std::string& Document::file_name() const { return impl_->file_name; }
Reader Document::root() { return Reader(impl_->root); }

void Document::Finish() {
  impl_->root->NoteUnknownKeys();
  if (!impl_->diagnostics.empty()) throw ConfigError(impl_->diagnostics.Report());
}

std::vector<std::string> Document::errors() const { return impl_->diagnostics.Lines(); }
std::string Document::EffectiveYaml(const std::string& without) const {
  return DumpYaml(*impl_->root, without);
}
std::string Document::EffectiveJson() const { return DumpJson(*impl_->root); }
std::vector<KeyHelp> Document::Keys() const { return DumpKeys(*impl_->root); }

}  // namespace dtrain::config
