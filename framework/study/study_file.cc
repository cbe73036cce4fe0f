#include "framework/study/study_file.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "framework/config/tree.h"
#include "framework/core/error.h"
#include "framework/core/text.h"
#include "framework/setup/locate_model.h"
#include "framework/study/job_record.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using config::Diagnostics;
using config::Reader;
using config::Tree;

// Returns a scalar, or a list of scalars, as the text of an override; nothing for anything else.
std::optional<std::string> TextOfValue(const Tree& tree) {
  if (tree.kind == Tree::Kind::kScalar) {
    return tree.quoted ? config::QuoteYaml(tree.text) : tree.text;
  }
  if (tree.kind != Tree::Kind::kList) return std::nullopt;
  std::vector<std::string> items;
  for (const Tree& item : tree.items) {
    const auto text = TextOfValue(item);
    if (!text) return std::nullopt;
    items.push_back(*text);
  }
  return "[" + Join(items) + "]";
}

// Reads the parts of a study that may have any keys: settings of configs, and names that the author chose.  They are
// taken from the tree before the Reader sees it, which knows declared keys only.
class FreeParts {
 public:
  FreeParts(Tree& root, Diagnostics& diagnostics, Study& study)
      : diagnostics_(diagnostics), study_(study) {
    study.set = Settings(Take(root, "set"));
    for (const auto& factor : Factors(Take(root, "cases"))) Cross(factor);
    study.methods = Named(Take(root, "methods"));
    const Tree why = Take(root, "why");
    for (const Tree::Entry& entry : Mapping(why, "terms to sentences").entries) {
      study.why.emplace_back(entry.key, entry.value.text);
      if (entry.value.kind != Tree::Kind::kScalar || entry.value.text.empty()) {
        diagnostics_.Note(entry.place,
                          "a sentence should say why '" + entry.key + "' is not equal");
      }
    }
    if (Tree::Entry* tune = root.Find("tune"); tune != nullptr) {
      const Tree keys = Take(tune->value, "keys");
      ReadTuned(Mapping(keys, "keys to lists of values"));
      study.tuning.set = Settings(Take(tune->value, "set"));
    }
    ReadMeasures(Take(root, "measure"));
  }

 private:
  // Leaves an empty mapping in the place of what it takes, so that the Reader finds the key.
  static Tree Take(Tree& root, const std::string& key) {
    Tree::Entry* const entry = root.Find(key);
    if (entry == nullptr) return {};
    Tree taken = std::move(entry->value);
    entry->value = {};
    entry->value.kind = Tree::Kind::kMap;
    entry->value.place = entry->place;
    return taken;
  }

  std::vector<Setting> Settings(const Tree& tree) {
    std::vector<Setting> settings;
    if (tree.kind == Tree::Kind::kNull) return settings;
    if (tree.kind != Tree::Kind::kMap) {
      diagnostics_.Note(tree.place, "settings are a mapping, such as {solver.lr: 0.1}");
      return settings;
    }
    AddSettings(tree, "", settings);
    return settings;
  }
  void AddSettings(const Tree& tree, const std::string& above, std::vector<Setting>& settings) {
    for (const Tree::Entry& entry : tree.entries) {
      const std::string key = above + entry.key;
      if (entry.value.kind == Tree::Kind::kMap) {
        AddSettings(entry.value, key + ".", settings);
        continue;
      }
      const auto text = TextOfValue(entry.value);
      if (!text) {
        diagnostics_.Note(entry.place, "'" + key + "' should have a value, or a list of values");
      } else if (key == "seed" || key == "output") {
        diagnostics_.Note(entry.place, "'" + key + "' differs between the runs of a study",
                          key == "seed" ? "list the seeds with the key 'seeds'"
                                        : "name the study's folder with --output");
      } else {
        settings.push_back({key, *text});
        study_.places[settings.back().text()] = entry.place.text;
      }
    }
  }

