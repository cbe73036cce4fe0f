// The results of the sparse collectives, computed in a few plain lines each, with maps in place of messages.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "tests/comm/sparse_world.h"

namespace dtrain {

using EntryMap = std::map<int32_t, float>;

inline EntryMap MapOf(const Selected& selected) {
  EntryMap map;
  for (size_t i = 0; i < selected.positions.size(); ++i) {
    map[selected.positions[i]] = selected.values[i];
  }
  return map;
}

inline Selected SelectedOf(const EntryMap& map) {
  Selected selected;
  for (const auto& [position, value] : map) selected.Add(position, value);
  return selected;
}

inline void AddTo(EntryMap& sum, const EntryMap& more) {
  for (const auto& [position, value] : more) {
    const auto [at, is_new] = sum.try_emplace(position, value);
    if (!is_new) at->second += value;
  }
}

// Returns the entries by decreasing magnitude; of equal ones the lowest position comes first.
inline std::vector<std::pair<int32_t, float>> BySize(const EntryMap& map) {
  std::vector<std::pair<int32_t, float>> entries(map.begin(), map.end());
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::abs(a.second) > std::abs(b.second);
  });
  return entries;
}

inline std::vector<Summed> GatherReference(const std::vector<Selected>& mine) {
  return std::vector<Summed>(mine.size(), Summed{.parts = mine, .returned = {}});
}

// Sums all nodes of the tree, level by level.
inline std::vector<Summed> GTopKReference(int64_t k, const std::vector<Selected>& mine) {
  const int ranks = static_cast<int>(mine.size());
  std::vector<EntryMap> sets, dropped(mine.size());
  for (const Selected& selected : mine) sets.push_back(MapOf(selected));
  const auto keep_largest = [&](int rank) {
    const auto entries = BySize(sets[rank]);
    sets[rank].clear();
    EntryMap out;
    for (size_t i = 0; i < entries.size(); ++i) {
      (static_cast<int64_t>(i) < k ? sets[rank] : out).insert(entries[i]);
    }
    AddTo(dropped[rank], out);
  };
  const auto give = [&](int from, int to) {
    AddTo(sets[to], sets[from]);
    keep_largest(to);
  };
  for (int rank = 0; rank < ranks; ++rank) keep_largest(rank);
  int paired = 1;
  while (2 * paired <= ranks) paired *= 2;
  for (int rank = paired; rank < ranks; ++rank) give(rank, rank - paired);
  for (int distance = 1; distance < paired; distance *= 2) {
    for (int rank = 0; rank < paired; rank += 2 * distance) give(rank + distance, rank);
  }
  std::vector<Summed> sums;
  for (int rank = 0; rank < ranks; ++rank) {
    sums.push_back({.parts = {SelectedOf(sets[0])}, .returned = SelectedOf(dropped[rank])});
  }
  return sums;
}

// The reference of oktopk, written from oktopk.md.  It keeps the state of one unit from call to call.
class OkTopKReference {
 public:
  // Returns the parts of the sum as one vector.
  std::vector<Summed> Sum(int64_t k, const std::vector<Selected>& mine) {
    EntryMap sums;
    for (const Selected& selected : mine) AddTo(sums, MapOf(selected));
    if (mine.size() > 1 && (calls_ % 32 == 0 || k != k_)) {
      const auto entries = BySize(sums);
      const bool enough = k >= 1 && static_cast<int64_t>(entries.size()) >= k;
      threshold_ = enough ? std::abs(entries[static_cast<size_t>(k - 1)].second) : 0;
    }
    ++calls_;
    k_ = k;
    std::erase_if(sums, [this](const auto& entry) { return std::abs(entry.second) < threshold_; });
    std::vector<Summed> results;
    for (const Selected& selected : mine) {
      EntryMap returned = MapOf(selected);
      std::erase_if(returned, [&](const auto& entry) { return sums.contains(entry.first); });
      results.push_back({.parts = {SelectedOf(sums)}, .returned = SelectedOf(returned)});
    }
    return results;
  }

 private:
  int64_t calls_ = 0;
  int64_t k_ = 0;
  float threshold_ = 0;
};

// Checks, position by position, that over all ranks given = sum + returned, up to a fraction `relative` of the given
// values.
inline void ExpectConserved(int64_t n, const std::vector<Selected>& mine,
                            const std::vector<Summed>& sums, double relative) {
  std::vector<double> given(static_cast<size_t>(n)), size(given), kept(given);
  const auto add = [](std::vector<double>& to, const Selected& from, bool magnitude) {
    for (size_t i = 0; i < from.positions.size(); ++i) {
      const double value = from.values[i];
      to[static_cast<size_t>(from.positions[i])] += magnitude ? std::abs(value) : value;
    }
  };
  for (const Selected& selected : mine) {
    add(given, selected, false);
    add(size, selected, true);
  }
  for (const Selected& part : sums[0].parts) add(kept, part, false);
  for (const Summed& sum : sums) add(kept, sum.returned, false);
  for (size_t i = 0; i < given.size(); ++i) {
    ASSERT_LE(std::abs(given[i] - kept[i]), relative * size[i])
        << "at " << i << ": given " << given[i] << ", kept " << kept[i];
  }
}

}  // namespace dtrain
