// Expression: arithmetic of a study's measures and claims, with + - * / and parentheses.
//
//   communication.bytes_sent / 1e6
//   seconds_to(test.accuracy, 0.85)
//   seconds_to(GSSP) / seconds_to(SSP)
//
// The caller decides what a name means: Evaluate asks it for the value of each.  Arguments of a name are texts, since
// methods have names such as "GSSP+GDTopK"; one that holds a comma or a parenthesis is written in double quotes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dtrain {

// A name in an expression, with its arguments: {"seconds_to", {"test.accuracy", "0.85"}}.
struct NamedValue {
  std::string name;
  std::vector<std::string> arguments;
};

class Expression {
 public:
  // Throws UsageError with the text and the place of the error in it.
  static Expression Parse(const std::string& text);

  using ValueOf = std::function<double(const NamedValue&)>;
  // NaN stands for a value that does not exist, and makes the result NaN.
  double Evaluate(const ValueOf& value_of) const;

  const std::string& text() const { return text_; }
  std::vector<NamedValue> names() const;  // in the order of the text

  struct Node;

 private:
  std::string text_;
  std::shared_ptr<const Node> root_;
};

}  // namespace dtrain
