#include "framework/data/limit.h"

#include <algorithm>
#include <utility>

#include "framework/core/sha256.h"

namespace dtrain {
namespace {

class LimitedDataset : public Dataset {
 public:
  LimitedDataset(std::unique_ptr<Dataset> whole, int64_t limit)
      : whole_(std::move(whole)), limit_(limit) {}

  int64_t size(Split split) const override { return std::min(limit_, whole_->size(split)); }
  std::vector<FieldSpec> fields() const override { return whole_->fields(); }
  int64_t classes() const override { return whole_->classes(); }
  bool has_validation() const override { return whole_->has_validation(); }
  int64_t Terms(Split split, int64_t index) const override { return whole_->Terms(split, index); }
  std::vector<SampleLength> Lengths(Split split) const override {
    std::vector<SampleLength> lengths = whole_->Lengths(split);
    if (!lengths.empty()) lengths.resize(static_cast<size_t>(size(split)));
    return lengths;
  }
  void SampleShapes(Split split, std::span<const int64_t> indices,
                    std::span<Shape> shapes) const override {
    whole_->SampleShapes(split, indices, shapes);
  }
  void Fill(Split split, std::span<const int64_t> indices, uint64_t epoch,
            Batch& batch) const override {
    whole_->Fill(split, indices, epoch, batch);
  }
  // Vocabularies stay those of the whole set, whose first sentences are this one's.
  const SentencePairs* sentence_pairs() const override { return whole_->sentence_pairs(); }
  std::string ManifestHash() const override {
    return Sha256::Of(whole_->ManifestHash() + " limit " + std::to_string(limit_));
  }

 private:
  std::unique_ptr<Dataset> whole_;
  int64_t limit_;
};

class LimitedSource : public DatasetSource {
 public:
  LimitedSource(std::shared_ptr<const DatasetSource> whole, int64_t limit)
      : whole_(std::move(whole)), limit_(limit) {}

  std::vector<FieldSpec> fields() const override { return whole_->fields(); }
  int64_t size(Split split) const override { return std::min(limit_, whole_->size(split)); }
  int64_t classes() const override { return whole_->classes(); }
  std::vector<RemoteFile> files() const override { return whole_->files(); }
  std::unique_ptr<Dataset> Load(const std::filesystem::path& folder, uint64_t seed) const override {
    return std::make_unique<LimitedDataset>(whole_->Load(folder, seed), limit_);
  }

 private:
  std::shared_ptr<const DatasetSource> whole_;
  int64_t limit_;
};

}  // namespace

std::shared_ptr<const DatasetSource> LimitSource(std::shared_ptr<const DatasetSource> source,
                                                 int64_t limit) {
  return std::make_shared<LimitedSource>(std::move(source), limit);
}

}  // namespace dtrain
