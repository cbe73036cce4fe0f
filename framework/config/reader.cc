#include "framework/config/reader.h"

#include "framework/config/schema.h"
#include "framework/config/tree.h"

namespace dtrain::config {

template <class T>
Field<T>& Field<T>::Min(double bound) {
  declaration_->limits.bounds.push_back({Limit::kMin, bound});
  return *this;
}

template <class T>
Field<T>& Field<T>::Max(double bound) {
  declaration_->limits.bounds.push_back({Limit::kMax, bound});
  return *this;
}

template <class T>
Field<T>& Field<T>::Above(double bound) {
  declaration_->limits.bounds.push_back({Limit::kAbove, bound});
  return *this;
}

template <class T>
Field<T>& Field<T>::Below(double bound) {
  declaration_->limits.bounds.push_back({Limit::kBelow, bound});
  return *this;
}

template <class T>
Field<T>& Field<T>::OneOf(std::vector<std::string> names) {
  declaration_->limits.names = std::move(names);
  return *this;
}

template <class T>
Field<T>& Field<T>::NotOf(const std::string& key, std::vector<std::string> names) {
  declaration_->limits.others.push_back({key, std::move(names)});
  return *this;
}

template <class T>
Field<T>& Field<T>::Auto() {
  declaration_->may_be_auto = true;
  return *this;
}

template <class T>
Field<T>& Field<T>::NumbersToo() {
  declaration_->may_be_number = true;
  return *this;
}

template <class T>
Field<T>& Field<T>::Help(const std::string& text) {
  declaration_->help = text;
  return *this;
}

template <class T>
Field<T>& Field<T>::Required() {
  declaration_->required = true;
  return *this;
}

template <class T>
Field<T>::operator T() {
  return std::get<T>(declaration_->Evaluate(diagnostics_));
}

template class Field<bool>;
template class Field<int64_t>;
template class Field<double>;
template class Field<std::string>;
template class Field<std::vector<int64_t>>;
template class Field<std::vector<double>>;
template class Field<std::vector<std::string>>;

template <class T>
Field<T> Reader::Declare(const std::string& key, T default_value) {
  auto declaration = std::make_shared<Declaration>();
  declaration->default_value = default_value;
  declaration->value = std::move(default_value);
  section_->Declare(declaration, key);
  return Field<T>(std::move(declaration), *section_->diagnostics);
}

Field<int64_t> Reader::Int(const std::string& key, int64_t default_value) {
  return Declare(key, default_value);
}

Field<double> Reader::Number(const std::string& key, double default_value) {
  return Declare(key, default_value);
}

Field<bool> Reader::Bool(const std::string& key, bool default_value) {
  return Declare(key, default_value);
}

Field<std::string> Reader::String(const std::string& key, const std::string& default_value) {
  return Declare(key, default_value);
}

Field<std::vector<int64_t>> Reader::Ints(const std::string& key,
                                         std::vector<int64_t> default_value) {
  return Declare(key, std::move(default_value));
}

Field<std::vector<double>> Reader::Numbers(const std::string& key,
                                           std::vector<double> default_value) {
  return Declare(key, std::move(default_value));
}

Field<std::vector<std::string>> Reader::Strings(const std::string& key,
                                                std::vector<std::string> default_value) {
  return Declare(key, std::move(default_value));
}

Reader Reader::Section(const std::string& key, const std::string& help) {
  Reader child(section_->Child(key));
  if (!help.empty()) child.section_->help = help;
  return child;
}

std::vector<Reader> Reader::List(const std::string& key, const std::string& help) {
  std::vector<Reader> readers;
  for (const auto& child : section_->Children(key)) {
    if (!help.empty()) child->help = help;
    readers.push_back(Reader(child));
  }
  return readers;
}

void Reader::ExplainUnknown(std::function<std::string(const std::string& key)> explain) {
  section_->explain = std::move(explain);
}

bool Reader::Has(const std::string& key) const { return section_->Find(key) != nullptr; }

std::string Reader::Where(const std::string& key) const { return section_->PlaceOf(key).text; }

std::string Reader::Line(const std::string& key) const {
  if (!Has(key)) return "by default";
  const Place place = section_->PlaceOf(key);
  return place.line > 0 ? "line " + std::to_string(place.line) : place.text;
}

std::string Reader::path() const { return section_->path; }

bool Reader::sound() const { return section_->Sound(); }

void Reader::AddError(const std::string& key, const std::string& message, const std::string& hint,
                      const std::vector<KeyRef>& by) {
  section_->AddError(key, message, hint, by);
}

void Reader::AddErrorOnce(const std::string& subject, const std::string& key, size_t index,
                          const std::string& message, const std::string& hint) {
  section_->AddErrorOnce(subject, key, index, message, hint);
}

}  // namespace dtrain::config