  // Returns the tree, and reports an error if it is neither a mapping nor absent.
  const Tree& Mapping(const Tree& tree, const std::string& of) {
    if (tree.kind != Tree::Kind::kMap && tree.kind != Tree::Kind::kNull) {
      diagnostics_.Note(tree.place, "expected a mapping of " + of);
    }
    return tree;
  }

  std::vector<NamedSettings> Named(const Tree& tree) {
    std::vector<NamedSettings> named;
    for (const Tree::Entry& entry : Mapping(tree, "names to settings").entries) {
      if (entry.key.empty() || entry.key.find_first_of("\"\n") != std::string::npos) {
        diagnostics_.Note(entry.place, "a name is a line of text without double quotes");
      }
      named.push_back({entry.key, Settings(entry.value)});
    }
    return named;
  }
  // A mapping is one factor; a list of mappings has several, of which all combinations are cases.
  std::vector<std::vector<NamedSettings>> Factors(const Tree& tree) {
    std::vector<std::vector<NamedSettings>> factors;
    if (tree.kind == Tree::Kind::kNull) return factors;
    if (tree.kind != Tree::Kind::kList) {
      factors.push_back(Named(tree));
    } else {
      for (const Tree& item : tree.items) factors.push_back(Named(item));
    }
    if (std::any_of(factors.begin(), factors.end(), [](const auto& it) { return it.empty(); })) {
      diagnostics_.Note(tree.place, "there is no case in a mapping of 'cases'");
      factors.clear();
    }
    // The profile of a case looks like a setting, and is an option of the command.
    for (std::vector<NamedSettings>& factor : factors) {
      for (NamedSettings& level : factor) TakeProfile(level);
    }
    return factors;
  }
  static void TakeProfile(NamedSettings& level) {
    const auto profile = std::find_if(level.settings.begin(), level.settings.end(),
                                      [](const Setting& it) { return it.key == "profile"; });
    if (profile == level.settings.end()) return;
    level.profile = profile->value;
    level.settings.erase(profile);
  }
  void Cross(const std::vector<NamedSettings>& factor) {
    if (study_.cases.empty()) study_.cases.emplace_back();
    std::vector<NamedSettings> crossed;
    for (const NamedSettings& so_far : study_.cases) {
      for (const NamedSettings& level : factor) {
        NamedSettings& both = crossed.emplace_back(so_far);
        both.name += (both.name.empty() ? "" : ", ") + level.name;
        both.settings.insert(both.settings.end(), level.settings.begin(), level.settings.end());
        if (!level.profile.empty()) both.profile = level.profile;
      }
    }
    study_.cases = std::move(crossed);
  }

  void ReadTuned(const Tree& tree) {
    for (const Tree::Entry& entry : tree.entries) {
      VariedSetting setting{entry.key, {}};
      for (const Tree& item : entry.value.items) {
        if (const auto text = TextOfValue(item)) setting.values.push_back(*text);
      }
      if (setting.values.empty() || setting.values.size() != entry.value.items.size()) {
        diagnostics_.Note(entry.place, "'" + entry.key + "' should have a list of values to try");
      }
      for (const std::string& value : setting.values) {
        study_.places[Setting{entry.key, value}.text()] = entry.place.text;
      }
      study_.tuning.keys.push_back(std::move(setting));
    }
  }

  void ReadMeasures(const Tree& tree) {
    for (const Tree& item : tree.items) AddMeasure("", item, item.place);
    for (const Tree::Entry& entry : tree.entries) AddMeasure(entry.key, entry.value, entry.place);
  }
  void AddMeasure(std::string name, const Tree& tree, const config::Place& place) {
    try {
      if (tree.kind != Tree::Kind::kScalar) throw UsageError("a measure is an expression", "");
      const Expression value = Expression::Parse(tree.text);
      for (const NamedValue& named : value.names()) JobRecord::CheckName(named);
      if (name.empty() && value.names().size() == 1) name = value.names()[0].name;
      if (name.empty()) {
        throw UsageError("this measure needs a name",
                         "write measure as a mapping: {NAME: EXPRESSION}");
      }
      for (const StudyMeasure& other : study_.measures) {
        if (other.name != name) continue;
        throw UsageError("two measures have the name '" + name + "'",
                         "write measure as a mapping: {NAME: EXPRESSION}");
      }
      study_.measures.push_back({name, value});
    } catch (const UsageError& error) {
      diagnostics_.Note(place, error.what(), error.hint());
    }
  }

