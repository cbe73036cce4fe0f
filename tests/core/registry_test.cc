#include "framework/core/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrain {
namespace {

using ::testing::ElementsAre;

struct Animal {
  int legs;
};
using AnimalRegistry = Registry<Animal>;

// These are registered before main, as the real entries are.
const bool spider = AnimalRegistry::Add("spider", {8});
const bool cat = AnimalRegistry::Add("cat", {4});

TEST(Registry, FindsWhatWasAdded) {
  EXPECT_TRUE(spider && cat);
  EXPECT_EQ(AnimalRegistry::Get("animal", "spider").legs, 8);
  EXPECT_EQ(AnimalRegistry::Find("dog"), nullptr);
}

TEST(RegistryDeathTest, ANameThatIsRegisteredTwiceNamesBothFiles) {
  EXPECT_DEATH(AnimalRegistry::Add("cat", {3}),
               "'cat' is registered twice: in .*registry_test.cc and in .*registry_test.cc");
}

TEST(Registry, IsInNameOrder) {
  EXPECT_THAT(AnimalRegistry::Names(), ElementsAre("cat", "spider"));
  EXPECT_EQ(AnimalRegistry::All().size(), 2u);
}

TEST(Registry, AnUnknownNameNamesTheKnownOnes) {
  try {
    AnimalRegistry::Get("animal", "spyder");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "unknown animal 'spyder'");
    EXPECT_EQ(error.hint(), "did you mean 'spider'?  allowed: cat, spider");
  }
}

}  // namespace
}  // namespace dtrain
