#include "framework/study/expression.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "framework/core/error.h"
#include "tests/support/message_of.h"

namespace dtrain {
namespace {

using ::testing::HasSubstr;

double ValueOf(const std::string& text) {
  const std::map<std::string, double> values = {{"a", 7}, {"b.c", 2}, {"nothing", std::nan("")}};
  return Expression::Parse(text).Evaluate([&](const NamedValue& named) {
    if (named.name == "length") return static_cast<double>(named.arguments[0].size());
    return values.at(named.name);
  });
}

TEST(Expression, FollowsArithmetic) {
  EXPECT_EQ(ValueOf("1 + 2 * 3"), 7);
  EXPECT_EQ(ValueOf("(1 + 2) * 3"), 9);
  EXPECT_EQ(ValueOf("8 / 4 / 2"), 1) << "from the left";
  EXPECT_EQ(ValueOf("8 - 4 - 2"), 2);
  EXPECT_EQ(ValueOf("-a + 1e1"), 3);
  EXPECT_EQ(ValueOf("a*b.c-.5"), 13.5);
  EXPECT_EQ(ValueOf("--2"), 2);
  EXPECT_TRUE(std::isnan(ValueOf("nothing / nothing")));
  EXPECT_TRUE(std::isinf(ValueOf("1 / 0")));
}

TEST(Expression, ArgumentsAreTexts) {
  const Expression expression = Expression::Parse("f(GSSP + GDTopK , \"a, b)\") / g(x)");
  const auto names = expression.names();
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].name, "f");
  EXPECT_EQ(names[0].arguments, (std::vector<std::string>{"GSSP + GDTopK", "a, b)"}));
  EXPECT_EQ(names[1].arguments, std::vector<std::string>{"x"});
  EXPECT_EQ(ValueOf("length(four) + length( \"(,\" )"), 6);
}

TEST(Expression, ErrorsSayWhere) {
  const auto error = [](const std::string& text) {
    return MessageOf<UsageError>([&] { Expression::Parse(text); });
  };
  EXPECT_THAT(error("1 +"), HasSubstr("column 4 should have a number, a name or '('"));
  EXPECT_THAT(error("(1"), HasSubstr("column 3 should have ')'"));
  EXPECT_THAT(error("1 2"), HasSubstr("column 3 should have an operator"));
  EXPECT_THAT(error("f(a"), HasSubstr("should have ')'"));
  EXPECT_THAT(error("f(\"a)"), HasSubstr("should have '\"'"));
  EXPECT_THAT(error("f()"), HasSubstr("should have an argument"));
  EXPECT_THAT(error(std::string(1000, '(')), HasSubstr("fewer parentheses"));
  EXPECT_THAT(error(""), HasSubstr("column 1"));
}

}  // namespace
}  // namespace dtrain