  Diagnostics& diagnostics_;
  Study& study_;
};

std::vector<uint64_t> Seeds(Reader reader, const std::string& key, std::vector<int64_t> usual,
                            const std::string& help) {
  const std::vector<int64_t> given = reader.Ints(key, std::move(usual)).Min(0).Help(help);
  std::vector<uint64_t> seeds(given.begin(), given.end());
  if (std::set<uint64_t>(seeds.begin(), seeds.end()).size() < seeds.size()) {
    reader.AddError(key, "a seed is given twice");
  }
  return seeds;
}

template <class Named>
bool Contains(const std::vector<Named>& all, const std::string& name) {
  return std::any_of(all.begin(), all.end(), [&](const Named& it) { return it.name == name; });
}
std::vector<std::string> NamesOf(const std::vector<StudyMeasure>& measures) {
  std::vector<std::string> names;
  for (const StudyMeasure& measure : measures) names.push_back(measure.name);
  return names;
}

bool LargerIsBetter(const Expression& measure) {
  const auto names = measure.names();
  return std::any_of(names.begin(), names.end(), [](const NamedValue& named) {
    const bool at = named.name.starts_with("at_");
    const std::string& result = at ? named.arguments[0] : named.name;
    return result.ends_with("accuracy") || result.ends_with("bleu") ||
           result.ends_with("per_second");
  });
}

// Returns what is wrong with a name in a claim; "" if nothing.
std::string ErrorInClaim(const Study& study, const NamedValue& named, std::string& hint) {
  if (!Contains(study.measures, named.name)) {
    hint = SuggestName(named.name, NamesOf(study.measures));
    return "no measure has the name '" + named.name + "'";
  }
  if (named.arguments.empty() || named.arguments.size() > 2) {
    hint = "for example " + named.name + "(" + study.methods.front().name + ")";
    return "'" + named.name + "' needs a method, and may have a case";
  }
  if (!Contains(study.methods, named.arguments[0])) {
    hint = SuggestName(named.arguments[0], NamesOf(study.methods));
    return "no method has the name '" + named.arguments[0] + "'";
  }
  if (named.arguments.size() == 2 && !Contains(study.cases, named.arguments[1])) {
    hint = SuggestName(named.arguments[1], NamesOf(study.cases));
    return "no case has the name '" + named.arguments[1] + "'";
  }
  return "";
}

void ReadClaimValue(Reader& reader, const std::string& text, const Study& study,
                    StudyClaim& claim) {
  try {
    claim.value = Expression::Parse(text);
  } catch (const UsageError& error) {
    return reader.AddError("value", error.what(), error.hint());
  }
  if (study.methods.empty()) return;
  for (const NamedValue& named : claim.value->names()) {
    std::string hint;
    const std::string error = ErrorInClaim(study, named, hint);
    if (!error.empty()) reader.AddError("value", error, hint);
  }
}

