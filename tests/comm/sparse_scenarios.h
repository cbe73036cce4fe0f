// Scenarios of the sparse collectives over a real transport.  Each rank runs them, and knows the selections of all
// ranks.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/comm/backoff.h"
#include "framework/comm/collective.h"
#include "framework/comm/sparse_collective.h"
#include "tests/comm/collective_conformance.h"
#include "tests/comm/sparse_cases.h"
#include "tests/comm/sparse_reference.h"

namespace dtrain {

// Joins the parts, so that each of the three collectives can be compared with its reference.
inline void ExpectSparseSum(const std::string& name, OkTopKReference& reference, Rank rank,
                            const SparseCase& drawn, const Summed& sum) {
  const auto wanted = name == "gather"  ? GatherReference(drawn.mine)
                      : name == "gtopk" ? GTopKReference(drawn.k, drawn.mine)
                                        : reference.Sum(drawn.k, drawn.mine);
  EXPECT_EQ(sum.Joined(), wanted[static_cast<size_t>(rank)].Joined());
  EXPECT_EQ(sum.returned, wanted[static_cast<size_t>(rank)].returned);
}

inline void SparseSumsOfAllKinds(Transport& transport, const std::string& name) {
  const auto collective = MakeSparseCollective(name, transport);
  EXPECT_EQ(collective->name(), name);
  OkTopKReference reference;
  Draws draws(17);
  for (int call = 0; call < 66; ++call) {
    const SparseCase drawn = DrawSelections(draws, transport.size(), 3000, 100, call % 2 == 0);
    const int64_t ticket = collective->Start(
        0, drawn.n, drawn.k, drawn.mine[static_cast<size_t>(transport.rank())].entries());
    EXPECT_EQ(ticket, call);
    WaitFor(*collective, ticket);
    ExpectSparseSum(name, reference, transport.rank(), drawn, Summed::Of(collective->Of(ticket)));
    collective->Release(ticket);
  }
}

// Messages larger than a transport's eager limit.
inline void SparseSumsOfManyEntries(Transport& transport, const std::string& name) {
  const auto collective = MakeSparseCollective(name, transport);
  OkTopKReference reference;
  Draws draws(23);
  SparseCase drawn{.n = 100'000, .k = 8'000, .mine = {}, .whole = false};
  for (Rank rank = 0; rank < transport.size(); ++rank) {
    Selected selected;
    for (int32_t at = 0; at < drawn.n; at += static_cast<int32_t>(draws.Between(1, 25))) {
      selected.Add(at, DrawValue(draws, false));
    }
    drawn.mine.push_back(std::move(selected));
  }
  const int64_t ticket = collective->Start(
      0, drawn.n, drawn.k, drawn.mine[static_cast<size_t>(transport.rank())].entries());
  WaitFor(*collective, ticket);
  ExpectSparseSum(name, reference, transport.rank(), drawn, Summed::Of(collective->Of(ticket)));
}

// Several sparse sums and a dense one are in flight at the same time; the ranks progress unevenly.
inline void SparseSumsBesideDenseOnes(Transport& transport, const std::string& name) {
  constexpr int kSums = 5;
  const auto sparse = MakeSparseCollective(name, transport);
  const auto dense = MakeCollective("ordered", transport);
  Draws draws(29);
  std::vector<SparseCase> cases;
  std::vector<std::vector<float>> vectors;
  std::vector<OkTopKReference> references(kSums);
  for (int i = 0; i < kSums; ++i) {
    cases.push_back(DrawSelections(draws, transport.size(), 2000, 50, false));
    vectors.push_back(GradientOf(transport.rank(), 9000, i));
  }
  for (int i = 0; i < kSums; ++i) {
    sparse->Start(i, cases[i].n, cases[i].k,
                  cases[i].mine[static_cast<size_t>(transport.rank())].entries());
    dense->Start(vectors[i]);
    for (int k = 0; k < (i * 7 + transport.rank() * 3) % 5; ++k) sparse->Progress();
  }
  Backoff backoff;
  while (!sparse->Idle() || !dense->Idle()) {
    const bool moved = sparse->Progress();
    if (dense->Progress() || moved) {
      backoff.Reset();
    } else {
      backoff.Pause();
    }
  }
  for (int i = kSums - 1; i >= 0; --i) {
    ExpectSparseSum(name, references[i], transport.rank(), cases[i], Summed::Of(sparse->Of(i)));
    sparse->Release(i);
    EXPECT_TRUE(SameBits(vectors[i], CanonicalSum(transport.size(), 9000, i)));
  }
}

inline void RunSparseConformance(Transport& transport, const std::string& name) {
  SparseSumsOfAllKinds(transport, name);
  SparseSumsOfManyEntries(transport, name);
  SparseSumsBesideDenseOnes(transport, name);
  transport.Barrier();
}

}  // namespace dtrain