StudyClaim ReadClaim(Reader reader, const Study& study) {
  StudyClaim claim;
  claim.text = reader.String("claim", "").Required().Help("what is claimed, in a sentence");
  const std::string value =
      reader.String("value", "").Help("arithmetic of measures: seconds_to(GSSP) / seconds_to(SSP)");
  const auto bound = [&](const std::string& key, const std::string& help) {
    const double number = reader.Number(key, 0).Help(help);
    return reader.Has(key) ? std::optional(number) : std::nullopt;
  };
  claim.at_least = bound("at_least", "the claim holds if the value is not smaller");
  claim.at_most = bound("at_most", "the claim holds if the value is not larger");
  claim.about = bound("about", "the claim holds if the value is within a share of this");
  claim.within = reader.Number("within", 0.05).Above(0).Help("that share");
  if (claim.about && *claim.about == 0) {
    reader.AddError("about", "no value but 0 is within a share of 0",
                    "bound it from both sides: at_least: -0.01, at_most: 0.01");
  }
  claim.paper = reader.String("paper", "").NumbersToo().Help("the paper's figure");
  claim.untested =
      reader.String("untested", "").Help("why the claim cannot be tested here; instead of a value");
  claim.note = reader.String("note", "").Help("why the claim does not hold, as far as was found");
  const bool bounded = claim.at_least || claim.at_most || claim.about;
  if (!claim.untested.empty() && (bounded || !value.empty())) {
    reader.AddError("untested", "a claim that cannot be tested has no value and no bound", "",
                    {"value"});
  } else if (claim.untested.empty() && value.empty()) {
    reader.AddError("value", "a claim needs a value, or 'untested' with the reason");
  } else if (claim.untested.empty() && !bounded) {
    reader.AddError("value", "a claim needs a bound", "give at_least, at_most or about");
  }
  if (!value.empty()) ReadClaimValue(reader, value, study, claim);
  return claim;
}

// Returns the file that a study names: relative to its own folder, else to the working folder.
std::string NearStudy(const Study& study, const std::string& path) {
  const fs::path near = fs::path(study.file).parent_path() / path;
  return fs::exists(near) ? near.string() : path;
}

// Gives each case its profile: its own, or that of the study.
void ReadProfiles(Reader& root, const std::string& of_all, Study& study) {
  size_t with = 0;
  for (NamedSettings& it : study.cases) {
    if (it.profile.empty()) it.profile = of_all;
    if (it.profile.empty()) continue;
    ++with;
    it.profile = NearStudy(study, it.profile);
    if (!fs::is_regular_file(it.profile)) {
      root.AddError("profile", "there is no file " + it.profile);
    }
  }
  if (with > 0 && !study.simulated) {
    root.AddError("profile", "a profile gives the times of simulated runs", "", {"by"});
  }
  if (with > 0 && with < study.cases.size()) {
    root.AddError("cases", "some cases have a profile and some have none",
                  "runs with and without gradients have nothing to compare");
  }
}

void ReadTuning(Reader reader, Study& study) {
  const bool tunes = !study.tuning.keys.empty();
  reader.Section("keys", "keys to tune, each with the list of values that every method tries");
  reader.Section("set", "settings of the tuning runs alone, such as {epochs: 3}");
  const std::string on = reader.String("on", "validation")
                             .OneOf({"validation"})
                             .Help("where the values are compared: never on the test set");
  study.tuning.validation = reader.Number("validation", 0.1)
                                .Above(0)
                                .Below(1)
                                .Help("share of the training samples that is set aside for it");
  study.tuning.seeds =
      Seeds(reader, "seeds", {101}, "seeds of the tuning runs, none of the study's");
  const int64_t epochs =
      reader.Int("epochs", 0).Min(0).Help("epochs of the tuning runs; 0: as many as the others");
  if (epochs > 0) study.tuning.set.push_back({"epochs", std::to_string(epochs)});
  for (const uint64_t seed : study.tuning.seeds) {
    if (!tunes || std::find(study.seeds.begin(), study.seeds.end(), seed) == study.seeds.end()) {
      continue;
    }
    reader.AddError("seeds", fmt::format("seed {} is one of the study's own", seed),
                    "tuning on the seeds of the results would favour what was tuned");
  }
  if (tunes && study.sizes_only()) {
    reader.AddError("", "a study of sizes only computes no gradients, so nothing can be tuned");
  }
  for (const NamedSettings& method : study.methods) {
    for (const Setting& setting : method.settings) {
      if (!std::any_of(study.tuning.keys.begin(), study.tuning.keys.end(),
                       [&](const VariedSetting& tuned) { return tuned.key == setting.key; })) {
        continue;
      }
      reader.AddError("", fmt::format("method '{}' sets '{}', which is tuned for every method",
                                      method.name, setting.key));
    }
  }
}

void ReadKeys(Reader root, Study& study) {
  study.title = root.String("title", study.name).Help("headline of the tables and of the page");
  Reader paper = root.Section("paper", "the paper whose experiment it is");
  study.paper = paper.String("name", "").Help("the paper");
  study.paper_says = paper.String("says", "").Help("its result, in its words or figures");
  const std::string run = root.String("run", "").Help(
      "a config of configs/runs, or a path; none is needed with a profile");
  study.simulated = std::string(root.String("by", "simulate")
                                    .OneOf({"simulate", "train"})
                                    .Help("simulate: virtual time; train: this machine's or its "
                                          "cluster's")) == "simulate";
  const std::string profile =
      root.String("profile", "")
          .Help(
              "a model profile (dtrain time --profile): sizes only, without gradients; a case may "
              "have its own");
  root.Section("set", "settings of all runs");
  root.Section("cases",
               "conditions, each with its settings: every method runs in every case; a list of "
               "mappings is crossed");
  root.Section("methods", "what is compared: names, each with its settings");
  root.Section("why",
               "terms that are not equal for all methods, each with a sentence that says why");
  root.Section("measure", "what is measured of each run: expressions, in a list or with names");
  study.seeds = Seeds(root, "seeds", {1, 2, 3}, "seeds of the results");
  study.rank_by = root.String("rank_by", "")
                      .Help(
                          "a measure of which smaller is better, such as seconds to a target, for "
                          "performance profiles");
  if (study.methods.empty()) root.AddError("methods", "a study compares methods; none is given");
  if (study.measures.empty())
    root.AddError("measure", "a study measures something; nothing is given");
  if (study.seeds.empty()) root.AddError("seeds", "a study needs a seed");
  if (!study.rank_by.empty() && !Contains(study.measures, study.rank_by)) {
    root.AddError("rank_by", "no measure has the name '" + study.rank_by + "'",
                  SuggestName(study.rank_by, NamesOf(study.measures)), {"measure"});
  }
  for (const StudyMeasure& measure : study.measures) {
    if (measure.name != study.rank_by || !LargerIsBetter(measure.value)) continue;
    root.AddError("rank_by", "of '" + study.rank_by + "' a larger value is better",
                  "take one of which a smaller value is better, such as seconds to a target",
                  {"measure"});
  }
  ReadProfiles(root, profile, study);
  ReadTuning(root.Section("tune", "what is tuned for every method before the results"), study);
  for (const Reader& item : root.List("expect", "the paper's claims, each with a verdict")) {
    study.claims.push_back(ReadClaim(item, study));
  }
  if (run.empty()) {
    if (!study.sizes_only()) {
      root.AddError("run", "a study runs a config", "name it, or give a profile for sizes only",
                    {"profile"});
    }
    return;
  }
  try {
    study.run = LocateConfig(NearStudy(study, run)).string();
  } catch (const ConfigError& error) {
    root.AddError("run", error.what(), error.hint());
  }
}

}  // namespace

std::vector<std::string> NamesOf(const std::vector<NamedSettings>& all) {
  std::vector<std::string> names;
  for (const NamedSettings& it : all) names.push_back(it.name);
  return names;
}

Study ReadStudy(const std::string& file) {
  Study study;
  study.file = file;
  study.name = fs::path(file).stem().string();
  config::Document document = config::Document::FromFile(file);
  document.Rewrite(
      [&](Tree& root, Diagnostics& diagnostics) { FreeParts(root, diagnostics, study); });
  if (study.cases.empty()) study.cases.emplace_back();
  ReadKeys(document.root(), study);
  document.Finish();
  return study;
}

}  // namespace dtrain
